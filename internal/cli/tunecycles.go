package cli

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"weir/internal/host/cpulist"
	"weir/internal/host/doctor"
	"weir/internal/host/tune"
)

// cycleMeasurer measures as liveMeasurer does, but counts the cycles that the cores spend
// in the kernel instead of their time. The kernel counts time only in ticks of some
// milliseconds.
type cycleMeasurer struct {
	live *liveMeasurer
	open func() (*coreCounter, error)
}

// Blind says that it measures only cards, and only on machines with cycle counters.
func (m *cycleMeasurer) Blind(c *tune.Change) string {
	if why := m.live.Blind(c); why != "" {
		return why
	}
	if strings.HasPrefix(c.Key, "cpu.") {
		return "a faster clock does not save cycles"
	}
	counter, err := m.open()
	if err != nil {
		return err.Error()
	}
	if err := counter.close(); err != nil {
		return err.Error()
	}
	return ""
}

// About says what is measured.
func (m *cycleMeasurer) About() string {
	return "packets per million cycles of the kernel's, by the host's own counters under its load"
}

// Measure reads the counters twice.
func (m *cycleMeasurer) Measure(ctx context.Context, c *tune.Change, _ string) (_ tune.Measured, err error) {
	counter, err := m.open()
	if err != nil {
		return tune.Measured{}, err
	}
	defer func() { err = errors.Join(err, counter.close()) }()
	s, err := m.live.read(ctx, m.live.interval)
	if err != nil {
		return tune.Measured{}, err
	}
	cycles, err := counter.count()
	if err != nil {
		return tune.Measured{}, err
	}
	return cycleRate(s, c.Card, cycles)
}

// cycleRate returns the packets that the cards took, divided by the cycles that the cores
// spent.
func cycleRate(s *doctor.Snapshot, card string, cycles float64) (tune.Measured, error) {
	packets, lost, err := taken(s, card)
	if err != nil {
		return tune.Measured{}, err
	}
	if cycles <= 0 {
		return tune.Measured{}, errors.New("no cycle was counted")
	}
	return tune.Measured{Rate: packets / cycles * 1e6, Loss: lost / (packets + lost)}, nil
}

// coreCounter counts an event on all cores, in the kernel.
type coreCounter struct{ fds []int }

// countCycles starts counting the cycles of all cores that are online.
func countCycles() (*coreCounter, error) {
	return countOnCores(unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_CPU_CYCLES, "cycles")
}

func countOnCores(kind uint32, event uint64, name string) (*coreCounter, error) {
	c := &coreCounter{}
	attr := unix.PerfEventAttr{
		Type: kind, Config: event, Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{})), Bits: unix.PerfBitExcludeUser,
		Read_format: unix.PERF_FORMAT_TOTAL_TIME_ENABLED | unix.PERF_FORMAT_TOTAL_TIME_RUNNING,
	}
	online, err := os.ReadFile("/sys/devices/system/cpu/online")
	if err != nil {
		return nil, fmt.Errorf("find the cores: %w", err)
	}
	cores, err := cpulist.Parse(strings.TrimSpace(string(online)))
	if err != nil {
		return nil, fmt.Errorf("find the cores: %w", err)
	}
	for _, core := range cores {
		fd, err := unix.PerfEventOpen(&attr, -1, core, -1, unix.PERF_FLAG_FD_CLOEXEC)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("this machine does not count %s: cpu%d: %w", name, core, err), c.close())
		}
		c.fds = append(c.fds, fd)
	}
	return c, nil
}

// count returns the total of all cores. If an event had to share its counter, its count
// is scaled to the whole time.
func (c *coreCounter) count() (float64, error) {
	total := 0.0
	for _, fd := range c.fds {
		var b [24]byte
		n, err := unix.Read(fd, b[:])
		if err != nil {
			return 0, fmt.Errorf("read a core's counter: %w", err)
		}
		if n != len(b) {
			return 0, errors.New("a core's counter can no longer be read") // perf_event_open(2): in an error state
		}
		value, enabled, running := binary.NativeEndian.Uint64(b[:]), binary.NativeEndian.Uint64(b[8:]), binary.NativeEndian.Uint64(b[16:])
		if running == 0 {
			return 0, errors.New("a core's counter never ran: others hold it")
		}
		total += float64(value) * float64(enabled) / float64(running)
	}
	return total, nil
}

func (c *coreCounter) close() error {
	var errs []error
	for _, fd := range c.fds {
		errs = append(errs, unix.Close(fd))
	}
	c.fds = nil
	return errors.Join(errs...)
}
