package dataplane

import (
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"weir/internal/fw/state"
)

// What a rule has chosen for a connection stays as long as the connection, however long it
// is idle: its number is all that the state knows of the choice. Afterwards it is given
// back.
func TestChosenNextHopsStay(t *testing.T) {
	h := newHarness(t, chosenRules, func(c *Config) { c.Frozen = false })
	s := h.dp.tables.shared
	setTimeouts(s, &h.dp.config.Options)
	addNeighbour(t, h.net.wan0, "203.0.113.7", chosenMAC)
	check(t, h.dp.startGC())
	send := func(why string) {
		t.Helper()
		h.dp.Heartbeat()
		r := h.in(h.xdp, "lan", "udp 192.168.1.10:4000 > 198.51.100.9:53")
		if r.verdict != redirect || r.reason != why || net.HardwareAddr(r.frame[:6]).String() != chosenMAC {
			t.Fatalf("%s %s to %s", r.verdict, r.reason, net.HardwareAddr(r.frame[:6]))
		}
	}
	send("rule")
	st, number := h.chosenState()
	n := &s.Nexthops[number]
	if n.Flags&nexthopHow != nexthopHow || st.Entered&keptRoutes == 0 {
		t.Fatalf("the next hop has flags %#x, the state %#x", n.Flags, st.Entered)
	}
	day := uint32(24 * 3600 * 100)
	for range 10 { // as if neither packets nor the walk over the states had come for a day
		atomic.AddUint32(&n.Used, -day)
		atomic.StoreUint32(&st.CheckAt, s.Now)
		time.Sleep(300 * time.Millisecond)
	}
	h.until("the next hop is in the index", func() bool { return atomic.LoadUint32(&n.Stage) == 0 })
	if unused := atomic.LoadUint32(&s.NexthopsUnused); unused != 0 {
		t.Errorf("%d numbers are given back", unused)
	}
	h.dp.BumpRoutes()
	send("state")
	if st.Forth.Nexthop != number {
		t.Errorf("the state has next hop %d, before %d", st.Forth.Nexthop, number)
	}
	atomic.StoreUint32(&st.Status, statusDead)
	h.until("the state is gone", func() bool { return atomic.LoadUint32(&st.Status) == statusFree })
	atomic.AddUint32(&n.Used, -day)
	h.until("its number is given back", func() bool { return atomic.LoadUint32(&s.NexthopsUnused) == 1 })
	send("rule")
}

// If a state's choice were lost, its packets would be dropped: they never take the route of
// others.
func TestChosenNextHopIsLost(t *testing.T) {
	h := newHarness(t, chosenRules)
	addNeighbour(t, h.net.wan0, "203.0.113.7", chosenMAC)
	packet := "udp 192.168.1.10:4000 > 198.51.100.9:53"
	if r := h.in(h.xdp, "lan", packet); r.verdict != redirect || r.reason != "rule" {
		t.Fatalf("%s %s", r.verdict, r.reason)
	}
	st, number := h.chosenState()
	n := &h.dp.tables.shared.Nexthops[number]
	kept, empty := *n, h.dp.tables.shared.Nexthops[0]
	for what, spoil := range map[string]func(){
		"given back":    func() { *n = empty },
		"not a choice":  func() { n.Flags &^= nexthopHow },
		"forgotten":     func() { st.Forth.Nexthop = 0 },
		"another's":     func() { st.Forth.Nexthop = 2 + number },
		"no such thing": func() { st.Forth.Nexthop = 0xffff },
	} {
		spoil()
		h.dp.BumpRoutes()
		for _, hook := range []func(int, []byte) result{h.xdp, h.tcIn} {
			if r := h.in(hook, "lan", packet); r.reason != "gateway" || r.verdict == up {
				t.Errorf("%s: %s %s", what, r.verdict, r.reason)
			}
		}
		*n, st.Forth.Nexthop = kept, number
	}
}

// Without the daemon one packet in half a minute goes by the kernel, so that it probes the
// gateway: XDP leaves it to TCX, and says why.
func TestChosenNextHopIsProbed(t *testing.T) {
	h := newHarness(t, chosenRules)
	addNeighbour(t, h.net.wan0, "203.0.113.7", chosenMAC)
	send := func(hook func(int, []byte) result, want string, marked bool) {
		t.Helper()
		r := h.in(hook, "lan", "udp 192.168.1.10:4000 > 198.51.100.9:53")
		if got := fmt.Sprintf("%s %s", r.verdict, r.reason); got != want || r.back != marked || r.number&metadataProbe != 0 != marked {
			t.Errorf("%s, back %t, number %#x; want %s", got, r.back, r.number, want)
		}
	}
	send(h.xdp, "forward rule", false)
	h.dp.tables.shared.Now += 40 * state.TicksPerSecond // and no heartbeat
	send(h.xdp, "up up-probe", true)
	send(h.xdp, "forward state", false)
	h.dp.tables.shared.Now += 40 * state.TicksPerSecond
	send(h.tcIn, "forward up-probe", false)
	send(h.tcIn, "forward state", false)
}

// chosenRules send everything to a gateway that no route names.
const (
	chosenRules = "pass in on lan0 route-to (wan0 203.0.113.7) inet\npass out"
	chosenMAC   = "02:77:65:00:09:01"
)

// chosenState returns the one live state and the number of its next hop.
func (h *harness) chosenState() (*xdpState, uint16) {
	h.tb.Helper()
	for i := range h.dp.tables.states {
		if st := &h.dp.tables.states[i]; st.Status == statusLive {
			return st, st.Forth.Nexthop
		}
	}
	h.tb.Fatal("there is no state")
	return nil, 0
}
