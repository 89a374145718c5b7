// Package arith is the arithmetic behind network settings: how large a buffer, a window
// or a queue must be for a line. It knows no system and sets nothing. Each function
// documents its formula and units. The tests check published figures.
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
	etherOverhead   = 20 // preamble and gap: on the line, but not in the MTU
	fcs             = 4
)

// BDP returns the bandwidth-delay product: the bytes under way if a line is full and
// replies arrive after rtt.
func BDP(bitsPerSecond uint64, rtt time.Duration) uint64 {
	high, low := bits.Mul64(bitsPerSecond, uint64(rtt))
	quotient, _ := bits.Div64(high, low, 8*uint64(time.Second))
	return quotient
}

// maxWindowScale is the limit of RFC 7323.
const maxWindowScale = 14

// WindowScale returns TCP's window scale for a receive buffer in bytes: the smallest w
// with 65535 x 2^w >= buffer (RFC 7323), at most 14.
func WindowScale(buffer uint64) int {
	for w := range maxWindowScale {
		if uint64(65535)<<w >= buffer {
			return w
		}
	}
	return maxWindowScale
}

// Window returns the largest window for a scale: 65535 x 2^scale bytes in flight.
func Window(scale int) uint64 { return uint64(65535) << scale }

// SocketBuffer returns the buffer for one connection that fills a line: twice the
// bandwidth-delay product, rounded up to whole pages of 4096 bytes. A sender needs the
// data under way, and the data that it sends while their acknowledgements arrive.
func SocketBuffer(bitsPerSecond uint64, rtt time.Duration) uint64 {
	const page = 4096
	return (2*BDP(bitsPerSecond, rtt) + page - 1) / page * page
}

// SocketLimit returns FreeBSD's kern.ipc.maxsockbuf for a socket buffer in bytes: an
// eighth more, rounded up to whole pages of 4096 bytes. The kernel counts an mbuf of 256
// bytes with each cluster of 2048, and refuses a larger buffer (sbreserve_locked() in
// sys/kern/uipc_sockbuf.c).
func SocketLimit(buffer uint64) uint64 {
	const page = 4096
	return (buffer/8*9 + (buffer%8*9+7)/8 + page - 1) / page * page
}

// A Link has the properties that set the size of a TCP segment.
type Link struct {
	MTU        int
	PPPoE      bool // PPPoE inside the MTU
	IPv6       bool
	Timestamps bool // RFC 7323, in every segment
}

// PathMTU returns the MTU left for IP, in bytes.
func (l Link) PathMTU() int {
	if l.PPPoE {
		return l.MTU - pppoeHeader
	}
	return l.MTU
}

// MSS returns the segment size that TCP announces (RFC 9293, 3.7.1), without options.
func (l Link) MSS() int { return l.PathMTU() - l.headers() }

func (l Link) headers() int {
	if l.IPv6 {
		return ip6Header + tcpHeader
	}
	return ip4Header + tcpHeader
}

// Terms returns the calculation of the MSS: 1500 - 8 (PPPoE) - 40.
func (l Link) Terms() string {
	if l.PPPoE {
		return fmt.Sprintf("%d - %d (PPPoE) - %d", l.MTU, pppoeHeader, l.headers())
	}
	return fmt.Sprintf("%d - %d", l.MTU, l.headers())
}

// Payload returns the data in one full segment, in bytes, without options.
func (l Link) Payload() int {
	if l.Timestamps {
		return l.MSS() - timestampOption
	}
	return l.MSS()
}

// Efficiency returns the share of data in a full frame, with its Ethernet header, from 0
// to 1.
func (l Link) Efficiency() float64 { return float64(l.Payload()) / float64(l.MTU+etherHeader) }

// InitialWindow returns the number of segments that fit into the first 65535 bytes. The
// guides give it as the limit of initial windows and of slow start's steps.
func InitialWindow(mss int) int { return 65535 / mss }

// QueuesWanted returns the number of receive queues worth having for a port: an even
// share of the real cores that may serve it, which are those of its NUMA node. It is at
// least two, because with one queue one core fills first, and at most the number of
// cores. ports are the ports that share these cores. Documentation/networking/scaling.rst
// advises the smallest number that loses nothing. A queue on another node costs each
// packet the way there.
func QueuesWanted(cores, ports int) int { return min(cores, max(2, cores/max(1, ports))) }

// SendQueue returns an interface's send queue in packets: 256 per port, or what the line
// sends in 50 ms in segments of 1460 bytes, whichever is more.
func SendQueue(ports int, bitsPerSecond uint64) int {
	return max(256*ports, int(PacketsIn(50*time.Millisecond, bitsPerSecond, 1460)))
}

// PacketsIn returns the number of packets of a size in bytes that a line sends in a time,
// without Ethernet's overhead.
func PacketsIn(d time.Duration, bitsPerSecond uint64, size int) float64 {
	return float64(bitsPerSecond) / 8 / float64(size) * d.Seconds()
}

// Backlog returns the queue of connections that wait to be accepted, from the connections
// per second in a burst and those accepted meanwhile: four times the difference, rounded
// up to a power of two, at least 128. 250 and 128 give 512.
func Backlog(burst, accepted int) int {
	short := max(0, burst-accepted)
	backlog := 128
	for backlog < 4*short {
		backlog *= 2
	}
	return backlog
}

// Budget returns the packets that one round of the kernel's receive work may take: those
// that arrive in 2 ms at the line's rate in frames of 1500 bytes, at least the kernel's
// 300 and at most 4096. Above that, other work would starve.
func Budget(bitsPerSecond uint64) int {
	frames := float64(bitsPerSecond) / 8 / float64(1500+etherHeader+fcs+etherOverhead)
	return min(4096, max(300, int(frames*0.002)))
}

// NetdevBacklog returns the packets that may wait for a core that another one steers them
// to: those of 10 ms in frames of 1500 bytes, at least the kernel's 1000.
func NetdevBacklog(bitsPerSecond uint64) int {
	return max(1000, int(PacketsIn(10*time.Millisecond, bitsPerSecond, 1500)))
}

// Conntrack returns the number of states that the kernel's connection tracking should
// have for a memory in bytes: one per 16 KB, between 65536 and 1048576, a power of two.
func Conntrack(memory uint64) int {
	const least, most = 65536, 1 << 20
	states := least
	for states < most && uint64(states)*2*16384 <= memory {
		states *= 2
	}
	return states
}

// Bytes writes a size for people, in units of 1024.
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
