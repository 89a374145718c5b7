package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"weir/internal/pattern"
	"weir/internal/units"
)

func lossChecks() []Check {
	return []Check{
		{ID: "RING-1", Title: "a card's ring has no room", Reads: []string{"links", "statistics", "interfaces.rings", "cpus"}, Worst: Critical, needs: []need{(*view).noNICs}, run: eachNIC(rings)},
		{ID: "MEM-1", Title: "the kernel has no memory for received packets", Reads: []string{"links", "statistics", "sysctls"}, Worst: Critical, needs: []need{(*view).noNICs}, run: eachNIC(buffers)},
		{ID: "STORM-1", Title: "most of what comes is for everybody", Reads: []string{"links", "statistics"}, Worst: Critical, needs: []need{(*view).noCards}, run: eachNIC(storms)},
		{ID: "HANG-1", Title: "a card stops sending", Reads: []string{"links", "statistics"}, Worst: Critical, needs: []need{(*view).noNICs}, run: eachNIC(stalled)},
		{ID: "SQZ-1", Title: "the stack's backlog overflows", Reads: []string{"softnet", "cpus"}, Worst: Critical, needs: []need{(*view).noCores, noSoftnet}, run: backlog},
		{ID: "FC-1", Title: "pause frames stop a link", Reads: []string{"statistics", "interfaces.pause"}, Worst: Critical, needs: []need{(*view).noCards}, run: eachNIC(pauses)},
		{ID: "ERR-1", Title: "frames are damaged, or a link flaps", Reads: []string{"links", "statistics"}, Worst: Critical, needs: []need{(*view).noCards}, run: damaged},
		{ID: "QDISC-1", Title: "a queue without shaping drops packets", Reads: []string{"qdiscs", "links"}, Worst: Warning, needs: []need{noQdiscs}, run: unshapedDrops},
		{ID: "LOCK-1", Title: "several send queues share one queueing discipline", Reads: []string{"qdiscs", "interfaces.tx_queues"}, Worst: Critical, needs: []need{(*view).noNICs, noQdiscs}, run: rootLock},
		{ID: "SHAPE-1", Title: "a shaper drops below its rate, or works on one core", Reads: []string{"qdiscs", "cpus"}, Worst: Critical, needs: []need{noInterfaces, noQdiscs}, run: shaping},
		{ID: "PATH-1", Title: "packets exceed the MTU", Reads: []string{"snmp", "interfaces.mtu"}, Worst: Warning, needs: []need{noSNMP}, run: tooBig},
		{ID: "XDP-2", Title: "XDP loses frames that it redirects", Reads: []string{"statistics"}, Worst: Critical, needs: []need{(*view).noNICs}, run: eachNIC(redirectErrors)},
	}
}

// Losses above these limits matter. At the upper limit, TCP with a round-trip time of 10
// ms does not exceed 120 Mbit/s per flow (Mathis et al., 1997). The lower limit is one
// packet in a hundred thousand.
const (
	lossLimits = 1e-4
	lossHurts  = 1e-5
)

// fewLost is a number of lost packets too small for their share to mean anything. One of
// three hundred on an idle link is no loss of a third of a percent.
const fewLost = 10

// gradeLoss grades a loss by the number of lost packets and their share.
func gradeLoss(lost uint64, share float64) Severity {
	switch {
	case lost < fewLost:
		return Notice
	case share >= lossLimits:
		return Critical
	case share >= lossHurts:
		return Warning
	}
	return Notice
}

func rings(v *view, n *nic, o *outcome) {
	if !n.counted {
		o.lacks(v, "links."+n.Name)
		return
	}
	lost, counter := v.lost(n)
	if v.leftAlone(n) {
		return // HANG-1 says it
	}
	if share := float64(lost) / float64(max(1, lost+n.link.RxPackets)); lost >= fewLost && share >= seen {
		o.add(v.ring(n, lost, counter))
	}
}

// ring tells two cases apart. A larger ring helps against bursts. If the core behind the
// ring is full, a larger ring only adds delay.
func (v *view) ring(n *nic, lost uint64, counter string) Finding {
	share := float64(lost) / float64(lost+n.link.RxPackets)
	f := Finding{
		Severity: gradeLoss(lost, share), Subject: n.Name, core: -1, weight: share,
		Evidence: []string{fmt.Sprintf("%s of %s: %s in %s, %s of what came", counter, n.Name, units.Thousands(int(lost)), seconds(v.Seconds), percent(share))},
	}
	f.bites = f.Severity > Notice
	c := v.load(n)
	switch {
	case c != nil && c.busy >= full:
		f.Says = fmt.Sprintf("%s loses %s of its packets at its ring because %s, which empties it, is full", n.Name, percent(share), c.name())
		f.Evidence, f.cores = append(f.Evidence, c.line()), []int{c.ID}
		f.Remedies = []Remedy{{Text: "do not enlarge the ring: it would only fill later and add delay; relieve " + c.name()}}
		f.relief = true
		f.Expect = "no loss as soon as the core has room"
	case c == nil && len(v.fullCores()) > 0:
		f.cores = idsOf(v.fullCores())
		f.Says = fmt.Sprintf("%s loses %s of its packets at its ring; %s full, and which core empties the ring is not known", n.Name, percent(share), cpuNames(v.fullCores())+" "+beVerb(len(v.fullCores())))
		f.Remedies = []Remedy{{Text: "relieve the full core first; enlarge the ring only if the loss stays"}}
		f.Expect = "less loss, or none"
		f.relief = true
	default:
		v.burst(n, c, &f, lost, share, counter)
		f.Remedies = append(f.Remedies, withoutASPM(n, "keep the slot awake: while it sleeps (ASPM), nothing is taken out of the card")...)
	}
	return f
}

// burst describes a loss while cores have room: packets arrive in bursts that are larger
// than the ring holds until it is emptied.
func (v *view) burst(n *nic, c *core, f *Finding, lost uint64, share float64, counter string) {
	f.plain = fmt.Sprintf("%s loses %s of its packets at its ring", n.Name, percent(share))
	f.Says = f.plain + " while cores have room: bursts are longer than the ring"
	f.cores = idsOf(v.cores) // whichever of them empties the ring
	if c != nil {
		f.Evidence, f.cores = append(f.Evidence, c.line()), []int{c.ID}
	} else if len(v.cores) > 0 {
		f.Evidence = append(f.Evidence, fmt.Sprintf("the cores are %s busy on average", percent(v.meanBusy())))
	}
	if n.Rings == nil {
		f.Remedies = []Remedy{{Command: "ethtool -g " + n.Name, Text: "see whether the ring can grow: its size is not readable here"}}
		if n.Pause != nil && !n.Pause.Tx {
			f.Remedies = append(f.Remedies, Remedy{Command: "ethtool -A " + n.Name + " autoneg on rx on tx on", Text: "if it cannot, as with a card on USB: let it stop its other end (pause frames), and switch flow control on at the switch's port, too; the switch then waits instead of losing"})
		}
		return
	}
	var holds time.Duration
	if q := n.largest(); q != nil && n.Rings.Rx > 0 {
		holds = time.Duration(float64(n.Rings.Rx) / (float64(q.packets) / v.Seconds) * float64(time.Second))
		f.Evidence = append(f.Evidence, fmt.Sprintf("the ring holds %d of at most %d packets: %s at the rate of queue %d", n.Rings.Rx, n.Rings.MaxRx, short(holds), q.n))
	}
	if slow := v.deepest(); slow != nil {
		f.Evidence = append(f.Evidence, fmt.Sprintf("an idle core wakes from %s after %d µs", slow.Name, slow.ExitUsec))
	}
	if n.Rings.Rx > 0 && lost+n.link.RxPackets < uint64(n.Rings.Rx) && !fifo.MatchString(counter) {
		n.keepsPlaces(f, lost)
		return
	}
	if beforeRing(counter, c, holds) {
		v.ownMemory(n, f, share)
		return
	}
	if n.Rings.Rx < n.Rings.MaxRx {
		f.Remedies = []Remedy{{Command: fmt.Sprintf("ethtool -G %s rx %d", n.Name, min(n.Rings.MaxRx, 4*n.Rings.Rx)), Text: "let the ring hold longer bursts; the link may go down for a moment"}}
		f.Expect = "the loss ends; measure, for rings beyond the caches cost packets per second"
		return
	}
	n.interruptSooner(f)
}

// keepsPlaces describes a ring that is full although fewer packets came than it has places: its driver
// does not give the places back, and a longer ring would only fill later.
func (n *nic) keepsPlaces(f *Finding, lost uint64) {
	f.Says = fmt.Sprintf("%s, although all that came (%d) would fit: its driver does not give the ring's places back", f.plain, lost+n.link.RxPackets)
	f.Remedies = []Remedy{n.anew("the driver then fills its ring anew; if the loss comes again, a newer kernel or driver is the cure")}
	if n.XDP != "" {
		f.Remedies = append([]Remedy{{Command: "ip link set dev " + n.Name + " xdp off", Text: "try first without the XDP program, or attach it in generic mode (xdpgeneric): some drivers lose places of what a program passes on"}}, f.Remedies...)
	}
	f.Expect = "no loss at this rate"
}

// fifo matches counters of a card's own memory, in front of the ring.
var fifo = pattern.New(`(?i)fifo|overflow|overrun`)

// longRing is from which time on a ring holds more than an idle core ever lets wait.
const longRing = 100 * time.Millisecond

// beforeRing reports whether a loss can only be that of a card's own memory: the ring would
// hold what comes for a long time, and the core that empties it has nothing else to do.
func beforeRing(counter string, c *core, holds time.Duration) bool {
	return fifo.MatchString(counter) && c != nil && c.busy < half && holds >= longRing
}

// ownMemory describes that: what moves packets out of the card is slower than its link, so
// that bursts at the link's rate overflow it.
func (v *view) ownMemory(n *nic, f *Finding, share float64) {
	f.Says = fmt.Sprintf("%s loses %s of its packets in its own memory (FIFO), before its ring: bursts at the link's rate come faster than the card hands them on", n.Name, percent(share))
	f.Remedies = nil
	if n.Pause == nil || !n.Pause.Tx {
		f.Remedies = append(f.Remedies, Remedy{Command: "ethtool -A " + n.Name + " autoneg on rx on tx on", Text: "let it stop its other end (pause frames), and switch flow control on at the switch's port, too; the switch then waits instead of losing"})
	}
	if below := slowerThan(n.Mbit); below > 0 {
		f.Remedies = append(f.Remedies, n.setLink("autoneg on advertise "+advertise(below), fmt.Sprintf("or let the link run at %s Mbit/s, which the card may keep up with", units.Thousands(below))))
	}
	f.Expect = "the loss ends; a slower link without loss carries more than a fast one with it"
}

// soon is how long a card whose ring overflows may wait before it interrupts, in
// microseconds.
const soon = 20

// interruptSooner makes a card interrupt earlier, if its ring has its maximum size and the card
// waits at all.
func (n *nic) interruptSooner(f *Finding) {
	f.Expect = "the ring is emptied more often"
	switch c := n.Coalesce; {
	case c == nil:
		f.Remedies = []Remedy{{Command: "ethtool -c " + n.Name, Text: "the ring is as large as it gets, and whether the card can interrupt earlier is not readable here: if it can, lower rx-usecs"}}
	case c.Adaptive:
		f.Remedies = []Remedy{{Command: fmt.Sprintf("ethtool -C %s adaptive-rx off rx-usecs %d", n.Name, cmp.Or(min(soon, c.RxUsecs), soon)), Text: "the ring is as large as it gets: let the card interrupt earlier, whatever the load"}}
	case c.RxUsecs > soon:
		f.Remedies = []Remedy{{Command: fmt.Sprintf("ethtool -C %s rx-usecs %d", n.Name, soon), Text: "the ring is as large as it gets: let the card interrupt earlier"}}
	default:
		f.Remedies = []Remedy{{Command: "weir affinity auto --dry-run", Text: "the ring is as large as it gets, and the card interrupts early: spread its packets over more queues, and keep programs off the cores that serve it"}}
		f.Expect = "several cores take a burst"
		if c.RxUsecs > 1 {
			sooner := Remedy{Command: fmt.Sprintf("ethtool -C %s rx-usecs %d", n.Name, c.RxUsecs/2), Text: "let the card interrupt earlier still: a small memory of its own may fill before the ring does"}
			f.Remedies = append([]Remedy{sooner}, f.Remedies...)
		}
	}
}

// deepest returns the enabled idle state that takes longest to wake from; nil if it is
// unknown or short.
func (v *view) deepest() *IdleState {
	var most *IdleState
	for i := range v.Host.IdleStates {
		if s := &v.Host.IdleStates[i]; !s.Disabled && s.ExitUsec >= 50 && (most == nil || s.ExitUsec > most.ExitUsec) {
			most = s
		}
	}
	return most
}

func seconds(s float64) string { return units.Digits(s, 2) + " s" }

// short writes a duration for people: "410 µs".
func short(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", d.Microseconds())
	case d < time.Second:
		return units.Digits(float64(d)/float64(time.Millisecond), 2) + " ms"
	}
	return seconds(d.Seconds())
}

// backlog checks drops of the stack's own queues, which only RPS, tunnels and virtual
// devices use. Squeezes alone mean that there was more work than one round takes. That is
// normal on a busy router.
func backlog(v *view) (o outcome) {
	by := map[bool][]*core{} // by whether the core is full
	for _, c := range v.cores {
		if c.dropped > 0 {
			by[c.busy >= full] = append(by[c.busy >= full], c)
		}
	}
	for _, isFull := range []bool{true, false} {
		if len(by[isFull]) > 0 {
			o.add(v.overflowing(by[isFull], isFull))
		}
	}
	return o
}

func (v *view) overflowing(cores []*core, areFull bool) Finding {
	f := Finding{Subject: cpuNames(cores), core: -1, cores: idsOf(cores)}
	var lost, taken, limited uint64
	for _, c := range cores {
		lost, taken, limited = lost+c.dropped, taken+c.processed, limited+c.flowLimited
		f.Evidence = append(f.Evidence, fmt.Sprintf("softnet of %s: %s taken, %s dropped, %d squeezes", c.name(), v.rate(c.processed), v.rate(c.dropped), c.squeezed), c.line())
	}
	f.weight = float64(lost) / float64(lost+taken)
	f.Severity = gradeLoss(lost, f.weight)
	f.bites = f.Severity > Notice
	f.Says = fmt.Sprintf("the backlog of %s overflows: %s of the packets that it was given are lost", f.Subject, percent(f.weight))
	if len(cores) > 1 {
		f.Says = fmt.Sprintf("the backlogs of %s overflow: %s of the packets that they were given are lost", f.Subject, percent(f.weight))
	}
	if areFull {
		f.Remedies = []Remedy{{Text: "do not enlarge the backlog: relieve " + f.Subject + ", which " + beVerb(len(cores)) + " full"}}
		f.relief = true
		f.Expect = "no loss as soon as the core has room"
		return f
	}
	want := 1000 * 4
	if now, known := v.number("net.core.netdev_max_backlog"); known {
		want = 4 * now
		f.Evidence = append(f.Evidence, fmt.Sprintf("net.core.netdev_max_backlog = %d", now))
	}
	f.Remedies = []Remedy{{Command: fmt.Sprintf("sysctl -w net.core.netdev_max_backlog=%d", want), Text: "make it hold longer bursts"}}
	f.Expect = "the loss ends, as the core has room"
	if limited > 0 {
		f.Evidence = append(f.Evidence, fmt.Sprintf("of them by the flow limit: %s", v.rate(limited)))
		f.Remedies = append(f.Remedies, Remedy{Command: "sysctl -w net.core.flow_limit_cpu_bitmap=0", Text: "the flow limit drops of one large flow first: without it, that flow may use the whole backlog"})
	}
	return f
}

// shapers drop packets by design, because the admin chose their rate.
var shapers = map[string]bool{"htb": true, "hfsc": true, "tbf": true, "cake": true, "ets": true, "drr": true, "qfq": true, "red": true, "netem": true, "ingress": true, "clsact": true}

// managers drop early to tell a sender that its queue grows (RFC 8033, RFC 8289, RFC
// 8290). That is their purpose, not a loss.
var managers = map[string]bool{"codel": true, "fq_codel": true, "pie": true, "fq_pie": true, "fq": true}

func unshapedDrops(v *view) outcome {
	o := eachNIC(tailDrops)(v)
	for i := range v.Interfaces {
		if d := &v.Interfaces[i]; d.Up && userSpace[d.Kind] && v.vpnOf(d.Name) == nil { // weir vpn affinity says it of weir's own
			v.programDrops(d, &o)
		}
		if d := &v.Interfaces[i]; d.Up && fieldBus[d.Kind] {
			v.busDrops(d, &o)
		}
	}
	return o
}

// programQueue is the number of packets that the kernel lets wait for a program (TUN_READQ_SIZE).
const programQueue = 500

// programDrops checks the queue in front of a program that carries a tunnel. The device
// drops what does not fit, whatever discipline is in front of it.
func (v *view) programDrops(d *Interface, o *outcome) {
	l, known := v.link(d.Name)
	share := float64(l.TxDropped) / float64(max(1, l.TxDropped+l.TxPackets))
	if !known || l.TxDropped < fewLost || share < seen {
		return
	}
	f := Finding{
		Severity: min(gradeLoss(l.TxDropped, share), Warning), Subject: d.Name, core: -1, weight: share, kind: "program",
		Says:     fmt.Sprintf("the queue in front of the program of %s drops %s of what it should carry: bursts are longer than the queue", d.Name, percent(share)),
		Evidence: []string{grew("tx_dropped", d.Name, l.TxDropped, v.Seconds)},
		Remedies: []Remedy{{Command: fmt.Sprintf("ip link set dev %s txqueuelen 4096", d.Name), Text: "let it hold longer bursts (the default is 500 packets); tell the program to do so, too, if it makes the device. If its core is full, that only adds delay"}},
		Expect:   "the loss ends, as long as the program keeps up on average",
	}
	if n := d.TxQueueLen; n != nil && *n <= programQueue && !d.guest() {
		if *n < programQueue {
			f.Says = fmt.Sprintf("the queue in front of the program of %s holds %d packets, and drops %s of what it should carry: it is shorter than the kernel's own %d", d.Name, *n, percent(share), programQueue)
		}
		f.Evidence = append(f.Evidence, fmt.Sprintf("txqueuelen of %s: %d", d.Name, *n))
		if !slices.ContainsFunc(v.cores, func(c *core) bool { return c.busy >= full && c.user >= someTunnelTime }) {
			f.kind, f.bites = "short", true
		}
	}
	if d.guest() {
		f.Says = fmt.Sprintf("the guest behind %s does not fetch its packets in time: %s of them are dropped", d.Name, percent(share))
		f.Remedies = []Remedy{
			{Command: fmt.Sprintf("ip link set dev %s txqueuelen 10000", d.Name), Text: "let the queue hold what comes while the guest waits (the default is 500 or 1,000 packets)"},
			{Command: "top -1 -H", Text: "see whether the guest's cores, and its vhost thread, are full or share cores with others: give them cores of their own (pinning), the card more queues, and the guest virtio in place of an emulated card"},
		}
		f.Expect = "the guest gets all its packets, as long as it keeps up on average"
	}
	o.add(f)
}

// tailDrops checks queues of devices without a shaper. A drop there means that the device
// itself was too slow.
func tailDrops(v *view, n *nic, o *outcome) {
	all := v.qdiscsOf(n.Name)
	shaped := false
	for _, q := range all {
		shaped = shaped || shapers[q.Kind] && q.Kind != "ingress" && q.Kind != "clsact"
	}
	for _, q := range all {
		q.Drops -= min(q.Drops, managed(all, &q))
		if q.Parent != "root" || q.Drops == 0 || shaped {
			continue
		}
		share := float64(q.Drops) / float64(q.Drops+q.Packets)
		f := Finding{
			Severity: min(gradeLoss(q.Drops, share), Warning), Subject: n.Name, core: -1, weight: share, bites: true,
			Says:     fmt.Sprintf("the queue in front of %s drops %s of what it should send", n.Name, percent(share)),
			Evidence: []string{q.line(v.Seconds)},
			Remedies: []Remedy{{Command: "tc -s qdisc show dev " + n.Name, Text: "see which of its queues drop: the device, or the core that serves it, does not keep up (RING-1, IRQ-1)"}},
			Expect:   "no loss below the link's rate",
		}
		if managers[q.Kind] {
			f.Severity = Notice
			f.Evidence = append(f.Evidence, q.Kind+" drops packets so that senders slow down before the queue grows long")
		}
		if used, sends, ok := n.wire(v.Seconds); ok && sends && used >= linkFull {
			f.Severity = Notice
			f.Evidence = append(f.Evidence, fmt.Sprintf("%s sends at %s of its link's rate", n.Name, percent(used)))
			f.Remedies = []Remedy{{Command: fmt.Sprintf("tc qdisc replace dev %s root cake bandwidth %dmbit", n.Name, n.Mbit*95/100), Text: "a full link must drop; just below its rate, cake chooses what waits"}}
			f.Expect = "as much loss, of the flows that send most; short delays for the others"
		}
		o.add(f)
	}
}

// managed returns the early drops below a root that only hands packets to others: mq
// includes the drops of its send queues' disciplines.
func managed(all []qdisc, root *qdisc) (drops uint64) {
	if root.Kind != "mq" && root.Kind != "mqprio" {
		return 0
	}
	for i := range all {
		if q := &all[i]; q.Parent != "root" && managers[q.Kind] {
			drops += q.Drops
		}
	}
	return drops
}

func tooBig(v *view) (o outcome) {
	v.tooWide(&o)
	v.refusedByPeers(&o)
	v.refusedByModules(&o)
	var failed, received, split uint64
	for name, now := range v.After.SNMP {
		switch name {
		case "Ip.FragOKs", "Ip6.FragOKs":
			split += Grown(now, v.Before.SNMP[name])
		case "Ip.FragFails", "Ip6.FragFails":
			failed += Grown(now, v.Before.SNMP[name])
		case "Ip.InReceives", "Ip6.InReceives":
			received += Grown(now, v.Before.SNMP[name])
		}
	}
	v.fragmented(&o, split, received)
	big, _ := v.weirReason("up-mtu")
	if failed+big == 0 {
		return o
	}
	share := float64(failed) / float64(max(received, failed))
	grade := Notice
	if failed+big >= fewLost && share >= lossLimits {
		grade = Warning
	}
	f := Finding{
		Severity: grade, core: -1, weight: share,
		Says:     fmt.Sprintf("packets exceed the MTU of the interface they leave by (%s): the hosts do not know the path's MTU", v.rate(failed+big)),
		Evidence: []string{fmt.Sprintf("refused with \"fragmentation needed\" or \"too big\": %s in %s", units.Thousands(int(failed+big)), seconds(v.Seconds))},
		Expect:   "TCP never sends packets that are too big, even if ICMP errors are lost on the way",
	}
	if d := v.mergedByProgram(); d != nil {
		l, _ := v.link(d.Name)
		f.Says = fmt.Sprintf("packets exceed the MTU of the interface they leave by (%s): the program of %s hands over some that were merged, of %d bytes on average", v.rate(failed+big), d.Name, l.RxBytes/l.RxPackets)
		f.Remedies, f.Expect = v.unmerge(), "the program gets, and hands over, packets of at most the MTU"
	}
	for i := range v.Interfaces {
		if d := &v.Interfaces[i]; d.Up && d.MTU > 0 && d.MTU < 1500 && d.Kind != "loopback" {
			f.Evidence = append(f.Evidence, fmt.Sprintf("MTU of %s: %d bytes", d.Name, d.MTU))
			f.Remedies = append(append(f.Remedies, v.wideBridges(d)...), v.clamp(d)...)
		}
	}
	if len(f.Remedies) == 0 {
		f.Remedies = []Remedy{{Command: "ip route show cache", Text: "see which routes have a smaller MTU than their interface (mtu): limit the MSS of TCP on the interface that they leave by"}}
	}
	o.add(f)
	return o
}

// fragmented reports datagrams that the stack sent in fragments (FragOKs of ip_fragment).
// Each costs twice, and is lost with any of its parts.
func (v *view) fragmented(o *outcome, split, received uint64) {
	const much = 0.01 // a share that no single program explains
	share := float64(split) / float64(max(received, split))
	if split < fewLost || share < lossLimits {
		return
	}
	f := Finding{
		Severity: Notice, core: -1, weight: share,
		Says:     fmt.Sprintf("%s of the packets leave in fragments: firewalls and translators on the way may drop them", percent(share)),
		Evidence: []string{fmt.Sprintf("Ip.FragOKs and Ip6.FragOKs grew by %s in %s", units.Thousands(int(split)), seconds(v.Seconds))},
		Expect:   "packets leave whole",
	}
	if share >= much {
		f.Severity = Warning
	}
	for i := range v.Interfaces {
		if d := &v.Interfaces[i]; d.Up && d.MTU > 0 && d.MTU < 1500 && d.Kind != "loopback" {
			f.Evidence = append(f.Evidence, fmt.Sprintf("MTU of %s: %d bytes", d.Name, d.MTU))
			f.Remedies = append(f.Remedies, Remedy{Command: "ip link set dev " + d.Name + " mtu …", Text: "as much as the way below it carries (try with ping -M do -s …)"})
		}
	}
	if len(f.Remedies) == 0 {
		f.Remedies = []Remedy{{Command: "ip -d link show", Text: "see which MTU is smaller than that of the hosts behind this box, and set one mtu on all of them"}}
	}
	o.add(f)
}

// clamp limits what TCP sends through an interface by the MSS that the far end is told:
// the MTU less 40 bytes of headers, or 60 for IPv6. Both nftables and weir only lower the option.
// nftables sees only what the stack forwards, which is little beside weir: there a rule of weir does it.
func (v *view) clamp(d *Interface) []Remedy {
	text := fmt.Sprintf("limit the MSS of TCP to %d (IPv4) and %d (IPv6) through %s", d.MTU-40, d.MTU-60, d.Name)
	if v.Weir == nil {
		const rule = `meta nfproto %s iifname "%s" tcp flags syn / syn,rst tcp option maxseg size set %d; meta nfproto %s oifname "%s" tcp flags syn / syn,rst tcp option maxseg size set %d; `
		both := fmt.Sprintf(rule, "ipv4", d.Name, d.MTU-40, "ipv4", d.Name, d.MTU-40) + fmt.Sprintf(rule, "ipv6", d.Name, d.MTU-60, "ipv6", d.Name, d.MTU-60)
		return []Remedy{{Command: "nft 'table inet mss { chain forward { type filter hook forward priority mangle; " + both + "}; }'", Text: text}}
	}
	rules := fmt.Sprintf(`match on %s inet scrub (max-mss %d)\nmatch on %s inet6 scrub (max-mss %d)`, d.Name, d.MTU-40, d.Name, d.MTU-60)
	all := []Remedy{{Command: changeRules(putBefore("match|pass|block|anchor|antispoof|include|load", rules)), Text: text + ", before all other filter rules"}}
	if d.Kind == "ppp" && d.Parent != "" {
		all = append(all, Remedy{Command: fmt.Sprintf("ip link set dev %s mtu %d", d.Parent, pppMTU+pppHeader),
			Text: fmt.Sprintf("or, with mtu %d in the options of pppd: where the provider can (RFC 4638), %s carries whole packets", pppMTU, d.Name)})
	}
	return all
}

// pppMTU is a full Ethernet packet. pppHeader is what PPPoE and PPP put before it, in
// bytes (RFC 2516).
const pppMTU, pppHeader = 1500, 8

func redirectErrors(v *view, n *nic, o *outcome) {
	if n.XDP == "" {
		return
	}
	lost, known := v.statistic(n.Name, xdpErrors.MatchString)
	if !known {
		o.lacks(v, "statistics."+n.Name+" (errors of XDP)")
		return
	}
	if lost == 0 {
		return
	}
	share := float64(lost) / float64(max(lost, n.link.RxPackets, n.link.TxPackets))
	o.add(Finding{
		Severity: gradeLoss(lost, share), Subject: n.Name, core: -1, weight: share,
		Says:     fmt.Sprintf("XDP on %s loses %s that it redirects: the target's queues have no room or no program", n.Name, v.rate(lost)),
		Evidence: []string{fmt.Sprintf("errors of XDP on %s: %s in %s", n.Name, units.Thousands(int(lost)), seconds(v.Seconds))},
		Remedies: []Remedy{{Command: "weir interfaces", Text: "see the hooks; a target needs as many send queues as there are cores (ethtool -L), and a larger ring where bursts are lost"}},
		Expect:   "no loss between two interfaces",
	})
}
