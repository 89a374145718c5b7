package htb_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/fw/htb"
	"weir/internal/fw/shaper"
)

// class is a class of a tree with a name that nobody reads.
func class(parent int, weight uint32, change ...func(*shaper.Class)) shaper.Class {
	c := shaper.Class{Parent: parent, Weight: weight}
	for _, f := range change {
		f(&c)
	}
	return c
}

func least(bytes uint64) func(*shaper.Class) { return func(c *shaper.Class) { c.Min.Bytes = bytes } }
func most(bytes uint64) func(*shaper.Class)  { return func(c *shaper.Class) { c.Max.Bytes = bytes } }
func first(priority uint8) func(*shaper.Class) {
	return func(c *shaper.Class) { c.Priority = priority }
}
func above(child, n int) func(*shaper.Class) {
	return func(c *shaper.Class) { c.First, c.Children = child, n }
}

// share is what a plan gives a class.
type share struct {
	Rate, Ceil        uint64
	Priority, Quantum uint32
}

// Rates are worked out by hand, in bytes per second.
func TestPlanShares(t *testing.T) {
	for _, c := range []struct {
		name    string
		classes []shaper.Class
		want    []share
	}{
		{
			"by weight",
			[]shaper.Class{class(-1, 1, most(6_250_000), above(1, 3)), class(0, 30_000), class(0, 10_000), class(0, 10_000)},
			[]share{{6_250_000, 6_250_000, 0, 1600}, {3_750_000, 6_250_000, 0, 4800}, {1_250_000, 6_250_000, 0, 1600}, {1_250_000, 6_250_000, 0, 1600}},
		},
		{ // 5,750,000 are left: 1,437,500 and 4,312,500
			"a guarantee, and the rest by weight",
			[]shaper.Class{class(-1, 1, most(6_250_000), above(1, 2)), class(0, 1, least(500_000)), class(0, 3)},
			[]share{{6_250_000, 6_250_000, 0, 1600}, {1_937_500, 6_250_000, 0, 1600}, {4_312_500, 6_250_000, 0, 4800}},
		},
		{ // a 64th goes to the lower one
			"priorities",
			[]shaper.Class{class(-1, 1, most(6_400_000), above(1, 2)), class(0, 1, first(5)), class(0, 1)},
			[]share{{6_400_000, 6_400_000, 1, 1600}, {6_300_000, 6_400_000, 0, 1600}, {100_000, 6_400_000, 1, 1600}},
		},
		{
			"a max leaves the rest to others",
			[]shaper.Class{class(-1, 1, most(6_000_000), above(1, 2)), class(0, 1, most(1_000_000)), class(0, 1)},
			[]share{{6_000_000, 6_000_000, 0, 1600}, {1_000_000, 1_000_000, 0, 1600}, {5_000_000, 6_000_000, 0, 1600}},
		},
		{
			"two levels",
			[]shaper.Class{class(-1, 1, most(6_000_000), above(1, 2)), class(0, 1, above(3, 2)), class(0, 1), class(1, 1), class(1, 2)},
			[]share{{6_000_000, 6_000_000, 0, 1600}, {3_000_000, 6_000_000, 0, 1600}, {3_000_000, 6_000_000, 0, 1600},
				{1_000_000, 6_000_000, 0, 1600}, {2_000_000, 6_000_000, 0, 3200}},
		},
		{ // a queue is guaranteed what those below it are: 2,000,000 and half of 4,000,000
			"guarantees below",
			[]shaper.Class{class(-1, 1, most(6_000_000), above(1, 2)), class(0, 1, above(3, 2)), class(0, 1), class(1, 1, least(2_000_000)), class(1, 1)},
			[]share{{6_000_000, 6_000_000, 0, 1600}, {4_000_000, 6_000_000, 0, 1600}, {2_000_000, 6_000_000, 0, 1600},
				{3_000_000, 6_000_000, 0, 1600}, {1_000_000, 6_000_000, 0, 1600}},
		},
		{
			"nothing is left: the least rate",
			[]shaper.Class{class(-1, 1, most(8_000), above(1, 2)), class(0, 1, least(8_000)), class(0, 1)},
			[]share{{8_000, 8_000, 0, 1600}, {8_000, 8_000, 0, 1600}, {1_000, 8_000, 0, 1600}},
		},
	} {
		var got []share
		for _, one := range htb.PlanOf(&shaper.Shaper{Classes: c.classes}, 1500, false).Classes {
			got = append(got, share{one.Rate, one.Ceil, one.Priority, one.Quantum})
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s:\n%s", c.name, diff)
		}
	}
}

func TestPlanLine(t *testing.T) {
	tree := func(l shaper.Link) *shaper.Shaper {
		return &shaper.Shaper{Link: l, Classes: []shaper.Class{class(-1, 1, most(6_500_000))}}
	}
	for _, c := range []struct {
		name string
		link shaper.Link
		l3   bool
		want htb.Plan
	}{
		{"Ethernet", shaper.Link{}, false, htb.Plan{Largest: 1522, Overhead: 24, MPU: 84}},
		{"a device without frames", shaper.Link{}, true, htb.Plan{Largest: 1500}},
		{"cable: 18 bytes beyond the packet, 4 beyond the frame", shaper.Link{Known: true, Overhead: 18, MPU: 64}, false, htb.Plan{Largest: 1522, Overhead: 4, MPU: 64}},
		{"the kernel cannot subtract", shaper.Link{Known: true}, false, htb.Plan{Largest: 1522}},
		{"cells", shaper.Link{Known: true, Overhead: 40, Cells: shaper.ATM}, false, htb.Plan{Largest: 1522, Overhead: 26, ATM: true}},
	} {
		got := *htb.PlanOf(tree(c.link), 1500, c.l3)
		got.Classes, got.Default = nil, 0
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s:\n%s", c.name, diff)
		}
	}
	if p := htb.PlanOf(tree(shaper.Link{Known: true, Cells: shaper.PTM}), 1500, false); p.Classes[0].Rate != 6_400_000 {
		t.Errorf("64 of 65 bytes: %d bytes/s, want 6,400,000", p.Classes[0].Rate)
	}
}

// A burst is 4 ms of the rate, and at least two frames. CoDel's target is a twentieth of the
// round-trip time, or what one and a half frames take.
func TestPlanQueues(t *testing.T) {
	fast := class(-1, 1, most(125_000_000))
	fast.RTT, fast.ECN, fast.Flows, fast.Limit = 40*time.Millisecond, true, 512, 100
	for _, c := range []struct {
		class shaper.Class
		burst uint32
		want  htb.Leaf
	}{
		{fast, 500_000, htb.Leaf{Interval: 40 * time.Millisecond, Target: 2 * time.Millisecond, ECN: true, Limit: 100, Flows: 512, Bytes: 152_200, Memory: 307_200}},
		{class(-1, 1, most(6_250_000)), 25_000, htb.Leaf{Interval: 100 * time.Millisecond, Target: 5 * time.Millisecond, Bytes: 312_500}},
		{class(-1, 1, most(22_830)), 3092, htb.Leaf{Interval: 100 * time.Millisecond, Target: 100 * time.Millisecond, Bytes: 15_220}},
	} {
		p := htb.PlanOf(&shaper.Shaper{Classes: []shaper.Class{c.class}}, 1500, false)
		if p.Classes[0].Burst != c.burst {
			t.Errorf("%d bytes/s: a burst of %d, want %d", c.class.Max.Bytes, p.Classes[0].Burst, c.burst)
		}
		if diff := cmp.Diff(&c.want, p.Classes[0].Leaf); diff != "" {
			t.Errorf("%d bytes/s:\n%s", c.class.Max.Bytes, diff)
		}
	}
}

// Behind the box are the hosts that share a class: the sources of what leaves it towards the Internet.
func TestPlanHosts(t *testing.T) {
	for _, c := range []struct {
		in, uplink bool
		want       htb.Hosts
	}{
		{false, true, htb.Sources},
		{true, true, htb.Destinations},
		{false, false, htb.Destinations}, // downloads, where they leave towards the LAN
		{true, false, htb.Sources},
	} {
		for _, fair := range []shaper.Fairness{shaper.FairHost, shaper.FairHostFlow, shaper.FairFlow} {
			for _, said := range []bool{false, true} {
				of := class(-1, 1, most(1_250_000))
				of.Fair, of.FairSaid = fair, said
				want := c.want
				if !said || fair == shaper.FairFlow {
					want = htb.NoHosts
				}
				got := htb.PlanOf(&shaper.Shaper{In: c.in, Uplink: c.uplink, Classes: []shaper.Class{of}}, 1500, false).Classes[0].Leaf.Hosts
				if got != want {
					t.Errorf("in %t, uplink %t, fairness %d, said %t: %d, want %d", c.in, c.uplink, fair, said, got, want)
				}
			}
		}
	}
}

// CAKE takes a megabyte of memory for each class.
func TestPlanOfManyHosts(t *testing.T) {
	for n, want := range map[int]htb.Hosts{64: htb.Destinations, 65: htb.NoHosts} {
		classes := []shaper.Class{class(-1, 1, most(12_500_000), above(1, n))}
		for range n {
			c := class(0, 1)
			c.FairSaid = true
			classes = append(classes, c)
		}
		if got := htb.PlanOf(&shaper.Shaper{Classes: classes}, 1500, false).Classes[n].Leaf.Hosts; got != want {
			t.Errorf("%d classes: %d, want %d", n, got, want)
		}
	}
}
