package ladder

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"weir/examples"
	"weir/internal/bench/cpu"
	"weir/internal/bench/paths"
	"weir/internal/bench/report"
	"weir/internal/bench/sample"
	"weir/internal/lab"
	"weir/internal/stats"
	"weir/internal/units"
)

// document turns the figures into a report.
func (l *ladder) document() *report.Document {
	d := &report.Document{Kind: "ladder", Title: "What each step between two hosts costs", Command: l.options.Command,
		Version: l.options.Version, Sketch: l.options.Sketch || l.options.Runs < report.LeastRuns, Method: l.method(), Skipped: l.skipped,
		Attachments: []report.Attachment{{Name: "gateway.conf", Text: examples.GatewayConf}, {Name: "gateway.nft", Text: examples.GatewayNft}}}
	l.addControl(d)
	for _, offloads := range l.options.modes() {
		l.addTCP(d, offloads)
	}
	l.addPairs(d)
	l.addCPU(d)
	l.addLatency(d)
	l.addRPM(d)
	l.addFrames(d)
	d.Notes = append(d.Notes,
		"Hosts and firewall share this machine's cores: a lower rate shows a rung's cost, not what it could carry on a machine of its own.",
		"A veth pair is no network card: it flatters XDP, and with offloads on it carries super-packets of up to 64 KiB, of which a firewall sees one where a wire would carry 45 frames.")
	return d
}

func (l *ladder) method() []string {
	o := l.options
	m := []string{
		fmt.Sprintf("Every round does everything once, in random order; %s, medians with smallest and largest run. Differences are tested at 95 %%, each as if it were the only one.",
			units.Plural(o.Runs, "round")),
		fmt.Sprintf("TCP: iperf3 %s, %s of traffic, congestion control %s; goodput at the receiver. %s", l.tool.Version, units.Plural(o.Seconds, "second"), congestion, l.threads()),
		"Hosts, firewall and their wires (veth) are network namespaces of this machine. The direct wire bypasses the firewall.",
		"Rungs: " + l.about() + ".",
	}
	for _, offloads := range o.modes() {
		m = append(m, modeText(offloads))
	}
	if l.cost.Readings > 0 {
		m = append(m, fmt.Sprintf("Charts over time: during every run, cores and receiving hosts are sampled every %v s; %s.", sample.Interval.Seconds(), l.cost))
	}
	if o.has(PartPairs) {
		m = append(m, "Two pairs: hosts with addresses of their own on the same two wires, as behind a switch (macvlan); clients wait until all servers listen and begin together when a pipe is closed.")
	}
	if o.has(PartCPU) {
		m = append(m, fmt.Sprintf("CPU time: one connection at %s Gbit/s; what both iperf3 took, and what interrupts took on all cores – wires and firewall – beyond what they took just before and after, per gigabit that arrives. Runs that did not reach the rate (%.0f %%), or in which interrupts took over %.0f %% of a core without traffic, are left out.",
			units.Digits(o.Rate/1e9, 3), reached*100, cpu.MostQuiet*100))
	}
	if o.has(PartLatency) {
		m = append(m, fmt.Sprintf("Round trips: ICMP echo each %v, answered by the far host's kernel, with the kernel's time of arrival. One way: UDP of %d bytes each %v; jitter as RFC 3550. Loaded: %d TCP connections in the same direction; packets are sent only while these are at work.",
			probeInterval, callLength, probeInterval, loadStreams))
	}
	if o.has(PartRPM) {
		m = append(m, "Round-trips per minute: draft-ietf-ippm-responsiveness, revision 06, with HTTP/2 over TLS, both ends in this process, in intervals of a twentieth of a run instead of 1 s. Both ends work on the firewall's cores: compare rungs, not lines.")
	}
	return m
}

func (l *ladder) threads() string {
	if l.tool.Version.Threads() {
		return "Each connection has a thread of its own."
	}
	return "This version works on one core per process: for several connections as many processes run as there are cores, or connections."
}

func (l *ladder) about() string {
	var parts []string
	for _, r := range l.options.chosen() {
		parts = append(parts, r.name+": "+r.about)
	}
	return strings.Join(parts, "; ")
}

func modeText(o lab.Offloads) string {
	if o == lab.OffloadsOn {
		return "Offloads on: the wires carry TCP's super-packets without checksums, as veth does by itself; weir works at TCX."
	}
	return "Offloads off: the wires carry whole frames with checksums, as a real one would; weir works at XDP; the firewall's GRO joins frames for the kernel and nft; the hosts' GRO is on."
}

// addControl checks the run by the rung that was measured twice, and frames by a control
// of their own. If either fails, there are no verdicts.
func (l *ladder) addControl(d *report.Document) {
	if len(l.figures.again) == 0 && l.frames == nil {
		return
	}
	control := stats.NewControl()
	for _, offloads := range l.options.modes() {
		for p, again := range l.figures.again {
			if p.spot.offloads == offloads {
				control.Add(fmt.Sprintf("%s (offloads %s)", p.spot.rung.name, offloads), l.figures.rates[p], again)
			}
		}
	}
	if l.frames != nil {
		addFramesControl(&control, l.frames.Control)
	}
	d.Control = &control
	n := l.options.Connections[0]
	on, off := l.rate("loopback", lab.OffloadsOn, n), l.rate("loopback", lab.OffloadsOff, n)
	if len(on) > 0 && len(off) > 0 {
		d.Notes = append(d.Notes, "Loopback, which the offloads of the wires do not touch, differs between the two modes by: "+percent(stats.Compare(on, off))+".")
	}
}

func addFramesControl(control *stats.Control, frames stats.Control) {
	if control.Path == "" || frames.Difference > control.Difference {
		control.Path, control.Difference = "frames: "+frames.Path, frames.Difference
	}
	if !frames.OK {
		control.Refuse("frames: " + frames.Why)
	}
}

// slug is a rung's name as part of a measurement's name.
func (r *rung) slug() string { return strings.ReplaceAll(r.name, ", ", "-") }

// spots returns the spots that have a figure, in the order of the ladder.
func spots[V any](l *ladder, figures map[spot]V, o lab.Offloads) (found []spot) {
	for _, r := range l.options.chosen() {
		if _, ok := figures[spot{r, o}]; ok {
			found = append(found, spot{r, o})
		}
	}
	return found
}

func figure(v float64) string { return units.Digits(v, 3) }

func ours(r *rung) bool { return r.firewall == Weir }

// addFrames adds the results of "weir bench forward".
func (l *ladder) addFrames(d *report.Document) {
	if l.frames == nil {
		return
	}
	s := report.Section{Title: "Frames per second", Text: []string{
		"Frames of the generator of \"weir bench forward\", 1,000 UDP flows over one core, which generator, path and sink share. Generator: frames are dropped at the firewall's door. Redirect: a bare XDP redirect, the limit of this machine."}}
	bars := report.Bars{Label: "million frames per second", Unit: "Mpps", Better: report.Higher}
	for _, size := range []int{64, 1518} {
		group := report.BarGroup{Name: fmt.Sprintf("frames of %s bytes", units.Thousands(size))}
		for _, row := range l.frames.Rows {
			if row.Frame != size {
				continue
			}
			group.Bars = append(group.Bars, report.Bar{Name: row.Path, Runs: row.Mpps, Ours: strings.HasPrefix(row.Path, paths.Weir)})
			d.Measure(report.Higher, "Mpps", row.Mpps, "frames", fmt.Sprint(size), row.Path)
		}
		if len(group.Bars) > 0 {
			bars.Groups = append(bars.Groups, group)
			if l.frames.Control.OK {
				d.Notes = append(d.Notes, generatorBound(group)...)
			}
		}
	}
	if len(bars.Groups) == 0 {
		return
	}
	s.Charts = append([]report.Chart{{Title: "How many frames each path forwards", Bars: &bars}}, l.frames.OverTime()...)
	d.Sections = append(d.Sections, s)
	for _, skip := range l.frames.Skipped {
		d.Skipped = append(d.Skipped, report.Skip{What: "frames by " + skip.Path, Reason: skip.Reason})
	}
}

// generatorBound names the paths that are as fast as the generator alone. A run only
// proves that these are not slower.
func generatorBound(group report.BarGroup) (notes []string) {
	i := slices.IndexFunc(group.Bars, func(b report.Bar) bool { return b.Name == paths.Generator })
	if i < 0 {
		return nil
	}
	for _, b := range group.Bars {
		if b.Name != paths.Generator && against(group.Bars[i].Runs, b.Runs) == asFast {
			notes = append(notes, fmt.Sprintf("%s, %s: the generator is the limit, it sends no more.", b.Name, group.Name))
		}
	}
	return notes
}

// most returns the largest number of connections measured on a rung.
func (l *ladder) most(s spot) int {
	most := 0
	for _, n := range l.options.Connections {
		if len(l.figures.rates[point{s, n}]) > 0 {
			most = max(most, n)
		}
	}
	return most
}

func (l *ladder) rate(r string, o lab.Offloads, n int) stats.Sample {
	return l.figures.rates[point{spot{rungOf(r), o}, n}]
}

// core returns the largest median share of a core that iperf3 took. NaN means unknown.
func (l *ladder) core(s spot) float64 {
	if shares := l.figures.hosts[point{s, 1}]; len(shares) > 0 {
		return shares.Median()
	}
	return math.NaN()
}
