package report

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"weir/internal/host/hostinfo"
	"weir/internal/stats"
)

// example is a document with a chart of each kind.
func example() *Document {
	r := rand.New(rand.NewPCG(1, 2))
	around := func(v, share float64) stats.Sample {
		s := make(stats.Sample, 5)
		for i := range s {
			s[i] = v * (1 + share*(r.Float64()-0.5))
		}
		return s
	}
	control := stats.NewControl()
	control.Path, control.Difference = "weir-nat", 0.012
	return &Document{
		Kind: "forward", Title: "How many frames this machine forwards", Command: "weir bench forward --flows 1000,65536,1000000 --raise-conntrack --html report.html",
		Started: time.Date(2026, 3, 1, 12, 30, 0, 0, time.UTC), Version: "0.6.0",
		Machine: hostinfo.Machine{CPU: "Example CPU @ 2.60GHz, family 6 model 85", Cores: 2, Architecture: "amd64", Kernel: "6.18.5", Memory: 16000,
			Governor: "none", Hypervisor: true, Host: "QEMU", ThreadsPerCore: 1, NUMANodes: 1, ClockSource: "tsc",
			Mitigations: map[string]string{"spectre_v2": "Mitigation: Enhanced / Automatic IBRS; IBPB: conditional", "mds": "Vulnerable <no microcode>"},
			NICs:        []hostinfo.NIC{{Name: "eth0", Driver: "virtio_net", Queues: 2, MTU: 1500, Offloads: []string{"tx-checksum", "tso", "gro"}}},
			Conntrack:   &hostinfo.Conntrack{Max: 262144, Buckets: 65536}},
		Verdicts: []string{"weir forwards 6.1 times as many frames as nftables with NAT, and 0.84 of what a bare redirect does.",
			"From 1,000 connections to 1,000,000, weir keeps 58 % of its rate & nftables 52 %."},
		Method:   []string{"Paths in random order, 5 runs of 1 s each, medians with their spread.", "Frames are checked on arrival before any are counted."},
		Sections: []Section{exampleRates(around), exampleCurves(around), exampleTimes(r), exampleLatency(r)},
		Measurements: []Measurement{
			{Name: "weir/64/1000/mpps", Unit: "Mpps", Better: Higher, Runs: around(4, 0.05)},
			{Name: "nft/64/1000/ns", Unit: "ns", Better: Lower, Runs: around(800, 0.05)},
		},
		Control:     &control,
		Skipped:     []Skip{{"nft-nat, 1,000,000 connections", "conntrack holds 262,144 connections"}},
		Attachments: []Attachment{{"gateway.conf", "block in all\npass out on <egress>\n"}},
		Notes:       []string{"A veth pair flatters XDP: on network cards the ratios are smaller."},
	}
}

func exampleRates(around func(float64, float64) stats.Sample) Section {
	bars := func(factor float64) []Bar {
		return []Bar{
			{"generator", around(6.7*factor, 0.03), false}, {"redirect", around(4.4*factor, 0.04), false}, {"kernel", around(1.2*factor, 0.1), false},
			{"nft", around(0.9*factor, 0.08), false}, {"nft-nat", around(0.63*factor, 0.06), false},
			{"weir", around(3.9*factor, 0.05), true}, {"weir-nat", around(3.6*factor, 0.12), true},
		}
	}
	return Section{Title: "Frames per second", Text: []string{"64-byte UDP frames over one core. Generator, path and sink share it."},
		Charts: []Chart{{Title: "weir forwards close to what a bare redirect does", Note: "Whiskers reach from the smallest to the largest run.",
			Bars: &Bars{Label: "million frames per second", Unit: "Mpps", Better: Higher,
				Groups: []BarGroup{{"64 bytes, 1,000 connections, IPv4, udp, 1 core, one direction, sink far", bars(1)}, {"64 bytes, 65,536 connections, IPv4, udp, 1 core, one direction, sink far", bars(0.7)}}}}},
		Tables: []Table{{Title: "All paths", Columns: []Column{{Name: "path", Words: true}, {Name: "rate", Unit: "Mpps"}, {Name: "per frame", Unit: "ns"}},
			Rows: [][]string{{"nft-nat", "0.63", "1,587"}, {"weir-nat", "3.60", "278"}}, Marked: []int{1}}}}
}

func exampleCurves(around func(float64, float64) stats.Sample) Section {
	line := func(name string, ours bool, a, b, c, d float64) Series {
		return Series{name, ours, []Point{{1000, around(a, 0.05)}, {10000, around(b, 0.05)}, {65536, around(c, 0.08)}, {1e6, around(d, 0.2)}}}
	}
	sizes := func(name string, ours bool, a float64) Series {
		return Series{name, ours, []Point{{64, around(a, 0.04)}, {512, around(a*0.97, 0.04)}, {1518, around(a*0.8, 0.04)}}}
	}
	return Section{Title: "What it depends on", Charts: []Chart{
		{Title: "The more connections, the more memory is touched", Curves: &Curves{X: Axis{"connections", "", true}, Y: Axis{"rate", "Mpps", false},
			Series: []Series{line("redirect", false, 4.4, 4.4, 4.3, 4.3), line("kernel", false, 1.2, 1.2, 1.1, 1.1), line("nft", false, 0.9, 0.85, 0.7, 0.45), line("nft-nat", false, 0.63, 0.6, 0.5, 0.33), line("weir", true, 3.9, 3.6, 2.6, 2.2), line("weir-nat", true, 3.6, 3.3, 2.4, 2.1)}}},
		{Title: "The size of a frame costs little", Curves: &Curves{X: Axis{"bytes of a frame", "", false}, Y: Axis{"rate", "Mpps", true},
			Series: []Series{sizes("redirect", false, 4.4), sizes("nft-nat", false, 0.63), sizes("weir-nat", true, 3.6)}}},
	}}
}

func exampleTimes(r *rand.Rand) Section {
	moments := func(f func(s float64) float64) (points []Moment) {
		for i := range 75 {
			s := float64(i) * 0.4
			points = append(points, Moment{s, f(s)})
		}
		return points
	}
	load := func(busy float64) []Moment {
		return moments(func(s float64) float64 { return min(max(busy+0.08*r.NormFloat64()-0.5*math.Exp(-s), 0), 1) })
	}
	return Section{Title: "While it ran", Charts: []Chart{{Title: "Throughput and the load of each core", Times: &Times{
		Panels: []Panel{
			{"throughput", "Gbit/s", []TimeLine{{"kernel", false, moments(func(s float64) float64 { return 4 * (1 - math.Exp(-s/2)) * (1 + 0.05*r.NormFloat64()) })},
				{"weir", true, moments(func(s float64) float64 { return 9 * (1 - math.Exp(-s/2)) * (1 + 0.03*r.NormFloat64()) })}}},
			{"round-trip time", "ms", []TimeLine{{"", true, moments(func(float64) float64 { return 0.4 + 0.2*r.ExpFloat64() })}}},
		},
		Cores: []Core{{0, load(0.96)}, {1, load(0.35)}}, Marks: []Mark{{2, "ramp over"}, {20, "second pair"}},
	}}, exampleParts()}}
}

// exampleParts shows paths one after the other. Two of them are so short that their names
// do not fit beside each other.
func exampleParts() Chart {
	t := &Times{Cores: []Core{{Core: 0}, {Core: 1}},
		Panels: []Panel{{"throughput", "Gbit/s", []TimeLine{{Name: "throughput"}}}, {"frames", "Mpps", []TimeLine{{Name: "offered"}, {Name: "arrived"}}}}}
	begin := 0.0
	for i, p := range []Part{{Name: "kernel", To: 3}, {Name: "nft with masquerade", To: 0.5}, {Name: "nft-nat", To: 0.5}, {Name: "weir", Ours: true, To: 3}, {Name: "weir-nat", Ours: true, To: 3}} {
		p.From, p.To = begin, begin+p.To
		t.Parts = append(t.Parts, p)
		for s := p.From; s < p.To; s += 0.25 {
			add := func(points *[]Moment, v float64) { *points = append(*points, Moment{s, v}, Moment{s + 0.25, v}) }
			add(&t.Panels[0].Series[0].Points, float64(4+i)+math.Sin(3*s))
			add(&t.Panels[1].Series[0].Points, 2+0.5*math.Sin(5*s))
			add(&t.Panels[1].Series[1].Points, 1.8+0.3*math.Sin(5*s))
			add(&t.Cores[0].Points, 1)
			add(&t.Cores[1].Points, 0.15*float64(i+1))
		}
		begin = p.To + 0.1
	}
	return Chart{Title: "What the cores did with each path", Times: t, Note: "The last run of each."}
}

func exampleLatency(r *rand.Rand) Section {
	sample := func(name string, ours bool, scale float64) Distribution {
		s := make(stats.Sample, 4000)
		for i := range s {
			s[i] = scale * math.Exp(0.6*r.NormFloat64())
		}
		return newDistribution(name, ours, s)
	}
	return Section{Title: "Latency and where time goes", Charts: []Chart{
		{Title: "Time to the last byte of an object", CDF: &CDF{X: Axis{"time to last byte", "ms", true}, Marks: []Mark{{100, "100 ms"}},
			Series: []Distribution{sample("kernel", false, 70), sample("nft", false, 90), sample("weir", true, 30)}}},
		{Title: "Where weir's time goes", Flame: &Flame{Unit: "samples", Stacks: []Stack{
			{[]string{"ksoftirqd", "napi_poll", "veth_poll", "bpf_prog_weir_xdp", "state_lookup"}, 410},
			{[]string{"ksoftirqd", "napi_poll", "veth_poll", "bpf_prog_weir_xdp", "nat_rewrite"}, 160},
			{[]string{"ksoftirqd", "napi_poll", "veth_poll", "bpf_prog_weir_xdp"}, 120},
			{[]string{"ksoftirqd", "napi_poll", "veth_poll", "xdp_do_redirect", "dev_map_enqueue"}, 90},
			{[]string{"ksoftirqd", "napi_poll", "veth_poll", "xdp_do_flush"}, 70},
			{[]string{"ksoftirqd", "napi_poll", "page_pool_put_page"}, 45},
			{[]string{"swapper", "do_idle", "<idle>"}, 60}}}},
	}}
}

// Shares at which a distribution keeps its values: evenly spaced, and closer above the
// 99th and 99.9th percentile, where people notice the delay.
const (
	evenShares = 200
	tailShares = 20
)

// newDistribution keeps the visible part of a sample: at most about 250 points, with the
// exact percentiles that reports name, the smallest and the largest value.
func newDistribution(name string, ours bool, s stats.Sample) Distribution {
	d := Distribution{Name: name, Ours: ours}
	sorted := slices.Sorted(slices.Values(s))
	add := func(share float64) {
		i := min(max(int(math.Ceil(share*float64(len(sorted))-1e-9)), 1), len(sorted)) - 1
		p := stats.Point{Value: sorted[i], Share: float64(i+1) / float64(len(sorted))}
		switch last := len(d.Points) - 1; {
		case last >= 0 && d.Points[last].Value == p.Value:
			d.Points[last] = p
		default:
			d.Points = append(d.Points, p)
		}
	}
	if len(sorted) == 0 {
		return d
	}
	for i := range evenShares - 2 {
		add(float64(i) / evenShares)
	}
	for i := range tailShares {
		add(0.99 + 0.009*float64(i)/tailShares)
	}
	for i := range tailShares + 1 {
		add(0.999 + 0.001*float64(i)/tailShares)
	}
	return d
}
