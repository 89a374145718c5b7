package dataplane

import (
	"errors"
	"net/netip"
	"os"
	"sync/atomic"
	"testing"

	"weir/internal/fw/bpfload"
	"weir/internal/fw/ruleset"
)

// While the pages of the rules before cannot be freed, the new rules are in force all the same.
// The error says so, and Finish frees the pages later.
func TestReplaceRulesUnfinished(t *testing.T) {
	h := newHarness(t, "table <t> { 192.168.1.0/24 }\nblock\npass in on lan0 from <t>\npass out")
	commit(t, h.dp, nil)
	h.reset()
	live := h.dp.live
	broken := must(live.newPage(nil))(t)
	check(t, errors.Join(live.blank.Close(), broken.Close()))
	live.blank = broken

	replace := func(text string) error {
		rs := h.parse(text)
		keep := make([]int, len(rs.Rules))
		for i := range keep {
			keep[i] = ruleset.New
		}
		next := must(h.dp.config.Program.Replace(rs, h.snapshot(), keep))(t)
		err := h.dp.ReplaceRules(next, &h.dp.config.Options)
		if h.dp.config.Program != next || live.program != next {
			t.Errorf("%s\nis not what is recorded as in force", text)
		}
		return err
	}
	const dns = "udp 192.168.1.10:1 > 198.51.100.9:53"
	if err := replace("table <t> { 192.168.1.0/24 }\npass in on lan0 proto tcp from <t>\nblock in proto udp from <t>"); !errors.Is(err, ErrUnfinished) || !h.dp.Unfinished() {
		t.Errorf("got %v, want that something is left", err)
	}
	h.expect("xdp lan", dns, "drop block")
	if err := h.dp.Finish(); !errors.Is(err, ErrUnfinished) || !h.dp.Unfinished() {
		t.Errorf("again: got %v, want that something is left", err)
	}
	changed, err := h.dp.ReplaceTable("t", []ruleset.TableEntry{{Prefix: netip.MustParsePrefix("192.168.0.0/16")}})
	if changed != 2 || err == nil || live.program.TableLen("t") != 1 {
		t.Errorf("%d entries of the table have changed (%v), want 2 and that pages are left", changed, err)
	}
	live.blank = nil
	check(t, h.dp.Finish())
	if h.dp.Unfinished() || live.pages[live.otherPages()] != 0 || len(live.gone) != 0 {
		t.Error("something is left")
	}
	check(t, replace("pass in on lan0 proto udp\npass out"))
	h.expect("xdp lan", dns, "forward rule")
	if h.dp.Unfinished() {
		t.Error("something is left")
	}
}

// Links that a generation does not have run programs with the rules before until they are
// removed. Until then these rules' limiters admit what they did.
func TestLimitersEndAfterLinks(t *testing.T) {
	n := newNet(t)
	h := &harness{tb: t, net: n}
	config := func(text string) Config {
		cfg := n.blank()
		cfg.Program = must(ruleset.Compile(h.parse(text), h.snapshot()))(t)
		return cfg
	}
	first := build(t, config("state limiter s id 1 limit 90\npass in state limiter s"))
	commit(t, first, n.attachments(false))
	link := linkKey{n.wan0, programHook(t, n.dir, n.wan0)}.path(n.dir)
	limit := &first.tables.limiters[1].Limit
	second := build(t, config("pass"))
	early := make(chan bool)
	go func() {
		for atomic.LoadUint32(limit) != 0 {
		}
		_, err := os.Stat(link)
		early <- err == nil
	}()
	commit(t, second, n.attachments(false)[:1])
	if <-early {
		t.Error("the limiter ended while packets still met the rules that use it")
	}
}

// programHook returns a hook that an interface has a link at.
func programHook(tb testing.TB, dir string, ifindex int) (hook bpfload.Hook) {
	links := must(openLinks(dir))(tb)
	defer closeLinks(links)
	for key := range links {
		if key.ifindex == ifindex {
			return key.hook
		}
	}
	tb.Fatalf("interface %d has no link", ifindex)
	return hook
}

// If rules do not come into force although some of their packets have made states, the limit
// that these count under keeps its name.
func TestLimitInUseIsNotTakenBack(t *testing.T) {
	n := &limitNumbers{entries: make([]xdpLimit, 3), now: new(uint32)}
	program := func(name uint64, most uint32) *ruleset.Program {
		return &ruleset.Program{Limits: []ruleset.Limit{{Name: name, Max: most}}}
	}
	must(n.assign(program(7, 10)))(t)
	n.settle()
	n.rules = nil // another generation's
	if numbers := must(n.assign(program(8, 20)))(t); numbers[0] != 1 {
		t.Fatalf("the limit has the number %d, want 1", numbers[0])
	}
	n.entries[1].States = 3
	n.takeBack()
	if l := &n.entries[1]; l.Name != 8 || l.States != 3 || l.Max != 20 {
		t.Errorf("the limit with 3 states is %+v", l)
	}
	if numbers := must(n.assign(program(7, 10)))(t); numbers[0] != 2 {
		t.Errorf("the earlier limit has the number %d, want 2", numbers[0])
	}
	n.takeBack()
	if l := &n.entries[2]; l.Name != 0 || l.Max != 0 {
		t.Errorf("the limit without states is %+v", l)
	}
}
