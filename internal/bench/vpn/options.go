package vpn

import (
	"cmp"
	"io"
	"slices"
	"time"

	"weir/internal/bench/option"
)

// Cases.
const (
	CaseGSO   = "gso"   // TCP, and veth carries super-packets
	CaseNIC   = "nic"   // TCP, and veth carries frames of 1,500 bytes, with GRO
	CaseUDP   = "udp"   // datagrams of 1,372 bytes
	CaseTCX   = "tcx"   // weir's rules at the tunnel and at the wires
	CaseWide  = "wide"  // TCP as with nic, over a link of several ports
	CaseRPM   = "rpm"   // how fast short requests are answered beside a load, with frames
	CaseAlone = "alone" // one end of weir's, without the other
)

// Cases are the names of all cases, in the order of the report.
var Cases = []string{CaseGSO, CaseNIC, CaseUDP, CaseTCX, CaseWide, CaseRPM, CaseAlone}

// Options choose what to measure.
type Options struct {
	Cases   []string
	Flows   int // connections of TCP
	Runs    int
	Seconds int // of traffic in each run

	Command, Version string
	Program          string // the weir to measure; "": the running one
	Progress         io.Writer

	name string // of namespaces and folder; "": the default
}

// Defaults measure all cases.
func Defaults() Options {
	return Options{Cases: slices.Clone(Cases), Flows: 8, Runs: 5, Seconds: 3}
}

// Check returns the first error in the options.
func (o *Options) Check() error {
	return cmp.Or(
		option.Words("--cases", o.Cases, Cases...),
		option.Within("--flows", 1, 64, o.Flows),
		option.Runs(o.Runs),
		option.Within("--seconds", 1, 100, o.Seconds),
	)
}

func (o *Options) has(name string) bool { return slices.Contains(o.Cases, name) }

// start is about how long it takes to start and stop both ends, and iperf3.
const start = 2500 * time.Millisecond

// Estimate returns about how long it takes.
func (o *Options) Estimate() time.Duration {
	total := 2 * time.Second
	for _, t := range o.tasks() {
		total += time.Duration(o.Runs) * t.estimate(o)
	}
	return total
}
