package arith_test

import (
	"fmt"
	"testing"
	"time"

	"weir/internal/host/tune/arith"
)

const (
	kbit = 1000
	mbit = 1000 * kbit
	gbit = 1000 * mbit
)

func TestBDP(t *testing.T) {
	for _, c := range []struct {
		rate uint64
		rtt  time.Duration
		want uint64
	}{
		{100 * mbit, 10 * time.Millisecond, 125_000},
		{1 * gbit, 1 * time.Millisecond, 125_000},
		{10 * gbit, 80 * time.Millisecond, 100_000_000},
		{400 * gbit, 10 * time.Second, 500_000_000_000}, // more than 64 bits under way
		{0, time.Second, 0},
	} {
		if got := arith.BDP(c.rate, c.rtt); got != c.want {
			t.Errorf("BDP(%d, %v) = %d, want %d", c.rate, c.rtt, got, c.want)
		}
	}
}

// TestWindowScale checks the five rows of the guide for FreeBSD: link speed,
// kern.ipc.maxsockbuf, window scale, millions of bytes in flight.
func TestWindowScale(t *testing.T) {
	for _, c := range []struct {
		link     string
		buffer   uint64
		scale    int
		inFlight uint64
	}{
		{"1G", 2 << 20, 6, 4},
		{"2G", 4 << 20, 7, 8},
		{"10G", 16 << 20, 9, 33},
		{"40G", 150 << 20, 12, 268},
		{"100G", 614_400_000, 14, 1073},
	} {
		if got := arith.WindowScale(c.buffer); got != c.scale {
			t.Errorf("%s: scale of %d = %d, want %d", c.link, c.buffer, got, c.scale)
		}
		if got := arith.Window(c.scale) / 1_000_000; got != c.inFlight {
			t.Errorf("%s: %d MB in flight, want %d", c.link, got, c.inFlight)
		}
	}
	for _, c := range []struct {
		buffer uint64
		scale  int
	}{{0, 0}, {65535, 0}, {65536, 1}, {65535 << 9, 9}, {65535<<9 + 1, 10}, {1 << 40, 14}} {
		if got := arith.WindowScale(c.buffer); got != c.scale {
			t.Errorf("scale of %d = %d, want %d", c.buffer, got, c.scale)
		}
	}
	if got := arith.Window(9); got != 33_553_920 {
		t.Errorf("window under 9 = %d", got)
	}
}

func TestSegments(t *testing.T) {
	for _, c := range []struct {
		link         arith.Link
		mss, payload int
		efficiency   string // per cent
	}{
		{arith.Link{MTU: 1500}, 1460, 1460, "96.43"},
		{arith.Link{MTU: 1500, Timestamps: true}, 1460, 1448, "95.64"},
		{arith.Link{MTU: 1500, IPv6: true}, 1440, 1440, "95.11"},
		{arith.Link{MTU: 1500, PPPoE: true}, 1452, 1452, "95.90"},
		{arith.Link{MTU: 1500, PPPoE: true, IPv6: true, Timestamps: true}, 1432, 1420, "93.79"},
		{arith.Link{MTU: 1280, Timestamps: true}, 1240, 1228, "94.90"},
		{arith.Link{MTU: 576, Timestamps: true}, 536, 524, "88.81"},
		{arith.Link{MTU: 9000, Timestamps: true}, 8960, 8948, "99.27"},
	} {
		if got := c.link.MSS(); got != c.mss {
			t.Errorf("%+v: MSS %d, want %d", c.link, got, c.mss)
		}
		if got := c.link.Payload(); got != c.payload {
			t.Errorf("%+v: payload %d, want %d", c.link, got, c.payload)
		}
		if got := fmt.Sprintf("%.2f", 100*c.link.Efficiency()); got != c.efficiency {
			t.Errorf("%+v: efficiency %s %%, want %s", c.link, got, c.efficiency)
		}
	}
	for mss, want := range map[int]int{1460: 44, 1240: 52} {
		if got := arith.InitialWindow(mss); got != want {
			t.Errorf("initial window of %d = %d, want %d", mss, got, want)
		}
	}
}

func TestQueues(t *testing.T) {
	for _, c := range []struct{ cores, ports, want int }{{4, 2, 2}, {4, 1, 4}, {4, 4, 2}, {2, 4, 2}, {1, 1, 1}, {1, 4, 1}, {16, 4, 4}, {4, 0, 4}} {
		if got := arith.QueuesWanted(c.cores, c.ports); got != c.want {
			t.Errorf("QueuesWanted(%d, %d) = %d, want %d", c.cores, c.ports, got, c.want)
		}
	}
	for _, c := range []struct {
		ports int
		rate  uint64
		want  int
	}{{1, 60 * mbit, 256}, {2, 60 * mbit, 512}, {1, 1 * gbit, 4280}} {
		if got := arith.SendQueue(c.ports, c.rate); got != c.want {
			t.Errorf("SendQueue(%d, %d) = %d, want %d", c.ports, c.rate, got, c.want)
		}
	}
	if got := fmt.Sprintf("%.2f", arith.PacketsIn(50*time.Millisecond, 60*mbit, 1460)); got != "256.85" {
		t.Errorf("60 Mbit/s send %s packets in 50 ms", got)
	}
	for _, c := range []struct{ burst, accepted, want int }{{250, 128, 512}, {100, 128, 128}, {0, 0, 128}, {2000, 500, 8192}} {
		if got := arith.Backlog(c.burst, c.accepted); got != c.want {
			t.Errorf("Backlog(%d, %d) = %d, want %d", c.burst, c.accepted, got, c.want)
		}
	}
}

func TestKernelWork(t *testing.T) {
	for rate, want := range map[uint64]int{100 * mbit: 300, 1 * gbit: 300, 10 * gbit: 1625, 100 * gbit: 4096} {
		if got := arith.Budget(rate); got != want {
			t.Errorf("Budget(%d) = %d, want %d", rate, got, want)
		}
	}
	for rate, want := range map[uint64]int{1 * gbit: 1000, 10 * gbit: 8333} {
		if got := arith.NetdevBacklog(rate); got != want {
			t.Errorf("NetdevBacklog(%d) = %d, want %d", rate, got, want)
		}
	}
	for memory, want := range map[uint64]int{512 << 20: 65536, 2 << 30: 131072, 4 << 30: 262144, 64 << 30: 1 << 20} {
		if got := arith.Conntrack(memory); got != want {
			t.Errorf("Conntrack(%d) = %d, want %d", memory, got, want)
		}
	}
}

func TestBytes(t *testing.T) {
	for n, want := range map[uint64]string{0: "0 B", 1023: "1023 B", 2 << 20: "2 MiB", 125000: "122.1 KiB", 1 << 41: "2048 GiB"} {
		if got := arith.Bytes(n); got != want {
			t.Errorf("Bytes(%d) = %q, want %q", n, got, want)
		}
	}
}

// TestSocketLimit checks that the limit lets the kernel accept the whole buffer. The
// kernel grants 2048 of each 2304 bytes of sb_max.
func TestSocketLimit(t *testing.T) {
	for _, buffer := range []uint64{1, 7, 8, 4096, 2 << 20, 200_003_584, 614_400_000, 1 << 62} {
		limit := arith.SocketLimit(buffer)
		if granted := limit / 9 * 8; granted < buffer && limit%9*8/9+granted < buffer {
			t.Errorf("%d: of %d the kernel grants %d", buffer, limit, granted)
		}
		if limit%4096 != 0 || limit-buffer/8*9 > 4096+9 {
			t.Errorf("%d: %d", buffer, limit)
		}
	}
}
