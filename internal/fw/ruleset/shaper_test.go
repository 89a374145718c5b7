package ruleset_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"weir/internal/fw/ruleset"
	"weir/internal/fw/shaper"
	"weir/pf/resolve"
)

// notSaid leaves out what the file says of rates, for people: TestSaidRates has it.
var notSaid = []cmp.Option{cmpopts.IgnoreFields(shaper.Class{}, "Bandwidth"), cmpopts.IgnoreFields(shaper.Rate{}, "Percent")}

// line is a line with queues in both directions, several levels and all options.
const line = `
queue up on em0 bandwidth 50M max 40M burst 48M for 20ms link { pppoe-ptm, ether-vlan } fair flow rtt 50ms
queue voice parent up bandwidth 4M, min 2M burst 3M for 10ms priority 7 fair host
queue work parent up bandwidth 60% ecn
queue ssh parent work bandwidth 25% min 10%, max 12M qlimit 100
queue rest parent work bandwidth 6M flows 1024 quantum 300 default
queue down on em0 in engine phantom bandwidth 100M overhead -4 mpu 64
queue voice parent down bandwidth 10M
queue other parent down bandwidth 90M default
pass set queue (other, voice)
`

// TestShapers checks what becomes of each word of a queue.
func TestShapers(t *testing.T) {
	p := compiled(t, line)
	bits := func(n uint64) uint64 { return n / 8 }
	want := []shaper.Shaper{
		{
			Interface: "em0", Link: shaper.Link{Known: true, Overhead: 34, Cells: shaper.PTM}, Modem: true,
			Classes: []shaper.Class{
				{
					Name: "up", Parent: -1, Children: 2, First: 1, Weight: 1, Fair: shaper.FairFlow, FairSaid: true, RTT: 50 * time.Millisecond,
					Max: shaper.Rate{Bytes: bits(40e6), Burst: bits(48e6), For: 20 * time.Millisecond},
				},
				{
					Name: "voice", Weight: 4000, Priority: 7, Fair: shaper.FairHost, FairSaid: true, RTT: 50 * time.Millisecond,
					Min: shaper.Rate{Bytes: bits(2e6), Burst: bits(3e6), For: 10 * time.Millisecond},
				},
				{Name: "work", Children: 2, First: 3, Weight: 24000, Fair: shaper.FairFlow, FairSaid: true, ECN: true, RTT: 50 * time.Millisecond},
				{
					Name: "ssh", Parent: 2, Weight: 6000, Fair: shaper.FairFlow, FairSaid: true, ECN: true, RTT: 50 * time.Millisecond, Limit: 100,
					Min: shaper.Rate{Bytes: bits(2.4e6)}, MinPart: true, Max: shaper.Rate{Bytes: bits(12e6)},
				},
				{
					Name: "rest", Parent: 2, Weight: 6000, Default: true, Fair: shaper.FairFlow, FairSaid: true, ECN: true, RTT: 50 * time.Millisecond,
					Flows: 1024, Quantum: 300,
				},
			},
		},
		{
			Interface: "em0", In: true, Link: shaper.Link{Known: true, Overhead: -4, MPU: 64}, Engine: shaper.Phantom,
			Classes: []shaper.Class{
				{Name: "down", Parent: -1, Children: 2, First: 1, Weight: 1, Max: shaper.Rate{Bytes: bits(100e6)}},
				{Name: "voice", Weight: 10000},
				{Name: "other", Weight: 90000, Default: true},
			},
		},
	}
	numbers := map[string]uint16{}
	for i := range p.Shapers {
		for k := range p.Shapers[i].Classes {
			c := &p.Shapers[i].Classes[k]
			switch n := numbers[c.Name]; {
			case c.Children > 0 && c.Number != 0:
				t.Errorf("%s has the number %d, though it has queues below it", c.Name, c.Number)
			case c.Children == 0 && p.Queues[c.Number] != c.Name:
				t.Errorf("the number %d of %s belongs to %q", c.Number, c.Name, p.Queues[c.Number])
			case n != 0 && n != c.Number:
				t.Errorf("%s has the numbers %d and %d", c.Name, n, c.Number)
			case c.Children == 0 && p.QueuePairs[c.Number] != (ruleset.QueuePair{Queue: c.Number, Ack: c.Number}):
				t.Errorf("the number of %s stands for %v", c.Name, p.QueuePairs[c.Number])
			}
			numbers[c.Name], c.Number = c.Number, 0
		}
	}
	if diff := cmp.Diff(want, p.Shapers, notSaid...); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if pair := p.QueuePairs[p.Rules[0].Queue]; pair.Queue != numbers["other"] || pair.Ack != numbers["voice"] {
		t.Errorf("the rule's queues are %v; want %d and %d", pair, numbers["other"], numbers["voice"])
	}
}

// TestShaperOfEach checks that each interface of a root has a tree of its own, with the
// queues that belong there.
func TestShaperOfEach(t *testing.T) {
	p := compiled(t, `
queue line on { em0 em1 } bandwidth 10M
queue line on em1 in bandwidth 20M
queue low parent line bandwidth 1M default
queue high parent line bandwidth 4M
queue high on em1 parent line bandwidth 5M
queue high on em1 in parent line bandwidth 6M
queue only on em0 parent line bandwidth 7M
queue every on em1 parent line bandwidth 8M
`)
	got := map[string]map[string]uint32{}
	for i := range p.Shapers {
		of := map[string]uint32{}
		for _, c := range p.Shapers[i].Classes[1:] {
			of[c.Name] = c.Weight
		}
		got[p.Shapers[i].Name()] = of
	}
	want := map[string]map[string]uint32{
		"em0":    {"low": 1000, "high": 4000, "only": 7000},
		"em1":    {"low": 1000, "high": 5000, "every": 8000},
		"em1 in": {"low": 1000, "high": 6000, "every": 8000},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("weights (-want +got):\n%s", diff)
	}
}

// TestShaperLimits checks that the language refuses what package shaper has no room for.
func TestShaperLimits(t *testing.T) {
	for what, limits := range map[string][2]int{
		"trees":      {resolve.MaxQueueTrees, shaper.MaxShapers},
		"queues":     {resolve.MaxTreeQueues, shaper.MaxClasses},
		"levels":     {resolve.MaxQueueDepth, shaper.MaxDepth},
		"most bits":  {resolve.MaxQueueRate, shaper.MaxRate * 8},
		"least bits": {resolve.MinQueueRate, shaper.MinRate * 8},
	} {
		if limits[0] != limits[1] {
			t.Errorf("%s: the language has %d, the dataplane %d", what, limits[0], limits[1])
		}
	}
}

// TestALTQParts checks that with another rate of the root what ALTQ gives as percentages of it follows, and
// what is missing, as that is all of the queue above. Rates in bits stay, and what is a part of them.
func TestALTQParts(t *testing.T) {
	p := compiled(t, `
altq on em0 cbq bandwidth 100Mb queue { std, ssh, fixed }
queue std bandwidth 20% cbq(default)
queue ssh bandwidth 50% cbq { login, bulk, whole }
queue login bandwidth 10% cbq
queue bulk bandwidth 2Mb cbq
queue whole cbq
queue fixed bandwidth 10Mb cbq { half }
queue half bandwidth 50% cbq
altq on em1 hfsc bandwidth 10Mb queue { a, b }
queue a bandwidth 50% hfsc(default realtime 10% upperlimit 4Mb)
queue b bandwidth 4Mb hfsc(upperlimit (2Mb 100 40%)) { c }
queue c hfsc(upperlimit 50%)
`)
	type rates struct{ min, max uint64 } // bit/s
	want := map[string]rates{            // at half the rate of the root
		"root_em0": {0, 50e6}, "std": {0, 10e6}, "ssh": {0, 25e6}, "login": {0, 2.5e6}, "bulk": {0, 2e6}, "whole": {0, 25e6}, "fixed": {0, 10e6}, "half": {0, 5e6},
		"root_em1": {0, 5e6}, "a": {0.5e6, 4e6}, "b": {0, 2e6}, "c": {0, 2e6},
	}
	got := map[string]rates{}
	for i := range p.Shapers {
		at := p.Shapers[i].At(p.Shapers[i].Classes[0].Max.Bytes / 2)
		for k := range at.Classes {
			c := &at.Classes[k]
			got[c.Name] = rates{c.Min.Bytes * 8, c.Max.Bytes * 8}
		}
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(rates{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
