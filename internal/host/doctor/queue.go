package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"weir/internal/host/cpulist"
	"weir/internal/host/tune/arith"
	"weir/internal/units"
)

func queueChecks() []Check {
	return []Check{
		{ID: "PPP-1", Title: "a PPPoE session arrives on one queue", Reads: []string{"interfaces.parent", "interfaces.rps", "statistics"}, Worst: Critical, needs: []need{noInterfaces}, run: pppoe},
		{ID: "PPP-2", Title: "a PPPoE session of weir is not up", Reads: []string{"weir.sessions"}, Worst: Critical, run: sessions},
		{ID: "IFB-1", Title: "an intermediate device has one queue", Reads: []string{"interfaces", "links", "qdiscs"}, Worst: Critical, needs: []need{noInterfaces}, run: ifb},
		{ID: "RSS-1", Title: "one queue carries most packets", Reads: []string{"statistics"}, Worst: Critical, needs: []need{(*view).noNICs}, run: eachNIC(imbalance)},
		{ID: "RSS-2", Title: "a card has queues that are not used", Reads: []string{"interfaces.channels", "cpus"}, Worst: Critical, needs: []need{(*view).noCards}, run: unusedQueues},
		{ID: "IRQ-3", Title: "busy queues share the units of one core (hyper-threads)", Reads: []string{"cpus.siblings", "irqs", "statistics"}, Worst: Critical, needs: []need{(*view).noCards, (*view).noCores}, run: siblings},
		{ID: "RPS-1", Title: "a card has fewer queues than the load needs cores", Reads: []string{"statistics", "interfaces.rps", "cpus"}, Worst: Critical, needs: []need{(*view).noNICs, (*view).noCores}, run: tooFewQueues},
		{ID: "IRQ-1", Title: "busy queues share a core", Reads: []string{"irqs", "statistics"}, Worst: Critical, needs: []need{(*view).noCards, (*view).noCores}, run: sharedCore},
		{ID: "IRQ-2", Title: "queues are served on another NUMA node than the card's", Reads: []string{"interfaces.node", "cpus.node", "irqs"}, Worst: Critical, needs: []need{(*view).noCards}, run: remoteNode},
		{ID: "IRQ-6", Title: "queues are served by isolated cores", Reads: []string{"cpus.isolated", "irqs", "statistics"}, Worst: Warning, needs: []need{(*view).noCards, (*view).noCores}, run: isolated},
		{ID: "RSS-3", Title: "UDP is spread by addresses alone", Reads: []string{"interfaces.rss"}, Worst: Warning, needs: []need{(*view).noCards}, run: eachNIC(udpHash)},
		{ID: "RSS-4", Title: "the two directions of a connection arrive on different cores", Reads: []string{"interfaces.rss", "sysctls"}, Worst: Notice, needs: []need{(*view).noCards}, run: symmetry},
		{ID: "DOC-1", Title: "a card has fewer queues than its data sheet says", Reads: []string{"interfaces.pci", "interfaces.channels"}, Worst: Notice, needs: []need{(*view).noCards}, run: eachNIC(dataSheet)},
	}
}

// severe grades a cause of a core's load: critical if the core is full, a warning if it
// is busy.
func (v *view) severe(c *core) Severity {
	switch {
	case c == nil:
		return Notice
	case c.busy >= full && c.forwards():
		return v.critical()
	case c.busy >= busy && c.forwards():
		return Warning
	}
	return Notice
}

// noCards is [view.noNICs] for properties that only hardware has.
func (v *view) noCards(o *outcome) bool {
	if v.noNICs(o) {
		return true
	}
	if v.nics[0].virtual { // then all are virtual
		o.absent = "no physical interface is up"
	}
	return v.nics[0].virtual
}

func (v *view) noNICs(o *outcome) bool {
	if len(v.nics) == 0 {
		if v.Interfaces == nil {
			o.lacks(v, "interfaces")
		} else {
			o.absent = "no physical interface is up"
		}
	}
	return len(v.nics) == 0
}

// unequal is the ratio of the largest queue's packets to an even share above which
// spreading is worthwhile. With two queues that is three quarters of the packets, which
// chance alone does not explain.
const unequal = 1.5

// few is a number of packets between the samples too small to tell an uneven load from
// chance.
const few = 1000

func imbalance(v *view, n *nic, o *outcome) {
	if n.queueCount() == 1 {
		return
	}
	if len(n.queues) == 0 {
		o.lacks(v, "statistics."+n.Name)
		return
	}
	q := n.largest()
	if !n.isUneven(q) {
		return
	}
	if c := v.loaded(q); q.packets >= few && (c == nil && len(q.cores) == 0 || c != nil && c.network() >= quiet) {
		o.add(v.unbalanced(n, q))
	}
}

func (v *view) unbalanced(n *nic, q *queue) Finding {
	c, grade := v.grade(n, q)
	heavy := v.heavy(n, q)
	carry := fmt.Sprintf("queue %d of %s carries %s of the packets", q.n, n.Name, percent(q.share))
	even := fmt.Sprintf("%d queues", len(n.queues))
	if len(heavy) > 1 {
		even = fmt.Sprintf("%d of %d queues", len(heavy), len(n.queues))
		ids, sum := make([]string, len(heavy)), 0.0
		for i, h := range heavy {
			ids[i], sum = strconv.Itoa(h.n), sum+h.share
		}
		carry = fmt.Sprintf("queues %s of %s carry %s of the packets", join(ids), n.Name, percent(sum))
	}
	f := Finding{
		Severity: grade, Subject: n.Name, core: -1, weight: q.share,
		Says:   fmt.Sprintf("%s; an even share of %s is %s", carry, even, percent(float64(len(heavy))/float64(len(n.queues)))),
		Expect: fmt.Sprintf("up to %s times the packets, if there are enough flows: one flow always stays on one queue", units.Digits(q.share*float64(len(n.queues)), 2)),
	}
	f.because = carry
	f.Evidence = []string{v.queueLine(n)}
	if c != nil {
		f.core = c.ID
	}
	for _, h := range heavy {
		if served := v.loaded(h); served != nil {
			f.Evidence = append(f.Evidence, served.line())
		}
	}
	if n.RSS != nil && len(n.RSS.Indirection) > 0 {
		if used := distinct(n.RSS.Indirection); used < len(n.queues) {
			f.Evidence = append(f.Evidence, fmt.Sprintf("the indirection table of %s names %d of %d queues", n.Name, used, len(n.queues)))
			f.because += fmt.Sprintf(": its indirection table names %d of %d", used, len(n.queues))
			f.Remedies = append(f.Remedies, Remedy{Command: fmt.Sprintf("ethtool -X %s equal %d", n.Name, len(n.queues)), Text: "spread the hash over all queues"})
		}
	}
	f.Remedies = append(f.Remedies, n.hashPorts()...)
	for _, h := range heavy {
		f.Remedies = append(f.Remedies, v.spread(n, h)...)
	}
	return f
}

// heavy returns the queue with the most packets, and other queues that also carry too
// much and fill a core.
func (v *view) heavy(n *nic, most *queue) []*queue {
	all := []*queue{most}
	filled := v.fullCores()
	for _, q := range n.queues {
		if q != most && n.isUneven(q) && slices.Contains(filled, v.loaded(q)) {
			all = append(all, q)
		}
	}
	slices.SortFunc(all, func(a, b *queue) int { return a.n - b.n })
	return all
}

// spread returns what the stack can do if the card cannot.
func (v *view) spread(n *nic, q *queue) []Remedy {
	cpus := slices.DeleteFunc(v.cpusFor(n), func(id int) bool {
		c := v.core(id)
		return c != nil && c.busy >= full && !v.program(c)
	})
	if len(cpus) == 0 {
		return nil
	}
	now := ""
	if mask := v.rps(n, q.n); mask != "" {
		now = fmt.Sprintf("its mask is now %s: ", mask)
	}
	return []Remedy{{
		Command: fmt.Sprintf("echo %s > /sys/class/net/%s/queues/rx-%d/rps_cpus", cpulist.FormatMask(cpus), n.Name, q.n),
		Text:    now + "let the stack spread this queue's flows over " + coreList(cpus) + " (RPS); packets that XDP keeps are not spread by it",
	}}
}

// cpusFor returns the cores that may serve a card: those of its NUMA node, one of each
// pair of hyper-threads, and no isolated cores.
func (v *view) cpusFor(n *nic) (ids []int) {
	taken := map[int]bool{}
	for _, c := range v.CPUs {
		far := n.Node != nil && *n.Node >= 0 && c.Node != nil && *c.Node != *n.Node
		if far || taken[c.ID] || c.Isolated {
			continue
		}
		ids = append(ids, c.ID)
		for _, s := range c.Siblings {
			taken[s] = true
		}
	}
	return ids
}

// listed is the number of queues listed one by one.
const listed = 8

// queueLine lists the queues with their packets per second and cores. If there are many,
// it lists the largest.
func (v *view) queueLine(n *nic) string {
	shown := slices.Clone(n.queues)
	more := ""
	if len(shown) > listed {
		slices.SortStableFunc(shown, func(a, b *queue) int { return cmp.Compare(b.packets, a.packets) })
		var rest uint64
		for _, q := range shown[listed/2:] {
			rest += q.packets
		}
		count := len(shown) - listed/2
		more = fmt.Sprintf(", the other %d: %s/s each on average", count, units.Short(float64(rest)/float64(count)/v.Seconds))
		shown = shown[:listed/2]
	}
	parts := make([]string, len(shown))
	for i, q := range shown {
		parts[i] = fmt.Sprintf("queue %d %s/s", q.n, units.Short(float64(q.packets)/v.Seconds))
		if len(q.cores) > 0 {
			parts[i] += " on cpu" + cpulist.Format(q.cores)
		}
	}
	if n.estimate != "" {
		more += " (" + n.estimate + ")"
	}
	return n.Name + ": " + strings.Join(parts, ", ") + more
}

func distinct(list []int) int {
	return len(slices.Compact(slices.Sorted(slices.Values(list))))
}

func unusedQueues(v *view) (o outcome) {
	real := v.realCores()
	if real == 0 {
		o.lacks(v, "cpus")
		return o
	}
	for _, n := range v.nics {
		if n.Channels == nil {
			if n.Driver != "" || n.Driver == "" && n.RxQueues != 1 {
				o.lacks(v, "interfaces."+n.Name+".channels")
			}
			continue
		}
		now, most := n.queueCount(), n.maxQueues()
		if want := min(most, v.queuesFor(n)); now < want {
			o.add(v.unused(n, now, want))
		}
	}
	return o
}

// queuesFor returns the number of queues worth having for a card, which is also what weir
// tune sets. The card shares the cores that may serve it with the other cards there that
// carry packets.
func (v *view) queuesFor(n *nic) int {
	near := v.cpusFor(n)
	ports := 0
	for _, other := range v.nics {
		shares := slices.ContainsFunc(v.cpusFor(other), func(id int) bool { return slices.Contains(near, id) })
		if shares && (!other.counted || other.link.RxPackets > 0) {
			ports++
		}
	}
	return arith.QueuesWanted(len(near), ports)
}

func (v *view) unused(n *nic, now, want int) Finding {
	c := v.load(n)
	grade := v.severe(c)
	q := n.largest()
	if c == nil {
		_, grade = v.grade(n, q)
	}
	if now > 1 && n.isUneven(q) {
		grade = Notice // one queue is too full, and more queues would not change that (RSS-1)
	}
	f := Finding{
		Severity: grade, Subject: n.Name, core: -1, weight: float64(want) / float64(now),
		Says:     fmt.Sprintf("%s uses %d of the %s that it has, on a box with %s", n.Name, now, plural(n.maxQueues(), "queue"), plural(v.realCores(), "core")),
		Evidence: []string{fmt.Sprintf("channels of %s (%s): %d of %d", n.Name, n.Driver, now, n.maxQueues())},
		Remedies: []Remedy{{Command: fmt.Sprintf("ethtool -L %s combined %d", n.Name, want), Text: "use more queues; the link goes down for a moment"}},
		Expect:   fmt.Sprintf("%d cores receive from %s instead of %d", want, n.Name, now),
	}
	if n.Channels.Combined == 0 {
		f.Remedies[0].Command = fmt.Sprintf("ethtool -L %s rx %d", n.Name, want)
	}
	if len(n.queues) > 0 {
		f.Evidence = append(f.Evidence, v.queueLine(n))
	}
	f.on(c)
	f.because = fmt.Sprintf("%s receives on %s of the %d that it has", n.Name, plural(now, "queue"), n.maxQueues())
	return f
}

func udpHash(v *view, n *nic, o *outcome) {
	if n.queueCount() == 1 {
		return
	}
	if n.RSS == nil || n.RSS.Hash == nil {
		o.lacks(v, "interfaces."+n.Name+".rss")
		return
	}
	var short []string
	for _, proto := range []string{"udp4", "udp6"} {
		if fields, known := n.RSS.Hash[proto]; known && !strings.ContainsAny(fields, "fn") {
			short = append(short, proto)
		}
	}
	if len(short) == 0 {
		return
	}
	f := Finding{
		Severity: Notice, Subject: n.Name, core: -1,
		Says:   fmt.Sprintf("%s spreads %s by addresses without ports, so all QUIC, WireGuard or DNS traffic between two hosts arrives on one queue", n.Name, join(short)),
		Expect: "flows between the same two hosts use several queues; later fragments of a packet may arrive on another queue than the first",
	}
	for _, proto := range short {
		f.Evidence = append(f.Evidence, fmt.Sprintf("%s hash of %s: %s", n.Name, proto, n.RSS.Hash[proto]))
		f.Remedies = append(f.Remedies, Remedy{Command: fmt.Sprintf("ethtool -N %s rx-flow-hash %s sdfn", n.Name, proto), Text: "include ports in the hash"})
	}
	if q := n.largest(); n.isUneven(q) {
		f.Severity = min(v.severe(v.loaded(q)), Warning)
	}
	o.add(f)
}

// sheets lists cards whose data sheet promises more than the silicon has.
var sheets = map[string]struct {
	name    string
	claimed int
}{
	"8086:1539": {"Intel I211", 4},
	"8086:1532": {"Intel I211", 4},
}

func dataSheet(v *view, n *nic, o *outcome) {
	if paravirtual[n.Driver] && n.PCI == nil {
		return // it has no silicon
	}
	if n.PCI == nil || n.PCI.ID == "" || n.Channels == nil {
		o.lacks(v, "interfaces."+n.Name+".pci")
		return
	}
	sheet, known := sheets[n.PCI.ID]
	if !known || n.maxQueues() >= sheet.claimed {
		return
	}
	o.add(Finding{
		Severity: Notice, Subject: n.Name, core: -1,
		Says:     fmt.Sprintf("the data sheet of the %s promises %d queues, but %s has %d", sheet.name, sheet.claimed, n.Name, n.maxQueues()),
		Evidence: []string{fmt.Sprintf("%s: device %s, at most %s", n.Name, n.PCI.ID, plural(n.maxQueues(), "queue"))},
		Expect:   "nothing changes: no setting adds queues that the hardware lacks",
		Remedies: []Remedy{{Command: "ethtool -l " + n.Name, Text: fmt.Sprintf("verify it; count on %d cores receiving from %s, and let RPS spread further if they fill", n.maxQueues(), n.Name)}},
	})
}
