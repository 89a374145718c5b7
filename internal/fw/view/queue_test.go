package view

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/fw/dataplane"
	"weir/internal/fw/rundir"
	"weir/internal/fw/shaper"
	"weir/internal/fw/state"
)

// A tree with two looks, a second apart: bulk takes what voice leaves.
func shownQueues() (before, now *Queues) {
	loaded := &rundir.Loaded{Shapers: []shaper.Shaper{
		{Interface: "wan0", Classes: []shaper.Class{
			{Name: "up", Parent: -1, First: 1, Children: 2, Max: shaper.Rate{Bytes: 5_000_000}},
			{Name: "bulk", Parent: 0, Weight: 30_000, Bandwidth: shaper.Rate{Bytes: 3_750_000}, Default: true},
			{
				Name: "voice", Parent: 0, Weight: 10_000, Bandwidth: shaper.Rate{Bytes: 1_250_000, Percent: 25},
				Min: shaper.Rate{Bytes: 1_000_000, Burst: 2_000_000, For: 50 * time.Millisecond},
			},
		}},
		{Interface: "wan0", In: true, Classes: []shaper.Class{{Name: "down", Parent: -1, Default: true, Max: shaper.Rate{Bytes: 2_500_000}}}},
	}}
	engines := []rundir.Engine{
		{Interface: "wan0", Choice: loaded.Shapers[0].Choose(false)},
		{Interface: "wan0", In: true, Choice: loaded.Shapers[1].Choose(false)},
	}
	tree := func(at int, classes ...dataplane.QueueClass) QueueTree {
		t, err := (&reading{loaded: *loaded, names: map[int]string{7: "wan0"}}).queueTree(at, classes, engines)
		if err != nil {
			panic(err) // it asks the kernel for nothing
		}
		return t
	}
	look := func(at time.Duration, bulk, voice, down dataplane.QueueClass, spent time.Duration) *Queues {
		return &Queues{
			Time:  time.Unix(1000, 0).Add(at),
			Trees: []QueueTree{tree(0, dataplane.QueueClass{Max: 5_000_000}, bulk, voice), tree(1, down)},
			Timer: dataplane.QueueTimer{Runs: 2000, Active: 12, Busy: 3, Longest: 81_234, Spent: spent, Late: 1, Unserved: 0},
			Room:  dataplane.QueueRoom{Connections: 262_144, Bytes: 47 << 20},
		}
	}
	before = look(0, dataplane.QueueClass{Sent: 1_000_000, Packets: 1000}, dataplane.QueueClass{Sent: 10_000, Packets: 50}, dataplane.QueueClass{Max: 2_500_000}, 2*time.Millisecond)
	now = look(time.Second,
		dataplane.QueueClass{Sent: 5_900_000, Packets: 5000, Lost: 153_800, Drops: 100, Why: dataplane.QueueDrops{Full: 80, Young: 12, Deaf: 5, Told: 3}, Marked: 7, Backlog: 30_000, Hosts: 2, Connections: 3},
		dataplane.QueueClass{Sent: 110_000, Packets: 550}, dataplane.QueueClass{Max: 2_500_000}, 2*time.Millisecond+450*time.Microsecond)
	for range 60 {
		now.Trees[0].Queues[1].RTT.Count(31)
		now.Trees[0].Queues[0].RTT.Count(31)
	}
	now.Trees[0].Queues[2].RTT.Count(0)
	id := dataplane.QueueCountID{Place: 7, Key: 9}
	before.Trees[0].Queues[1].Top = []QueueConnection{{id: id, sent: 1<<44 - 1000}}
	now.Trees[0].Queues[1].Top = []QueueConnection{
		{
			Kind: dataplane.QueueOfConnection, Way: "tcp 203.0.113.2:50001 (192.168.1.10:40000) -> 198.51.100.7:443", Host: netip.MustParseAddr("192.168.1.10"),
			Given: 2_500_000, Packets: 900, Bytes: 1_200_000, Backlog: 20_000, Lost: state.Loss{Packets: 80, Bytes: 123_040}, id: id, sent: 499_000,
		},
		{Kind: dataplane.QueueOfStateless, Backlog: 30_000, Given: 1000},
		{Kind: dataplane.QueueOfHost, Host: netip.MustParseAddr("192.168.1.11")},
		{Kind: dataplane.QueueOfRest},
	}
	return before, now
}

func TestPrintQueues(t *testing.T) {
	const engines = `wan0 out: engine phantom: no queue of a modem is known behind wan0; no packet waits; bursts of a few milliseconds go through
wan0 in: engine phantom: what comes in has passed the queue of its line already; no packet waits; bursts of a few milliseconds go through
`
	const plain = `wan0 out   RATE   PACKETS  BYTES    DROPPED  MARKED  BACKLOG  HOSTS  CONNECTIONS  RTT
  up       40M    5550     6010000  100      7       30000    2      3            31/31ms
    bulk   39.2M  5000     5900000  100      7       30000    2      3            31/31ms
    voice  800k   550      110000   0        0       0        0      0            <1ms
wan0 in    RATE   PACKETS  BYTES    DROPPED  MARKED  BACKLOG  HOSTS  CONNECTIONS  RTT
  down     0      0        0        0        0       0        0      0            -
` + engines + `timer: 100 ns for each packet
`
	const verbose = `wan0 out (phantom)  SHARE  RATE   BORROWED  PACKETS  BYTES    DROPPED  LOST    MARKED  BACKLOG  HOSTS  CONNECTIONS  RTT
  up                40M    40M    0         5550     6010000  100      153800  7       30000    2      3            31/31ms
    bulk            24M    39.2M  15.2M     5000     5900000  100      153800  7       30000    2      3            31/31ms
    voice           16M    800k   0         550      110000   0        0       0       0        0      0            <1ms
wan0 in (phantom)   SHARE  RATE   BORROWED  PACKETS  BYTES    DROPPED  LOST    MARKED  BACKLOG  HOSTS  CONNECTIONS  RTT
  down              20M    0      0         0        0        0        0       0       0        0      0            -
` + engines + `
DROPPED        FULL  YOUNG  DEAF  TOLD
wan0 out bulk  80    12     5     3

QUEUE          RATE  GIVEN  BACKLOG  PACKETS  BYTES    DROPPED  LOST    HOST          CONNECTION
wan0 out bulk  0     8k     30000    0        0        0        0       -             without a state
wan0 out bulk  4M    20M    20000    900      1200000  80       123040  192.168.1.10  tcp 203.0.113.2:50001 (192.168.1.10:40000) -> 198.51.100.7:443
wan0 out bulk  0     0      0        0        0        0        0       192.168.1.11  all of the host

timer: 2000 runs, 1.23µs each, the longest 81.2µs, 1 late; looks at 12 connections, 3 with backlog; 100 ns for each packet
memory: 47 MiB, with counts for 262,144 connections
`
	const short = `wan0 out  BW   RATE   PKTS   BYTES  DROP_P  DROP_B  MARKED  QLEN_B  BORROW  RTT
  up      40M  40M    5.55k  6.01M  100     154k    7       30k     0       31/31ms
  bulk    24M  39.2M  5k     5.9M   100     154k    7       30k     15.2M   31/31ms
  voice   16M  800k   550    110k   0       0       0       0       0       <1ms
wan0 in   BW   RATE   PKTS   BYTES  DROP_P  DROP_B  MARKED  QLEN_B  BORROW  RTT
  down    20M  0      0      0      0       0       0       0       0       -
`
	for _, c := range []struct {
		name, sort, want string
		form             QueueForm
	}{
		{"plain", "", plain, QueueForm{}},
		{"verbose", "", verbose, QueueForm{Verbose: true}},
		{"as pftop", "rate", short, QueueForm{Short: true, Flat: true}},
	} {
		before, now := shownQueues()
		shown := now.Copy()
		shown.Measure(before)
		shown.Sort(c.sort)
		shown.KeepTop(3, "")
		var b strings.Builder
		if err := shown.Print(&b, c.form); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, b.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
	before, now := shownQueues()
	for i := range before.Trees[0].Queues {
		before.Trees[0].Queues[i].Packets = now.Trees[0].Queues[i].Packets - 2
	}
	var few strings.Builder
	if now.Measure(before); now.TimerCost != 0 {
		t.Errorf("the timer takes %v ns for each of some packets", now.TimerCost)
	}
	if err := now.Print(&few, QueueForm{}); err != nil || !strings.HasSuffix(few.String(), engines+"timer: too few packets to say what it takes for each (1,000 packets in a second at least)\n") {
		t.Errorf("with few packets it prints\n%s", few.String())
	}
	_, now = shownQueues()
	now.Trees[1].Queues[0].Shared, now.Timer.Unserved = 5, 1_500_000
	now.Trees[1].SetBy, now.Trees[1].Rate = "by hand", 1_250_000
	var b strings.Builder
	if err := now.Print(&b, QueueForm{}); err != nil || !strings.HasSuffix(b.String(), `
  rate set by hand: 10M of 20M
`+engines+`5 packets shared a counter with other connections, because there were too many connections
the timer came too late 1 times; 2ms of the lines' time was lost
`) {
		t.Errorf("queues in trouble: %v\n%s", err, b.String())
	}
	b.Reset()
	if err := (&Queues{}).Print(&b, QueueForm{}); err != nil || b.String() != "the rules define no queues\n" {
		t.Errorf("no queues: %v, %q", err, b.String())
	}
}

// Of a tree whose interface does not exist no engine is told.
func TestPrintAbsentQueues(t *testing.T) {
	_, now := shownQueues()
	now.Trees[1].Absent = true
	var b strings.Builder
	if err := now.Print(&b, QueueForm{}); err != nil {
		t.Fatal(err)
	}
	if got := b.String(); !strings.Contains(got, "\nwan0 in: not in force: wan0 does not exist\n") || strings.Contains(got, "wan0 in: engine") || !strings.Contains(got, "wan0 out: engine") {
		t.Errorf("prints\n%s", got)
	}
}

// Of a tree whose packets the kernel holds, nobody counts hosts and dropped bytes; a bfifo does not count
// connections either. If it holds all trees, the timer has nothing to do.
func TestPrintHeldQueues(t *testing.T) {
	for holds, want := range map[string]string{"fq_codel": "-      3 ", "bfifo": "-      - "} {
		before, now := shownQueues()
		now.Trees[0].Holds, now.Trees[1].Holds = holds, holds
		now.Measure(before)
		var b, verbose strings.Builder
		if err := errors.Join(now.Print(&b, QueueForm{}), now.Print(&verbose, QueueForm{Verbose: true})); err != nil {
			t.Fatal(err)
		}
		if got := b.String(); !strings.Contains(got, "100      7       30000    "+want) || !strings.Contains(verbose.String(), " 100      -     7 ") {
			t.Errorf("%s prints\n%s%s", holds, got, verbose.String())
		}
		now.TimerCost = 0
		b.Reset()
		if err := now.Print(&b, QueueForm{}); err != nil || strings.Contains(b.String(), "timer") {
			t.Errorf("%s: no packet is counted, and it prints\n%s", holds, b.String())
		}
	}
}

// Sorting puts the largest value first, and chooses the connections.
func TestSortQueues(t *testing.T) {
	before, now := shownQueues()
	for by, want := range map[string]string{"": "up bulk voice", "drops": "up bulk voice", "packets": "up bulk voice", "backlog": "up bulk voice"} {
		shown := now.Copy()
		shown.Measure(before)
		shown.Sort(by)
		var names []string
		for _, q := range shown.Trees[0].Queues {
			names = append(names, q.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("by %q: %s, want %s", by, got, want)
		}
	}
	now.Trees[0].Queues[2].Drops = 1000
	shown := now.Copy()
	shown.Sort("drops")
	shown.KeepTop(1, "drops")
	if q := shown.Trees[0].Queues; q[0].Name != "voice" || len(q[2].Top) != 1 || q[2].Top[0].Lost.Packets != 80 {
		t.Errorf("by drops: %+v", q)
	}
	if len(now.Trees[0].Queues[1].Top) != 4 {
		t.Error("the copy has changed the queues")
	}
}

// pfctl's form: definitions, and with verbose what has been counted.
func TestPrintQueuesAsPfctl(t *testing.T) {
	_, now := shownQueues()
	for _, test := range []struct {
		name, only string
		verbose    bool
		want       string
	}{
		{name: "all", want: "queue up on wan0 bandwidth 40M\nqueue bulk parent up bandwidth 30M default\nqueue voice parent up bandwidth 25%, min 8M burst 16M for 50ms\nqueue down on wan0 in bandwidth 20M default\n"},
		{name: "another interface", only: "lan0"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var b strings.Builder
			if err := now.PrintPf(&b, test.only, test.verbose); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, b.String()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	var b strings.Builder
	if err := now.PrintPf(&b, "wan0", true); err != nil {
		t.Fatal(err)
	}
	const counted = "  [ pkts:       5000  bytes:    5900000  dropped pkts:    100 bytes: 153800 ]\n"
	if !strings.Contains(b.String(), "queue bulk parent up bandwidth 30M default\n"+counted) {
		t.Errorf("it says\n%s", b.String())
	}
}

// Times below a millisecond are not known more exactly, and are not 0.
func TestPrintRTT(t *testing.T) {
	for want, samples := range map[string][]uint32{
		"-": nil, "<1ms": {0, 0, 0}, "<1/1ms": {0, 0, 1, 1}, "<1/9ms": {0, 0, 9}, "1/1ms": {1}, "3/7ms": {3, 3, 7},
	} {
		var rtt dataplane.QueueRTT
		for _, ms := range samples {
			rtt.Count(ms)
		}
		if got := rttText(&rtt); got != want {
			t.Errorf("%v: %q, want %q", samples, got, want)
		}
	}
}
