package profile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// period is the time between two samples, in ns. It has no simple relation to
	// anything that happens in turn.
	period = 247_001
	// stackDepth is how many callers are noted.
	stackDepth = 48
	// ringPages hold some seconds of samples; a power of two.
	ringPages = 1024
)

// Stack is where a core was, the innermost address first, and from where that
// was called.
type Stack []uint64

// Sampler notes where one core is, some 4,000 times a second, as long as it is
// neither idle nor in user mode.
type Sampler struct {
	fd   int
	ring []byte
}

// missingError names a capability that the machine lacks.
type missingError struct{ err error }

func (e *missingError) Error() string { return e.err.Error() }
func (e *missingError) Unwrap() error { return e.err }

// MissingCapability tells the command line which exit status this is.
func (e *missingError) MissingCapability() bool { return true }

// NewSampler prepares the sampling of a core.
func NewSampler(core int) (*Sampler, error) {
	attr := unix.PerfEventAttr{
		Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_CPU_CLOCK, Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
		Sample: period, Sample_type: unix.PERF_SAMPLE_CALLCHAIN, Sample_max_stack: stackDepth,
		Bits: unix.PerfBitDisabled | unix.PerfBitExcludeUser | unix.PerfBitExcludeIdle | unix.PerfBitExcludeCallchainUser,
	}
	fd, err := unix.PerfEventOpen(&attr, -1, core, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return nil, &missingError{fmt.Errorf("sample core %d by cpu-clock: %w", core, err)}
	}
	ring, err := unix.Mmap(fd, 0, (1+ringPages)*unix.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("map the samples of core %d: %w", core, err), unix.Close(fd))
	}
	return &Sampler{fd: fd, ring: ring}, nil
}

// Close ends the sampling.
func (s *Sampler) Close() error { return errors.Join(unix.Munmap(s.ring), unix.Close(s.fd)) }

// Start forgets what was sampled and goes on sampling.
func (s *Sampler) Start() error {
	page := s.page()
	atomic.StoreUint64(&page.Data_tail, atomic.LoadUint64(&page.Data_head))
	if err := unix.IoctlSetInt(s.fd, unix.PERF_EVENT_IOC_ENABLE, 0); err != nil {
		return fmt.Errorf("start sampling: %w", err)
	}
	return nil
}

// Stop stops sampling and gives what was sampled since Start. lost samples did
// not fit.
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

// bytes copies what lies between two places of the ring.
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

// Records of the ring (linux/perf_event.h), and what is no address in a chain.
const (
	recordLost   = 2
	recordSample = 9
	markers      = ^uint64(4095) + 1 // PERF_CONTEXT_MAX and above
)

// decode reads records: type u32, misc u16, size u16; a sample's are the number
// of addresses and the addresses.
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
