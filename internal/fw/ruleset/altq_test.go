package ruleset_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"weir/internal/fw/shaper"
)

// mbit returns bytes per second.
func mbit(n float64) uint64 { return uint64(n * 1e6 / 8) }

// TestALTQ checks what becomes of the schedulers of FreeBSD's ALTQ.
func TestALTQ(t *testing.T) {
	for name, c := range map[string]struct {
		rules string
		want  []shaper.Class
	}{
		"hfsc": {
			rules: `altq on em0 hfsc bandwidth 20Mb queue { web, work, rest }
queue web bandwidth 50% priority 3 hfsc(linkshare (5Mb 100 4Mb) realtime (2Mb 500 1Mb) upperlimit 75% ecn)
queue work bandwidth 25% qlimit 80 hfsc(red) { ssh, mail }
queue ssh bandwidth 60% hfsc(realtime 10%)
queue mail hfsc(upperlimit 3Mb)
queue rest bandwidth 1Mb hfsc(default)`,
			want: []shaper.Class{
				{Name: "root_em0", Parent: -1, Children: 3, First: 1, Weight: 1, Max: shaper.Rate{Bytes: mbit(20)}},
				{
					Name: "web", Weight: 4000, ECN: true, Max: shaper.Rate{Bytes: mbit(15)}, MaxPart: true,
					Min: shaper.Rate{Bytes: mbit(1), Burst: mbit(2), For: 500 * time.Millisecond},
				},
				{Name: "work", Weight: 5000, Limit: 80, Children: 2, First: 4},
				{Name: "rest", Weight: 1000, Default: true},
				{Name: "ssh", Parent: 2, Weight: 3000, Min: shaper.Rate{Bytes: mbit(0.5)}, MinPart: true},
				{Name: "mail", Parent: 2, Weight: 5000, Max: shaper.Rate{Bytes: mbit(3)}},
			},
		},
		"cbq": {
			rules: `altq on em0 cbq bandwidth 10Mb queue { std, web }
queue std bandwidth 40% priority 5 cbq(default) { voice, mail }
queue web bandwidth 60% cbq(borrow rio)
queue voice bandwidth 25% priority 0 cbq(borrow)
queue mail bandwidth 1Mb cbq
pass out queue web`,
			want: []shaper.Class{
				{Name: "root_em0", Parent: -1, Children: 2, First: 1, Weight: 1, Max: shaper.Rate{Bytes: mbit(10)}},
				{Name: "std.all", Weight: 4000, Priority: 5, Children: 3, First: 3, Max: shaper.Rate{Bytes: mbit(4)}, MaxPart: true},
				{Name: "web", Weight: 6000, Priority: 1},
				{Name: "voice", Parent: 1, Weight: 1000},
				{Name: "mail", Parent: 1, Weight: 1000, Priority: 1, Max: shaper.Rate{Bytes: mbit(1)}},
				{Name: "std", Parent: 1, Weight: 2000, Priority: 5, Default: true},
			},
		},
		"cbq with packets for a queue with others below it": {
			rules: `altq on em0 cbq bandwidth 10Mb queue { std, web }
queue std bandwidth 4Mb cbq(default)
queue web bandwidth 6Mb cbq(borrow) { img }
queue img bandwidth 8Mb cbq(borrow)
pass out queue web`,
			want: []shaper.Class{
				{Name: "root_em0", Parent: -1, Children: 2, First: 1, Weight: 1, Max: shaper.Rate{Bytes: mbit(10)}},
				{Name: "std", Weight: 4000, Priority: 1, Default: true, Max: shaper.Rate{Bytes: mbit(4)}},
				{Name: "web.all", Weight: 6000, Priority: 1, Children: 2, First: 3},
				{Name: "img", Parent: 2, Weight: 8000, Priority: 1},
				{Name: "web", Parent: 2, Weight: 1, Priority: 1},
			},
		},
		"priq": {
			rules: `altq on em0 priq bandwidth 10Mb queue { low, high }
queue low priq(default)
queue high priority 15 qlimit 100 priq(red) fair host rtt 20ms`,
			want: []shaper.Class{
				{Name: "root_em0", Parent: -1, Children: 2, First: 1, Weight: 1, Max: shaper.Rate{Bytes: mbit(10)}},
				{Name: "low", Weight: 1, Priority: 1, Default: true},
				{Name: "high", Weight: 1, Priority: 15, Limit: 100, Fair: shaper.FairHost, FairSaid: true, RTT: 20 * time.Millisecond},
			},
		},
		"fairq": {
			rules: `altq on em0 fairq bandwidth 10Mb queue { a, b }
queue a bandwidth 3Mb priority 5 fairq(buckets 64 hogs 1Mb default)
queue b bandwidth 50% fairq(linkshare 40% ecn)`,
			want: []shaper.Class{
				{Name: "root_em0", Parent: -1, Children: 2, First: 1, Weight: 1, Fair: shaper.FairFlow, Max: shaper.Rate{Bytes: mbit(10)}},
				{Name: "a", Weight: 3000, Fair: shaper.FairFlow, Default: true},
				{Name: "b", Weight: 4000, Fair: shaper.FairFlow, ECN: true},
			},
		},
		"codel": {
			rules: "altq on em0 codel(target 5 interval 40 ecn) bandwidth 10Mb qlimit 500 tbrsize 3000 queue",
			want: []shaper.Class{{
				Name: "root_em0", Parent: -1, Weight: 1, Fair: shaper.FairFlow, ECN: true, RTT: 40 * time.Millisecond, Limit: 500, Default: true,
				Max: shaper.Rate{Bytes: mbit(10)},
			}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := compiled(t, c.rules+"\n")
			if len(p.Shapers) != 1 || p.Shapers[0].In || p.Shapers[0].Interface != "em0" || p.Shapers[0].Link != (shaper.Link{}) {
				t.Fatalf("shapers %+v; want one for what leaves by em0", p.Shapers)
			}
			if diff := cmp.Diff(c.want, p.Shapers[0].Classes, append(notSaid, cmpopts.IgnoreFields(shaper.Class{}, "Number"))...); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			for i := range p.Rules {
				if n := p.Rules[i].Queue; n != 0 && !hasNumber(p.Shapers[0].Classes, n) {
					t.Errorf("no class has the number %d of rule %d", n, i)
				}
			}
		})
	}
}

// What the file says of rates goes along, for people.
func TestSaidRates(t *testing.T) {
	percent := func(bytes uint64, percent uint8) shaper.Rate { return shaper.Rate{Bytes: bytes, Percent: percent} }
	for rules, want := range map[string][3]shaper.Rate{
		"queue up on em0 bandwidth 20M\nqueue q parent up bandwidth 30M min 1M max 50% default":          {{Bytes: mbit(30)}, {Bytes: mbit(1)}, percent(mbit(10), 50)},
		"queue up on em0 bandwidth 20M\nqueue q parent up bandwidth 25% min 10% default":                 {percent(mbit(5), 25), percent(mbit(2), 10), {}},
		"altq on em0 hfsc bandwidth 20Mb queue { q }\nqueue q bandwidth 50% hfsc(linkshare 4Mb default)": {percent(mbit(10), 50), {}, {}},
		"altq on em0 cbq bandwidth 20Mb queue { q }\nqueue q bandwidth 3Mb cbq(default borrow)":          {{Bytes: mbit(3)}, {}, {}},
		"altq on em0 priq bandwidth 20Mb queue { q }\nqueue q priority 3 priq(default)":                  {},
	} {
		q := compiled(t, rules+"\n").Shapers[0].Classes[1]
		if got := [3]shaper.Rate{q.Bandwidth, q.Min, q.Max}; got != want {
			t.Errorf("%s: %+v, want %+v", rules, got, want)
		}
	}
}

func hasNumber(classes []shaper.Class, n uint16) bool {
	for i := range classes {
		if classes[i].Number == n {
			return true
		}
	}
	return false
}
