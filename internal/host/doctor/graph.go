package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// scope says when a cause and its effect are about the same thing.
type scope uint8

const (
	onCores  scope = iota // the cause is about at least half of the effect's cores
	onDevice              // both are about the same interface
	onBox                 // both are about the whole machine
)

var scopes = [...]string{"cores", "interface", "machine"}

func (s scope) String() string { return scopes[s] }

// Edge joins two findings of the graph: if both findings are there and about the same thing,
// the cause explains the effect. The effect is shown under its cause, and its own
// remedies are withheld: they cannot help, or not yet.
type Edge struct {
	Cause  string `json:"cause"` // a check's ID, with "/" and the kind of finding if it has several
	Effect string `json:"effect"`
	Scope  scope  `json:"-"`
	Why    string `json:"why"` // why the effect's own remedies do not help
	// Named says that only the cause that the verdict's sentence about a full core names
	// explains the effect: several may bring a core its packets.
	Named bool `json:"named"`
}

// Graph lists which finding explains which. If several explain one, the first counts:
// what stands nearer to the metal comes first. docs/doctor.md shows it.
var Graph = slices.Concat(
	explains("THR-1", onCores, "a cooler machine first", "PWR-1", "CPU-4", "CPU-1", "CPU-2", "RING-1", "SQZ-1", "RSS-1", "RSS-2", "RPS-1", "IRQ-1"),
	explains("PWR-1", onCores, "the clock first: at full speed these cores may have room", "CPU-4", "CPU-1", "CPU-2", "RING-1", "SQZ-1", "RSS-1", "RSS-2", "RPS-1", "IRQ-1"),
	explains("VIRT-1", onCores, "the stolen time first: with it these cores would have room", "CPU-4", "CPU-1", "CPU-2", "CPU-3", "RING-1", "SQZ-1", "RSS-1", "RSS-2", "RPS-1", "IRQ-1", "IRQ-5"),
	explains("STORM-1", onBox, "the storm first: it fills whatever is made larger", "CPU-4", "CPU-1", "CPU-2", "RING-1", "SQZ-1", "RSS-1", "RSS-2", "RPS-1", "IRQ-1", "NEIGH-1", "QDISC-1"),
	explains("FC-1/in", onDevice, "the pause frames first: a card that the other end stops for long cannot send", "HANG-1/send"),
	explains("HANG-1", onDevice, "first make the card send without a pause: each reset takes the link down", "ERR-1/flap", "ERR-1/send", "QDISC-1", "RING-1"),
	explains("MEM-1", onDevice, "the memory first: a longer ring needs more of it", "RING-1"),
	explains("PCI-2", onDevice, "the slot first: while it repeats, nothing is taken out of the ring", "RING-1", "FC-1/out"),
	explains("LINK-1/half", onDevice, "a half-duplex link collides, and must drop", "ERR-1/damage", "ERR-1/send", "QDISC-1", "LOCK-1", "SHAPE-1"),
	explains("LINK-1/mismatch", onDevice, "one end is set and the other negotiates: they disagree on who may send when", "ERR-1/damage", "ERR-1/send", "QDISC-1"),
	explains("ERR-1/flap", onDevice, "the link goes up and down: first make it stay up", "ERR-1/damage", "ERR-1/send", "LINK-1/speed", "QDISC-1"),
	explains("WIFI-1", onDevice, "the air first: what waits for it must be dropped somewhere", "ERR-1/send", "QDISC-1", "LOCK-1", "SHAPE-1"),
	explains("LINK-1/speed", onDevice, "the link is slower than its port: it must drop", "QDISC-1", "LOCK-1", "SHAPE-1"),
	explains("FC-1/in", onDevice, "the other end stops this link", "QDISC-1", "LOCK-1", "SHAPE-1"),
	explains("PCI-1", onDevice, "the bus is the limit: a ring, or a core, empties nothing that has not arrived", "RING-1", "RSS-1", "RSS-2", "RPS-1", "FC-1/out"),
	explains("IRQ-5", onCores, "the interrupts first: they take the time that packets need", "CPU-1", "CPU-2", "RING-1", "SQZ-1", "RSS-1", "RSS-2", "RPS-1", "IRQ-1"),
	explains("LOCK-1", onCores, "the cores wait for a lock: more of them wait longer", "CPU-4", "CPU-1", "CPU-2", "RING-1", "SQZ-1", "RSS-1", "RSS-2", "RPS-1", "IRQ-1"),
	explains("CPU-4", onCores, "first what takes the time: packets do not", "CPU-1", "CPU-2", "RING-1", "SQZ-1", "RSS-1", "RSS-2", "RPS-1", "IRQ-1"),
	explains("LOCK-1", onDevice, "the lock first", "SHAPE-1", "QDISC-1"),
	explains("SHAPE-1", onCores, "the shaper's tree runs on one core, whatever the cards do", "CPU-4", "CPU-1", "RING-1", "SQZ-1", "RSS-1", "RSS-2", "RPS-1", "IRQ-1"),
	explains("CT-1/flood", onBox, "the flood first: each of its packets costs an entry that is thrown away", "CPU-4", "CPU-1", "CPU-2", "RING-1", "SQZ-1", "RSS-1", "RSS-2", "RPS-1", "IRQ-1"),
	explains("CT-1/lists", onBox, "shorter lists first: with them these cores may have room", "CPU-4", "CPU-1", "CPU-2", "RING-1", "SQZ-1", "RSS-1", "RSS-2", "RPS-1", "IRQ-1"),
	explains("MEM-2/receive", onCores, "the full buffers first: copying them takes the time that packets need", "CPU-4", "CPU-1", "CPU-2", "RING-1", "SQZ-1", "RSS-1", "RSS-2", "RPS-1", "IRQ-1"),
	explains("OFF-2/merge", onCores, "first fewer and larger packets: each costs as much as a small one", "TUN-1", "CPU-4", "CPU-1", "RING-1", "SQZ-1", "RSS-1", "RSS-2", "RPS-1", "IRQ-1"),
	explains("TUN-1", onCores, "a hash tells no two packets of the tunnel apart, so that RPS and more queues spread nothing", "CPU-1", "CPU-3", "RING-1", "SQZ-1", "RSS-1", "RSS-2", "RSS-3", "RPS-1", "IRQ-1"),
	explains("TUN-1", onDevice, "the program first: a longer queue in front of it only adds delay", "QDISC-1/program"),
	explains("QDISC-1/short", onDevice, "the short queue first: the program's core has room", "TUN-1"),
	explains("CPU-3/beside", onCores, "the program first: elsewhere, it leaves the packets all of this core", "CPU-1", "RPS-1", "RING-1", "SQZ-1"),
	explains("CPU-3", onCores, "the program first: it takes the time that packets need", "RING-1", "SQZ-1"),
	explains("PPP-1", onCores, "a hash sees one flow: the session first", "RSS-1"),
	explains("IRQ-1", onCores, "the queues first: on cores of their own they may have room", "RPS-1/shared"),
	explains("IRQ-2", onDevice, "the queues first: more of them on the other node's cores cross between the sockets, too", "RSS-2"),
	explains("IFB-1", onDevice, "the device's one queue first", "SHAPE-1"),
	explains("BSD-3", onDevice, "the one queue first: its core is what empties the ring", "BSD-4"),
	explains("RPS-1/needless", onCores, "first without RPS: it hands over each packet, and spreads nothing that the queues have not spread", "CPU-1", "CPU-2", "RING-1", "SQZ-1"),
	brings("PPP-1", "the session first: its packets come to this core"),
	brings("IFB-1", "the device's one queue first"),
	brings("RSS-1", "the queue first: it brings this core its packets"),
	brings("RSS-2", "the queues that are not used first: with them other cores take a part"),
	brings("IRQ-3", "the queue first: it runs on the units of a core that serves another"),
	brings("RPS-1", "the card's few queues first: they bring this core all packets"),
	brings("IRQ-1", "the queues first: several come to this core"),
	loses("HANG-1", "RING-1", "SQZ-1", "ERR-1/damage", "QDISC-1", "SHAPE-1", "TUN-2", "IPSEC-2"),
	explains("CPU-1", onCores, "the full core first: what is longer only fills later, and adds delay", "RING-1", "SQZ-1"),
	explains("CPU-2", onCores, "the full cores first: what is longer only fills later, and adds delay", "RING-1", "SQZ-1"),
)

// brings makes the edge to a full core from what brings it packets.
func brings(cause, why string) []Edge {
	return []Edge{{Cause: cause, Effect: "CPU-1", Scope: onCores, Why: why, Named: true}}
}

// loses makes the edges from losses to what TCP sends again because of them.
func loses(causes ...string) (all []Edge) {
	for _, cause := range causes {
		all = append(all, Edge{Cause: cause, Effect: "PATH-2", Scope: onBox, Why: "the loss here first: TCP sends again what is lost"})
	}
	return all
}

// explains makes the edges from one cause.
func explains(cause string, where scope, why string, effects ...string) (all []Edge) {
	for _, effect := range effects {
		all = append(all, Edge{Cause: cause, Effect: effect, Scope: where, Why: why})
	}
	return all
}

// is reports whether a name in the graph means the finding: its check's ID means all kinds.
func (f *Finding) is(name string) bool {
	return name == f.Check || name == f.Check+"/"+f.kind
}

// within reports whether two findings are about the same thing.
func (s scope) within(cause, effect *Finding) bool {
	switch s {
	case onDevice:
		return cause.Subject == effect.Subject
	case onCores:
		shared := 0
		for _, id := range effect.cores {
			if slices.Contains(cause.cores, id) {
				shared++
			}
		}
		return shared > 0 && 2*shared >= len(effect.cores)
	}
	return true
}

// explain puts findings under their causes. A cause matters as much as what it explains.
func (r *Report) explain(v *view) {
	for i := range r.Findings {
		if f := &r.Findings[i]; len(f.cores) == 0 && f.core >= 0 {
			f.cores = []int{f.core}
		}
	}
	under := r.causes()
	r.nameCause(v, under)
	for i := range r.Findings {
		for c := under[i]; c >= 0; c = under[c] {
			r.Findings[c].Severity = max(r.Findings[c].Severity, r.Findings[i].Severity)
		}
	}
	order := make([]int, 0, len(r.Findings))
	for i := range r.Findings {
		if under[i] < 0 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(r.Findings[b].Severity, r.Findings[a].Severity), cmp.Compare(explaining(under, b), explaining(under, a)))
	})
	sorted := make([]Finding, 0, len(r.Findings))
	for _, root := range order {
		sorted = r.unfold(sorted, root, under)
	}
	r.Findings = sorted
}

// causes returns the index of each finding's cause; -1: it has none.
func (r *Report) causes() []int {
	under := make([]int, len(r.Findings))
	for i := range r.Findings {
		effect := &r.Findings[i]
		under[i] = -1
		for _, e := range Graph {
			if e.Named || !effect.is(e.Effect) || under[i] >= 0 {
				continue
			}
			under[i] = slices.IndexFunc(r.Findings, func(f Finding) bool {
				return f.bites && f.is(e.Cause) && e.Scope.within(&f, effect)
			})
			if under[i] >= 0 {
				effect.wait(e.Why)
			}
		}
	}
	return under
}

// wait withholds what the finding advises, because of its cause.
func (f *Finding) wait(why string) {
	f.Remedies = []Remedy{{Text: why}}
	f.Expect, f.relief = "", false
	f.Says = cmp.Or(f.plain, f.Says)
}

// nameCause puts a full core under what brings it its packets, unless something explains
// either of them.
func (r *Report) nameCause(v *view, under []int) {
	full := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.Check == "CPU-1" })
	cause := r.cause(v)
	if full < 0 || under[full] >= 0 || cause == nil {
		return
	}
	named := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.Check == cause.Check && f.Says == cause.Says })
	e := slices.IndexFunc(Graph, func(e Edge) bool { return e.Named && cause.is(e.Cause) })
	if under[named] < 0 && e >= 0 {
		under[full] = named
		r.Findings[full].wait(Graph[e].Why)
	}
}

// explaining is 1 if a finding explains another, else 0.
func explaining(under []int, i int) int {
	if slices.Contains(under, i) {
		return 1
	}
	return 0
}

// unfold appends a finding, and after it what it explains.
func (r *Report) unfold(to []Finding, i int, under []int) []Finding {
	f := r.Findings[i]
	if c := under[i]; c >= 0 {
		f.Because = r.Findings[c].Check
	}
	to = append(to, f)
	for k := range r.Findings {
		if under[k] == i {
			to = r.unfold(to, k, under)
		}
	}
	return to
}

// DrawGraph draws the graph as a table: each cause once, with what it explains.
func DrawGraph() string {
	var b strings.Builder
	b.WriteString("| This finding | about the same | explains | whose own remedy waits, because |\n|---|---|---|---|\n")
	for i := 0; i < len(Graph); {
		e, effects := Graph[i], []string{}
		for i < len(Graph) && Graph[i].Cause == e.Cause && Graph[i].Scope == e.Scope && Graph[i].Why == e.Why {
			effects = append(effects, Graph[i].Effect)
			i++
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", e.Cause, e.Scope, strings.Join(effects, " "), e.Why)
	}
	return b.String()
}
