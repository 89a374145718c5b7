package qos

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"weir/internal/units"
)

// A scene is one load on one line.
type scene struct {
	of     string // the case
	name   string // what distinguishes it from others of the case
	rate   float64
	rtt    time.Duration // of the probes
	flows  []flow        // TCP connections
	floods []flood
	sparse bool // a stream of 1 Mbit/s of another host
	probes bool // ICMP and UDP
	rpm    bool
	ecn    bool
	queues string // weir's queues for what leaves; "": one
	paths  []string
	length time.Duration
	omit   time.Duration // beginning without figures of iperf3
	judged []judged
}

// A flow is a TCP connection.
type flow struct {
	rtt        time.Duration
	congestion string
	down       bool
	class      string  // queue
	pace       float64 // bit/s; 0: as fast as it goes
}

// A flood is UDP that nobody answers to.
type flood struct {
	host  netip.Addr
	ports int
	rate  float64 // bit/s of the line
}

const (
	cubic = "cubic"
	bbr   = "bbr"

	ms = time.Millisecond
)

// queued are the paths with queues.
var queued = []string{PathWeir, PathHeld, PathHTB, PathFqCodel, PathCake}

// scenes returns the scenes of the chosen cases.
func (o *Options) scenes() (all []*scene) {
	makers := map[string]func() []*scene{CaseOne: o.one, CaseBBR: o.oneBBR, CaseMixed: o.mixed, CaseFlood: o.flood, CaseWeights: o.weights,
		CasePing: o.ping, CaseECN: o.marked, CaseRRUL: o.rrul, CaseRPM: o.respond}
	for _, name := range Cases {
		if !o.has(name) {
			continue
		}
		for _, s := range makers[name]() {
			s.of = name
			s.length = time.Duration(o.Seconds) * time.Second
			if s.rate >= 1e9 && !o.Quick {
				s.length *= 3
			}
			if s.ecn && s.omit > 0 && o.Quick {
				s.omit = settled
			}
			s.paths = slices.DeleteFunc(slices.Clone(s.paths), func(p string) bool { return !slices.Contains(o.Paths, p) })
			all = append(all, s)
		}
	}
	return all
}

// megabits writes a rate.
func megabits(rate float64) string { return units.Digits(rate/1e6, 4) + " Mbit/s" }

func line(rate float64, rtt time.Duration) string { return megabits(rate) + " at " + rtt.String() }

// same returns n equal flows.
func same(n int, f flow) []flow { return slices.Repeat([]flow{f}, n) }

func (o *Options) one() (all []*scene) {
	for _, c := range []struct {
		rate  float64
		rtt   time.Duration
		floor float64
	}{{50e6, 100 * ms, 0.95}, {200e6, 50 * ms, 0.95}, {200e6, 100 * ms, 0.88}, {1e9, 10 * ms, 0.90}} {
		all = append(all, &scene{name: line(c.rate, c.rtt), rate: c.rate, paths: queued, flows: same(1, flow{rtt: c.rtt, congestion: cubic}),
			judged: []judged{ofRate.floor(c.floor, 0.97), later, over10s.floor(3, 1), highest.floor(1.6, 1.25), tcpLoss}})
	}
	return all
}

func (o *Options) oneBBR() []*scene {
	return []*scene{{name: line(50e6, 50*ms), rate: 50e6, paths: queued, flows: same(1, flow{rtt: 50 * ms, congestion: bbr}),
		judged: []judged{ofRate.floor(0.97, 0.99), later, over10s.floor(3, 1), highest.floor(1.6, 1.25), tcpLoss.floor(10, 10)}}}
}

// mixedFlows are four CUBIC and four BBR connections at three round-trip times.
func mixedFlows() (flows []flow) {
	for _, c := range []string{cubic, bbr} {
		for i := range 4 {
			flows = append(flows, flow{rtt: []time.Duration{10 * ms, 50 * ms, 100 * ms}[i%3], congestion: c})
		}
	}
	return flows
}

func (o *Options) mixed() (all []*scene) {
	for _, ecn := range []bool{false, true} {
		s := &scene{name: "4 CUBIC and 4 BBR at 10, 50 and 100ms, 50 Mbit/s", rate: 50e6, paths: queued, flows: mixedFlows(),
			judged: []judged{ofRate, fair.floor(0.98, 0.995), fairShort.floor(0.95, 0.98), over10s.floor(1, 0.5), under10s.floor(1, 0.5),
				highest.floor(1.25, 1.1), tcpLoss, bbrShare.floor(1.05, 1.02)}}
		if ecn {
			s.name, s.ecn, s.paths = s.name+", ECN", true, []string{PathWeir}
		}
		all = append(all, s)
	}
	return all
}

func (o *Options) flood() (all []*scene) {
	const rate = 50e6
	for _, ports := range []int{1, 1000} {
		all = append(all, &scene{name: "100 Mbit/s from " + units.Plural(ports, "port") + " on 50 Mbit/s", rate: rate, paths: queued, sparse: true,
			floods: []flood{{loader, ports, 2 * rate}}, judged: []judged{ofRate, sparseLoss.floor(0.1, 0), sparseDelay, over10s.floor(1, 0.5), under10s.floor(1, 0.5)}})
	}
	return all
}

func (o *Options) weights() []*scene {
	const rate = 50e6
	many := func(classes ...string) (flows []flow) {
		for _, c := range classes {
			flows = append(flows, same(4, flow{rtt: 20 * ms, congestion: cubic, class: c})...)
		}
		return flows
	}
	judgedAll := func(share judged) []judged {
		return []judged{ofRate, share, over10s.floor(1, 0.5), under10s.floor(1, 0.5), highest.floor(1.25, 1.1)}
	}
	return []*scene{
		{name: "weights 3:1, 50 Mbit/s", rate: rate, paths: []string{PathWeir, PathHeld}, flows: many("first", "second"), judged: judgedAll(weightError(0.75)),
			queues: "queue first parent up bandwidth 30M\nqueue second parent up bandwidth 10M default\n"},
		{name: "priority with a floor of 10 %, 50 Mbit/s", rate: rate, paths: []string{PathWeir, PathHeld}, flows: many("first", "second"), judged: judgedAll(weightError(0.9)),
			queues: "queue first parent up bandwidth 25M priority 2\nqueue second parent up bandwidth 25M, min 5M priority 1 default\n"},
	}
}

func (o *Options) ping() []*scene {
	return []*scene{{name: "8 CUBIC at 20ms, 50 Mbit/s", rate: 50e6, paths: append([]string{PathNone}, queued...), probes: true,
		flows: same(8, flow{rtt: 20 * ms, congestion: cubic}), judged: []judged{ofRate, pingMedian, pingTail, beyondNone, beyondNoneTail}}}
}

func (o *Options) marked() []*scene {
	s := &scene{name: "8 CUBIC at 20ms, 50 Mbit/s", rate: 50e6, paths: []string{PathWeir}, ecn: true, omit: 5 * time.Second,
		flows: same(8, flow{rtt: 20 * ms, congestion: cubic}), judged: []judged{ofRate, tcpLoss.floor(0.1, 0), marks}}
	single := *s
	single.name, single.flows = line(50e6, 50*ms), same(1, flow{rtt: 50 * ms, congestion: cubic})
	return []*scene{&single, s}
}

func (o *Options) rrul() (all []*scene) {
	for _, rate := range o.Rates {
		for _, rtt := range o.RTTs {
			f := flow{rtt: rtt, congestion: o.Congestion}
			s := &scene{name: line(float64(rate), rtt) + ", " + o.Congestion, rate: float64(rate), rtt: rtt, paths: append([]string{PathNone}, queued...), probes: true, flows: same(4, f)}
			f.down = true
			s.flows = append(s.flows, same(4, f)...)
			s.judged = []judged{ofRate, goodput, ofRateDown, goodputDown, over10s, over10sDown, highest, highestDown, fair, fairShort, pingMedian, pingTail, oneWayTail, tcpLoss, perGigabit, allPerGigabit}
			s.judged = append(s.judged, cores()...)
			all = append(all, s)
		}
	}
	return all
}

func (o *Options) respond() (all []*scene) {
	for _, rate := range o.Rates {
		for _, rtt := range o.RTTs {
			all = append(all, &scene{name: line(float64(rate), rtt), rate: float64(rate), rtt: rtt, paths: queued, rpm: true, judged: []judged{rpmDown, rpmUp}})
		}
	}
	return all
}

// rtts returns all round-trip times of some scenes.
func rtts(all []*scene) (found []time.Duration) {
	for _, s := range all {
		found = append(found, s.rtt)
		for _, f := range s.flows {
			found = append(found, f.rtt)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// rules returns weir's rules for the scene on one of its paths.
func (s *scene) rules(path string) string {
	const rest = "set skip on lo\npass\n"
	options := ""
	switch path {
	case PathNone:
		return rest
	case PathHeld:
		options = " engine queue"
	}
	if s.ecn {
		options += " ecn"
	}
	kilobits := fmt.Sprintf("%.0fK", s.rate/1e3)
	text := "queue up on wan0 bandwidth " + kilobits + options
	if s.queues == "" {
		text += " default"
	}
	text += "\n" + s.queues + "queue down on wan0 in bandwidth " + kilobits + options + " default\n\n" + rest
	for i, f := range s.flows {
		if f.class != "" {
			text += fmt.Sprintf("pass out on wan0 proto tcp to port %d set queue %s\n", firstPort+i, f.class)
		}
	}
	return text
}
