package profile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"weir/internal/missing"
)

const (
	// period is the time between two samples in ns. It is no simple multiple of
	// anything periodic.
	period = 247_001
	// stackDepth is the number of recorded callers.
	stackDepth = 48
	// ringPages hold some seconds of samples. It has to be a power of two.
	ringPages = 1024
)

// Stack is the address where a core was, followed by its callers.
type Stack []uint64

// Sampler samples one core about 4,000 times a second while it is neither idle nor in
// user mode.
type Sampler struct {
	fd   int
	ring []byte
}

// NewSampler prepares sampling of a core.
func NewSampler(core int) (*Sampler, error) {
	attr := unix.PerfEventAttr{
		Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_CPU_CLOCK, Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
		Sample: period, Sample_type: unix.PERF_SAMPLE_CALLCHAIN, Sample_max_stack: stackDepth,
		Bits: unix.PerfBitDisabled | unix.PerfBitExcludeUser | unix.PerfBitExcludeIdle | unix.PerfBitExcludeCallchainUser,
	}
	fd, err := unix.PerfEventOpen(&attr, -1, core, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return nil, missing.Errorf("sample core %d by cpu-clock: %w", core, err)
	}
	ring, err := unix.Mmap(fd, 0, (1+ringPages)*unix.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("map the samples of core %d: %w", core, err), unix.Close(fd))
	}
	return &Sampler{fd: fd, ring: ring}, nil
}

// Close ends sampling.
func (s *Sampler) Close() error { return errors.Join(unix.Munmap(s.ring), unix.Close(s.fd)) }

// Start discards earlier samples and starts sampling.
func (s *Sampler) Start() error {
	page := s.page()
	atomic.StoreUint64(&page.Data_tail, atomic.LoadUint64(&page.Data_head))
	if err := unix.IoctlSetInt(s.fd, unix.PERF_EVENT_IOC_ENABLE, 0); err != nil {
		return fmt.Errorf("start sampling: %w", err)
	}
	return nil
}

// Stop stops sampling and returns the samples since Start. lost counts those that did not
// fit.
func (s *Sampler) Stop() (stacks []Stack, lost int, err error) {
	if err := unix.IoctlSetInt(s.fd, unix.PERF_EVENT_IOC_DISABLE, 0); err != nil {
		return nil, 0, fmt.Errorf("stop sampling: %w", err)
	}
	page := s.page()
	head, tail := atomic.LoadUint64(&page.Data_head), atomic.LoadUint64(&page.Data_tail)
	records := s.bytes(tail, head)
	atomic.StoreUint64(&page.Data_tail, head)
	stacks, lost = decode(records)
	return stacks, lost, nil
}

func (s *Sampler) page() *unix.PerfEventMmapPage {
	return (*unix.PerfEventMmapPage)(unsafe.Pointer(&s.ring[0]))
}

// bytes copies the ring between two positions.
func (s *Sampler) bytes(from, to uint64) []byte {
	data := s.ring[unix.Getpagesize():]
	out := make([]byte, 0, to-from)
	for from < to {
		at := from % uint64(len(data))
		n := min(to-from, uint64(len(data))-at)
		out = append(out, data[at:at+n]...)
		from += n
	}
	return out
}

// Records of the ring (linux/perf_event.h), and the values in a chain that are not
// addresses.
const (
	recordLost   = 2
	recordSample = 9
	markers      = ^uint64(4095) + 1 // PERF_CONTEXT_MAX and above
)

// decode reads records: type u32, misc u16, size u16. A sample has the number of
// addresses and the addresses.
func decode(b []byte) (stacks []Stack, lost int) {
	for len(b) >= 8 {
		kind, size := binary.NativeEndian.Uint32(b), int(binary.NativeEndian.Uint16(b[6:]))
		if size < 8 || size > len(b) {
			return stacks, lost
		}
		body := b[8:size]
		switch {
		case kind == recordLost && len(body) >= 16:
			lost += int(binary.NativeEndian.Uint64(body[8:]))
		case kind == recordSample && len(body) >= 8:
			if stack := decodeStack(body); len(stack) > 0 {
				stacks = append(stacks, stack)
			}
		}
		b = b[size:]
	}
	return stacks, lost
}

func decodeStack(body []byte) (stack Stack) {
	n := binary.NativeEndian.Uint64(body)
	for body = body[8:]; n > 0 && len(body) >= 8; n, body = n-1, body[8:] {
		if at := binary.NativeEndian.Uint64(body); at < markers {
			stack = append(stack, at)
		}
	}
	return stack
}
