package tune

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"weir/internal/host/cpulist"
	"weir/internal/host/tune/arith"
	"weir/internal/host/tune/db"
	"weir/internal/units"
)

// wish is the wanted value of a device's setting, its calculation, and why it would have
// no effect now.
type wish struct{ value, shown, noNeed string }

// want returns what a record of a device asks for.
func (j *planner) want(r *db.Record, key, found string) wish {
	card, setting, _ := cardKey(key)
	rules := map[string]func(card, found string) wish{
		"queues": j.wantQueues, "rings": j.wantRings, "indirection": j.wantIndirection, "irqs": j.wantInterrupts,
		"rps": j.wantReceive, "xps": j.wantSend, "hash-udp4": j.wantHash, "hash-udp6": j.wantHash,
	}
	switch rule, known := rules[setting]; {
	case known && (setting == "indirection" || perQueueSetting(setting)) && j.requeued(card):
		return wish{noNeed: queuesFirst}
	case known:
		return rule(card, found)
	}
	w := wish{value: r.Value}
	if key == governorKey && !j.host.hasGovernor(r.Value) {
		return wish{noNeed: "the cores have no governor " + r.Value}
	}
	return w
}

// countOf returns the number for a kind in a value like "rx 2 tx 1", 0 for none.
func countOf(value, kind string) int {
	fields := strings.Fields(value)
	for i := 0; i+1 < len(fields); i += 2 {
		if n, err := strconv.Atoi(fields[i+1]); err == nil && fields[i] == kind {
			return n
		}
	}
	return 0
}

// queueCount returns the number of receive queues in a value of "queues", and their kind:
// queues that also send are combined.
func queueCount(value string) (kind string, count int) {
	if n := countOf(value, "combined"); n > 0 {
		return "combined", n
	}
	return "rx", countOf(value, "rx")
}

// receiving returns the number of a card's receive queues, 0 if unknown.
func (j *planner) receiving(card string) int {
	if value, err := j.host.readCard(card, "queues"); err == nil {
		_, n := queueCount(value)
		return n
	}
	files, err := j.host.cardFiles(card, "rps")
	if err != nil {
		return 0
	}
	return len(files)
}

// requeued reports whether the plan gives a card another number of queues.
func (j *planner) requeued(card string) bool {
	return slices.ContainsFunc(j.plan.Changes, func(c Change) bool { return c.Key == cardPrefix+card+".queues" })
}

const queuesFirst = "the card's queues change first; then this is planned again, in the same apply"

func (j *planner) wantQueues(card, found string) wish {
	most, err := j.host.readCard(card, "queues-max")
	kind, now := queueCount(found)
	limit := countOf(most, kind)
	if err != nil || limit == 0 || j.in.Cores == 0 {
		return wish{noNeed: "unknown: the card's maximum number of queues, or the host's cores"}
	}
	cores, ports := j.sharedCores(card)
	ideal := arith.QueuesWanted(cores, ports)
	target := min(ideal, limit)
	shown := fmt.Sprintf("%d cores / %d ports, at least 2 = %d, at most the card's %d", cores, ports, ideal, limit)
	if now > j.in.Cores {
		// Only queues beyond the cores do harm; the others cost nothing.
		target = min(j.in.Cores, limit)
		shown = fmt.Sprintf("no more than the %d cores, at most the card's %d", j.in.Cores, limit)
	}
	value := fmt.Sprintf("%s %d", kind, target)
	if kind == "rx" {
		value = fmt.Sprintf("rx %d tx %d", target, min(target, max(1, countOf(most, "tx"))))
	}
	w := wish{value: value, shown: shown}
	if now > target && now <= j.in.Cores {
		w.noNeed = fmt.Sprintf("it has %d queues, no more than there are cores", now)
	}
	return w
}

// sharedCores returns how many cores are near enough to serve a card, and how many ports
// share them: its own and those of the other cards of its NUMA node.
func (j *planner) sharedCores(card string) (cores, ports int) {
	near, _ := j.host.nearest(card)
	if len(near) == 0 {
		return j.in.Cores, max(1, j.in.Ports)
	}
	ports = j.in.Ports
	for _, other := range j.cards {
		theirs, _ := j.host.nearest(other)
		if other != card && !slices.ContainsFunc(theirs, func(core int) bool { return slices.Contains(near, core) }) {
			ports--
		}
	}
	return min(len(near), j.in.Cores), max(1, ports)
}

// wantRings doubles a ring that misses packets, up to the card's limit.
func (j *planner) wantRings(card, found string) wish {
	most, err := j.host.readCard(card, "rings-max")
	if err != nil {
		return wish{noNeed: "unknown: the card's maximum ring size"}
	}
	now, limit := countOf(found, "rx"), countOf(most, "rx")
	next := min(2*now, limit, largestRing)
	w := wish{value: found, shown: fmt.Sprintf("2 x %d, at most the card's %d and %d = %d", now, limit, largestRing, next)}
	if next > now {
		w.value = strings.Replace(found, fmt.Sprintf("rx %d", now), fmt.Sprintf("rx %d", next), 1)
	}
	missed, known := j.host.number("sys/class/net/" + card + "/statistics/rx_missed_errors")
	overruns, _ := j.host.number("sys/class/net/" + card + "/statistics/rx_fifo_errors")
	switch {
	case j.journal.entry(cardPrefix+card+".rings") != nil:
		w.value = found // it was doubled already; the missed packets may be older
	case !known:
		w.noNeed = "it is unknown whether packets are missed"
	case missed+overruns == 0:
		w.noNeed = "no packet was missed because of a full ring since boot"
	case j.requeued(card):
		return wish{noNeed: queuesFirst}
	}
	return w
}

// largestRing limits doubled rings. In a larger ring, packets only wait longer.
const largestRing = 4096

func (j *planner) wantIndirection(card, _ string) wish {
	n := j.receiving(card)
	if n < 2 {
		return wish{noNeed: "with one queue no table is needed"}
	}
	return wish{value: fmt.Sprintf("equal %d", n), shown: fmt.Sprintf("all %d queues, in turn", n)}
}

// wantHash adds ports to the addresses in the hash.
func (j *planner) wantHash(card, found string) wish {
	value := ""
	for _, letter := range "mvtsdfn" {
		if strings.ContainsRune(found, letter) || strings.ContainsRune("sdfn", letter) {
			value += string(letter)
		}
	}
	w := wish{value: value}
	if j.receiving(card) < 2 && !j.requeued(card) {
		w.noNeed = "with one queue no hash is needed"
	}
	return w
}

// wantInterrupts gives each queue's interrupt a core of its own.
func (j *planner) wantInterrupts(card, found string) wish {
	workers, fields := j.host.workers(card), strings.Fields(found)
	if len(workers) == 0 {
		return wish{noNeed: "unknown: the host's cores"}
	}
	load := j.load(card)
	var text []string
	for range fields {
		// The first of those with the fewest queues is the nearest.
		core := slices.MinFunc(workers, func(a, b int) int { return load[a] - load[b] })
		load[core]++
		text = append(text, strconv.Itoa(core))
	}
	w := wish{
		value: strings.Join(text, " "),
		shown: fmt.Sprintf("%s over the cores %v, no two threads of one core", units.Plural(len(fields), "queue"), workers),
	}
	if j.settled(card) {
		w.noNeed = "each queue's interrupt has a core of its own"
		if j.journal.entry(cardPrefix+card+".irqs") != nil {
			w.value = found
		}
	}
	return w
}

// load returns how many queues of other cards each core serves once the cards before this
// one are planned. Cards that are settled stay where they are.
func (j *planner) load(card string) map[int]int {
	load := map[int]int{}
	for _, other := range j.cards {
		if other != card && j.settled(other) {
			for _, core := range j.places(other) {
				load[core]++
			}
		}
	}
	for _, other := range j.cards {
		if other == card {
			break
		}
		workers := j.host.workers(other)
		if len(workers) == 0 || j.settled(other) {
			continue
		}
		for range j.host.interrupts(other) {
			load[slices.MinFunc(workers, func(a, b int) int { return load[a] - load[b] })]++
		}
	}
	return load
}

// places returns the cores of a card's interrupts, queue by queue; nil if an interrupt
// may go to several cores, or two interrupts share one.
func (j *planner) places(card string) []int {
	found, err := j.host.readCard(card, "irqs")
	if err != nil {
		return nil
	}
	var all []int
	for field := range strings.FieldsSeq(found) {
		cores, err := cpulist.Parse(field)
		if err != nil || len(cores) != 1 || slices.Contains(all, cores[0]) {
			return nil
		}
		all = append(all, cores[0])
	}
	return all
}

// settled reports whether each queue of a card has a core that no other queue of any card
// has. If there are more queues than cores, each core may have an even share.
func (j *planner) settled(card string) bool {
	own := j.places(card)
	load, queues := map[int]int{}, 0
	for _, other := range j.cards {
		queues += len(j.host.interrupts(other))
		for _, core := range j.places(other) {
			load[core]++
		}
	}
	cores := max(1, len(j.host.workers(card)))
	most := max(1, (queues+cores-1)/cores)
	return own != nil && !slices.ContainsFunc(own, func(core int) bool { return load[core] > most })
}

// wantReceive spreads a card's packets over the cores if the card cannot.
func (j *planner) wantReceive(card, found string) wish {
	workers, queues := j.host.workers(card), strings.Fields(found)
	slices.Sort(workers)
	switch {
	case len(workers) < 2:
		return wish{noNeed: "there is one core, or the cores are unknown"}
	case len(queues) > 1 && !j.in.PPPoE:
		return wish{noNeed: fmt.Sprintf("it has %d queues of its own, and --pppoe is not set, so all of them are used", len(queues))}
	}
	masks := slices.Repeat([]string{cpulist.FormatMask(workers)}, len(queues))
	w := wish{value: strings.Join(masks, " "), shown: fmt.Sprintf("the cores %v, no two threads of one core", workers)}
	if j.journal.entry(cardPrefix+card+".rps") == nil && slices.ContainsFunc(queues, chosen) {
		w.noNeed = "cores were already chosen by somebody else"
	}
	return w
}

// chosen reports whether a mask names a core.
func chosen(mask string) bool { return strings.Trim(mask, "0,") != "" }

// wantSend gives each core a send queue of its own.
func (j *planner) wantSend(_, found string) wish {
	queues, cores := strings.Fields(found), j.host.online()
	if len(queues) < 2 || len(cores) == 0 {
		return wish{noNeed: "it has one send queue, or the cores are unknown"}
	}
	masks := make([]string, len(queues))
	for queue := range queues {
		var own []int
		for i, core := range cores {
			if i%len(queues) == queue {
				own = append(own, core)
			}
		}
		masks[queue] = cpulist.FormatMask(own)
	}
	w := wish{value: strings.Join(masks, " "), shown: fmt.Sprintf("%d cores in turn over %d queues", len(cores), len(queues))}
	if slices.ContainsFunc(queues, chosen) {
		w.noNeed = "the driver has already chosen"
	}
	return w
}
