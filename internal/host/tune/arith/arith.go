// Package arith is the arithmetic behind settings of a network: how large a
// buffer, a window, a queue has to be for a line. It knows no system and sets
// nothing; each function says its formula and its units, and the tests hold the
// figures that people publish for them.
package arith

import (
	"fmt"
	"math/bits"
	"time"
)

// Header sizes in bytes.
const (
	ip4Header       = 20
	ip6Header       = 40
	tcpHeader       = 20
	timestampOption = 12 // RFC 7323, with its padding
	pppoeHeader     = 8  // RFC 2516: PPPoE and PPP
	etherHeader     = 14
	etherOverhead   = 20 // preamble and gap, which a line carries and no MTU counts
	fcs             = 4
)

// BDP is the bandwidth-delay product: the bytes that are on the way when a line
// of so many bit/s is full and its answer comes after rtt.
func BDP(bitsPerSecond uint64, rtt time.Duration) uint64 {
	high, low := bits.Mul64(bitsPerSecond, uint64(rtt))
	quotient, _ := bits.Div64(high, low, 8*uint64(time.Second))
	return quotient
}

// maxWindowScale is RFC 7323's.
const maxWindowScale = 14

// WindowScale is TCP's window scale for a receive buffer of so many bytes: the
// smallest w with 65535 x 2^w >= buffer (RFC 7323), at most 14.
func WindowScale(buffer uint64) int {
	for w := range maxWindowScale {
		if uint64(65535)<<w >= buffer {
			return w
		}
	}
	return maxWindowScale
}

// Window is the largest window under a scale: 65535 x 2^scale bytes in flight.
func Window(scale int) uint64 { return uint64(65535) << scale }

// SocketBuffer is the buffer for one connection that fills a line: the
// bandwidth-delay product, twice, as a sender needs the data that are on the way
// and those that go out while their acknowledgements come, rounded up to whole
// pages of 4096 bytes.
func SocketBuffer(bitsPerSecond uint64, rtt time.Duration) uint64 {
	const page = 4096
	return (2*BDP(bitsPerSecond, rtt) + page - 1) / page * page
}

// SocketLimit is FreeBSD's kern.ipc.maxsockbuf for socket buffers of so many bytes: the
// kernel counts an mbuf of 256 bytes with each cluster of 2048 and refuses what is
// larger (sbreserve_locked() in sys/kern/uipc_sockbuf.c), so an eighth more, rounded up
// to whole pages of 4096 bytes.
func SocketLimit(buffer uint64) uint64 {
	const page = 4096
	return (buffer/8*9 + (buffer%8*9+7)/8 + page - 1) / page * page
}

// A Link is what the size of a TCP segment depends on.
type Link struct {
	MTU        int
	PPPoE      bool // PPPoE inside the MTU
	IPv6       bool
	Timestamps bool // RFC 7323, in every segment
}

// PathMTU is the MTU that is left for IP, in bytes.
func (l Link) PathMTU() int {
	if l.PPPoE {
		return l.MTU - pppoeHeader
	}
	return l.MTU
}

// MSS is the segment size that TCP announces (RFC 9293, 3.7.1): without options.
func (l Link) MSS() int { return l.PathMTU() - l.headers() }

func (l Link) headers() int {
	if l.IPv6 {
		return ip6Header + tcpHeader
	}
	return ip4Header + tcpHeader
}

// Terms is how the MSS comes about: 1500 - 8 (PPPoE) - 40.
func (l Link) Terms() string {
	if l.PPPoE {
		return fmt.Sprintf("%d - %d (PPPoE) - %d", l.MTU, pppoeHeader, l.headers())
	}
	return fmt.Sprintf("%d - %d", l.MTU, l.headers())
}

// Payload is the data in one full segment, in bytes: options take their part.
func (l Link) Payload() int {
	if l.Timestamps {
		return l.MSS() - timestampOption
	}
	return l.MSS()
}

// Efficiency is the share of data in a full frame with its Ethernet header, 0 to 1.
func (l Link) Efficiency() float64 { return float64(l.Payload()) / float64(l.MTU+etherHeader) }

// InitialWindow is the segments that fit the first 65535 bytes: what the guides
// name as the bound of initial windows and of slow start's steps.
func InitialWindow(mss int) int { return 65535 / mss }

// Queues is the queues for each port: real cores divided by the ports in use, at
// least one.
func Queues(cores, ports int) int { return max(1, cores/max(1, ports)) }

// QueuesWanted is the receive queues that are worth having for a port: an even part of
// the real cores that may serve it, which are those of its NUMA node, at least two, as
// one is where a core fills first, and no more than there are. ports are those that
// share these cores. Documentation/networking/scaling.rst advises the smallest number
// that loses nothing, and a queue on another node costs each of its packets the way there.
func QueuesWanted(cores, ports int) int { return min(cores, max(2, cores/max(1, ports))) }

// SendQueue is an interface's send queue in packets: 256 for each port, or what
// the line sends in 50 ms in segments of 1460 bytes, whichever is more.
func SendQueue(ports int, bitsPerSecond uint64) int {
	return max(256*ports, int(PacketsIn(50*time.Millisecond, bitsPerSecond, 1460)))
}

// PacketsIn is the packets of a size in bytes that a line of so many bit/s sends
// in a time, without what Ethernet adds.
func PacketsIn(d time.Duration, bitsPerSecond uint64, size int) float64 {
	return float64(bitsPerSecond) / 8 / float64(size) * d.Seconds()
}

// Backlog is the queue of connections that wait to be accepted, from those that a
// burst brings in a second and those accepted meanwhile: four times the difference,
// up to a power of two, at least 128. 250 and 128 give 512.
func Backlog(burst, accepted int) int {
	short := max(0, burst-accepted)
	backlog := 128
	for backlog < 4*short {
		backlog *= 2
	}
	return backlog
}

// Budget is the packets that one round of the kernel's receive work may take: those
// that come in 2 ms at the line's rate in frames of 1500 bytes, but not below the
// kernel's 300, and not above 4096, behind which other work would starve.
func Budget(bitsPerSecond uint64) int {
	frames := float64(bitsPerSecond) / 8 / float64(1500+etherHeader+fcs+etherOverhead)
	return min(4096, max(300, int(frames*0.002)))
}

// NetdevBacklog is the packets that may wait for a core which another one steers
// them to: those of 10 ms in frames of 1500 bytes, at least the kernel's 1000.
func NetdevBacklog(bitsPerSecond uint64) int {
	return max(1000, int(PacketsIn(10*time.Millisecond, bitsPerSecond, 1500)))
}

// Conntrack is the states of the kernel's connection tracking that a memory of so
// many bytes carries: one for 16 KB, between 65536 and 1048576, a power of two.
func Conntrack(memory uint64) int {
	const least, most = 65536, 1 << 20
	states := least
	for states < most && uint64(states)*2*16384 <= memory {
		states *= 2
	}
	return states
}

// Bytes is a size as people read it, in units of 1024.
func Bytes(n uint64) string {
	units := []string{"B", "KiB", "MiB", "GiB"}
	value, unit := float64(n), 0
	for value >= 1024 && unit < len(units)-1 {
		value, unit = value/1024, unit+1
	}
	if value == float64(int(value)) {
		return fmt.Sprintf("%.0f %s", value, units[unit])
	}
	return fmt.Sprintf("%.1f %s", value, units[unit])
}
