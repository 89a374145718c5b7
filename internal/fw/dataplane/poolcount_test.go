package dataplane

import (
	"fmt"
	"maps"
	"sync/atomic"
	"testing"
	"time"

	"weir/internal/fw/bpfload"
	"weir/internal/fw/ruleset"
	"weir/internal/fw/state"
)

// pooled returns how many states count at each address of pools with least-states, by pool and
// address.
func (h *harness) pooled() map[xdpPoolChoice]uint32 {
	h.tb.Helper()
	all := make(map[xdpPoolChoice]uint32)
	var key xdpPoolChoice
	var states uint32
	i := h.dp.tables.maps[mapPoolLoads].Iterate()
	for i.Next(&key, &states) {
		all[key] = states
	}
	check(h.tb, i.Err())
	return all
}

// pooledAt is the same by address alone.
func (h *harness) pooledAt() map[string]uint32 {
	h.tb.Helper()
	all := make(map[string]uint32)
	for key, states := range h.pooled() {
		all[key.Addr.addr().String()] += states
	}
	return all
}

// forgetPools removes all counts of states at addresses.
func (h *harness) forgetPools() {
	h.tb.Helper()
	for key := range h.pooled() {
		check(h.tb, h.dp.tables.maps[mapPoolLoads].Delete(&key))
	}
	uses := h.dp.tables.maps[mapPoolUses]
	var index uint32
	var indexes []uint32 // deleting while listing would leave some out
	for i := uses.Iterate(); i.Next(&index, new(xdpPoolUse)); {
		indexes = append(indexes, index)
	}
	for _, index := range indexes {
		check(h.tb, uses.Delete(index))
	}
}

// unpool takes a state that is released back from the addresses that count it, as
// pool_count_release() does.
func (t *twin) unpool(index uint32) {
	if state.FlowFlags(t.dp.tables.states[index].FlowForth.Flags)&state.FlowPooled == 0 {
		return
	}
	var use xdpPoolUse
	loads, uses := t.dp.tables.maps[mapPoolLoads], t.dp.tables.maps[mapPoolUses]
	check(t.tb, uses.Lookup(index, &use))
	check(t.tb, uses.Delete(index))
	for i := range use.Of {
		if use.Of[i].States == 0 {
			continue
		}
		var states uint32
		check(t.tb, loads.Lookup(&use.Of[i], &states))
		if states--; states == 0 {
			check(t.tb, loads.Delete(&use.Of[i]))
		} else {
			check(t.tb, loads.Put(&use.Of[i], states))
		}
	}
}

// differPools compares the states that addresses of pools count.
func (t *twin) differPools() string {
	t.tb.Helper()
	got, want := make(map[string]int), t.model.PooledStates()
	for key, states := range t.pooled() {
		name := key.Addr.addr().String()
		for _, i := range t.snapshot().Interfaces {
			if i.Index == key.Ifindex {
				name += "@" + i.Name
			}
		}
		got[name] += int(states)
	}
	if maps.Equal(got, want) {
		return ""
	}
	return fmt.Sprintf("states at addresses of pools, model: %v, dataplane: %v\n", want, got)
}

// The address with the fewest states is taken. The look goes on where the last one has ended.
func testLeastStates(h *harness) {
	const three = "{ 203.0.113.64, 203.0.113.65, 203.0.113.66 }"
	ask := func(source string, port int) string {
		return fmt.Sprintf("udp 192.168.1.%s:%d > 198.51.100.9:53", source, port)
	}
	n := 0
	gets := func(address string) string {
		n++
		return fmt.Sprintf("forward rule wan udp 203.0.113.%s:$%c > 198.51.100.9:53 ttl 63", address, 'a'+n)
	}
	h.plays([]play{
		{"in turn, and with sources that keep their address", "match out on wan0 inet nat-to " + three + " least-states sticky-address\npass", []step{
			{"xdp lan", ask("10", 1), gets("64")},
			{"xdp lan", ask("10", 2), gets("64")},
			{"tcx lan", ask("11", 1), gets("65")},
			{"xdp lan", ask("12", 1), gets("66")},
			{"xdp lan", ask("13", 1), gets("65")},
			{"tcx lan", ask("14", 1), gets("66")},
		}},
		{"weights", "match out on wan0 inet nat-to { 203.0.113.64 weight 2, 203.0.113.65 } least-states\npass", []step{
			{"xdp lan", ask("10", 1), gets("64")},
			{"xdp lan", ask("10", 2), gets("65")},
			{"xdp lan", ask("10", 3), gets("64")},
			{"xdp lan", ask("10", 4), gets("64")},
			{"xdp lan", ask("10", 5), gets("65")},
		}},
		{"rdr-to, IPv6, counted with another rule of the same table", "table <t> { fd00:1::10 fd00:1::11 }\npass in on wan0 inet6 proto udp to port 53 rdr-to <t> least-states\n" +
			"pass in on wan0 inet6 proto tcp to port 80 rdr-to <t> least-states\npass out", []step{
			{"xdp wan", "udp [2001:db8:9::1]:1 > [2001:db8:113::7]:53", "forward rule lan udp [2001:db8:9::1]:1 > [fd00:1::10]:53 ttl 63"},
			{"tcx wan", "tcp [2001:db8:9::1]:1 > [2001:db8:113::7]:80 S", "up up-neighbour leaves tcp [2001:db8:9::1]:1 > [fd00:1::11]:80 S"},
			{"xdp wan", "udp [2001:db8:9::1]:2 > [2001:db8:113::7]:53", "up up-neighbour leaves udp [2001:db8:9::1]:2 > [fd00:1::11]:53"},
		}},
	})
}

const leastRules = "match out on wan0 inet nat-to 203.0.113.64/29 least-states\npass"

// poolOfStates returns how many live states have each source outside.
func (h *harness) poolOfStates() map[string]uint32 {
	h.tb.Helper()
	all := make(map[string]uint32)
	for i := range h.dp.View().live() {
		all[h.dp.tables.states[i].Back.Tuple.Dst.addr().String()]++
	}
	return all
}

// Two cores make connections from the addresses of one pool, while the garbage collection
// releases earlier ones as fast as it can. The counts are what the states say, and in the end
// there is none.
func TestLeastStatesRace(t *testing.T) {
	const rounds, connections = 6, 3000
	h := newHarness(t, "set limit states 30000\n"+leastRules, func(c *Config) { c.Frozen = false })
	check(t, h.dp.startGC())
	for round := range rounds {
		h.liveFor(uint32(1 + 59*(round%2))) // in every other round states end meanwhile
		h.onTwoCPUs(func(cpu int) error {
			for i := range connections {
				h.dp.Heartbeat()
				text := fmt.Sprintf("udp 192.168.1.%d:%d > 198.51.100.9:53", 10+cpu, 1000+round*connections+i)
				if i%7 == 0 { // both cores have this one
					text = fmt.Sprintf("udp 192.168.1.9:%d > 198.51.100.9:53", 1000+round*connections+i)
				}
				run := bpfload.Run{Frame: parsePkt(text).frame(lanHostMAC, lan0MAC), Ifindex: h.net.lan0}
				if _, err := bpfload.RunXDP(h.program("weir_xdp"), run); err != nil {
					return err
				}
			}
			return nil
		})
		if round%2 == 0 {
			continue
		}
		h.waitReleased()
		states, counts := h.poolOfStates(), h.pooledAt()
		if !maps.Equal(states, counts) {
			t.Errorf("round %d: the states have %v, the addresses count %v", round, states, counts)
		}
		if len(counts) != 8 {
			t.Errorf("round %d: %v", round, counts)
		}
		h.dp.View().KillStates(everyState)
	}
	h.waitEmpty()
	if counts := h.pooled(); len(counts) != 0 {
		t.Errorf("without states there are still %v", counts)
	}
	if use, index := new(xdpPoolUse), uint32(0); h.dp.tables.maps[mapPoolUses].Iterate().Next(&index, use) {
		t.Errorf("there is still a list of state %d: %v", index, use)
	}
}

// waitReleased waits until the garbage collection has released every state that is not live.
func (h *harness) waitReleased() {
	h.tb.Helper()
	waiting := func() bool {
		h.dp.Heartbeat()
		for i := range h.dp.tables.states {
			if s := atomic.LoadUint32(&h.dp.tables.states[i].Status); s != statusFree && s != statusLive {
				return true
			}
		}
		return false
	}
	for until := time.Now().Add(20 * time.Second); waiting(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(until) {
			h.tb.Fatal("states that have ended are not released")
		}
	}
}

// Of a large pool a part is compared for each connection. No address gets many more than
// another.
func TestLeastStatesOfLargePool(t *testing.T) {
	h := newHarness(t, "set limit states 20000\nmatch out on wan0 inet nat-to 10.0.0.0/22 least-states\npass")
	for i := range 5 * 1024 {
		h.expect("xdp lan", fmt.Sprintf("udp 192.168.1.%d:%d > 198.51.100.9:53", 10+i%5, 1000+i), "forward rule")
	}
	counts := h.pooledAt()
	least, most := ^uint32(0), uint32(0)
	for _, n := range counts {
		least, most = min(least, n), max(most, n)
	}
	if len(counts) != 1024 || least < 4 || most > 6 {
		t.Errorf("%d addresses have %d to %d states", len(counts), least, most)
	}
}

// The counts outlive a reload, and tables of another size get them with the states.
func TestLeastStatesAreKept(t *testing.T) {
	h := newHarness(t, leastRules)
	commit(t, h.dp, nil)
	for i := range 12 {
		h.expect("xdp lan", fmt.Sprintf("udp 192.168.1.10:%d > 198.51.100.9:53", 1000+i), "forward rule")
	}
	before := h.pooled()
	if len(before) != 8 {
		t.Fatalf("%v", before)
	}
	for _, rules := range []string{leastRules + "\npass proto tcp", "set limit states 7777\n" + leastRules, "set limit states 5555\npass"} {
		cfg := h.net.config()
		cfg.Frozen, cfg.later = true, true
		rs := h.parse(rules)
		cfg.Program, cfg.Options = must(ruleset.Compile(rs, h.snapshot()))(t), ruleset.OptionsOf(&rs.Options)
		next := build(t, cfg)
		commit(t, next, nil)
		h.dp = next
		if now := h.pooled(); !maps.Equal(before, now) {
			t.Errorf("%q: the addresses counted %v, and count %v", rules, before, now)
		}
	}
	h.dp.config.Frozen = false
	check(t, h.dp.startGC())
	h.dp.View().KillStates(everyState)
	h.waitEmpty()
	if counts := h.pooled(); len(counts) != 0 {
		t.Errorf("without states, by rules without a pool, there are still %v", counts)
	}
}
