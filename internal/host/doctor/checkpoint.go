package doctor

import (
	"fmt"
	"slices"
	"strings"

	"weir/internal/host/cpulist"
	"weir/internal/pattern"
)

// Lines of Check Point's two tables. fw ctl affinity -l lists the cores of interfaces and
// firewall instances. cpmq get -v lists the interrupt and core of each queue of a
// multi-queue interface.
var (
	splitDevice = pattern.New(`^([a-zA-Z][\w.-]*): CPU (\d+(?: \d+)*)$`)
	splitMulti  = pattern.New(`^Interface ([\w.-]+): has multi queue enabled$`)
	splitActive = pattern.New(`^Active (\w+) interfaces:$`)
	splitState  = pattern.New(`^([\w.-]+) \[(On|Off)\]$`)
	splitNumber = pattern.New(`^The rx_num for (\w+) is: (\d+)(?: \(default\))?$`)
	splitHead   = pattern.New(`^multi-queue affinity for (\w+) interfaces:$`)
	splitTitle  = pattern.New(`^irq\s*\|\s*cpu\s*\|\s*queue$`)
	splitQueue  = pattern.New(`^(\d+)\s+(\d+)\s+TxRx-(\d+)$`)
	splitWorker = pattern.New(`^(?:fw|fwk)\d*_\d+$`)
	// The list may also have programs (fwd, vpnd, cvpnd: Check Point's sk97638).
	// Their names end with a d and have no number. Names of interfaces have a number.
	splitProgram = pattern.New(`^[a-z][a-z.]*d$`)
	// Prose around the tables: a sentence. No line of a table looks like one.
	splitProse = pattern.New(`^\S+(?: +\S+){3,}[.:!?]$`)
)

// splitReader collects the rows of both tables.
type splitReader struct {
	s      *Snapshot
	driver string              // driver of the part being read
	multi  map[string][]string // multi-queue interfaces, by driver
	began  bool
	titled bool // the title above the queues' rows was read
	rows   int
	prose  int // number of lines around the tables
}

// readSplit reads one of the tables, or both, also from within a page of prose. A line
// that is neither a table's nor a sentence is an error.
func readSplit(text string) (*Snapshot, error) {
	r := &splitReader{s: &Snapshot{Host: Host{System: "Check Point"}}, multi: map[string][]string{}}
	for number, line := range lines(text) {
		line = strings.TrimSpace(line)
		known, err := r.line(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		if !known && r.began && !splitProse.MatchString(line) {
			return nil, fmt.Errorf("line %d: %q", number, line)
		}
		r.began = r.began || known
		if !known {
			r.prose++
		}
	}
	if !r.began || !r.whole() {
		return nil, errOther
	}
	r.s.cpusOfTables()
	if r.prose > 0 {
		r.s.Source = fmt.Sprintf(" (%s around the tables left out)", plural(r.prose, "line"))
	}
	return r.s, nil
}

// whole reports whether a whole table was read, and not only a line that looks like one.
// fw ctl affinity -l lists both interfaces and instances. cpmq get -v has a title above
// its rows.
func (r *splitReader) whole() bool {
	return r.rows > 0 || len(r.s.Interfaces) > 0 && len(r.s.Workers) > 0
}

// line reads a line of a table. It returns known == false for other lines.
func (r *splitReader) line(line string) (known bool, err error) {
	if m := splitDevice.FindStringSubmatch(line); m != nil {
		return true, r.device(m[1], m[2])
	}
	if m := splitMulti.FindStringSubmatch(line); m != nil {
		r.interfaceOf(m[1])
		return true, nil
	}
	if m := splitActive.FindStringSubmatch(line); m != nil {
		r.driver, r.titled = m[1], false
		return true, nil
	}
	if m := splitState.FindStringSubmatch(line); m != nil && r.driver != "" {
		n := r.interfaceOf(m[1])
		n.Driver = r.driver
		if m[2] == "On" {
			r.multi[r.driver] = append(r.multi[r.driver], m[1])
		}
		return true, nil
	}
	if m := splitNumber.FindStringSubmatch(line); m != nil && r.driver != "" {
		for _, name := range r.multi[m[1]] {
			r.interfaceOf(name).RxQueues = whole(m[2])
		}
		return true, nil
	}
	if m := splitHead.FindStringSubmatch(line); m != nil && r.multi[m[1]] != nil {
		r.driver, r.titled = m[1], false
		return true, nil
	}
	if splitTitle.MatchString(line) && r.driver != "" {
		r.titled = true
		return true, nil
	}
	if m := splitQueue.FindStringSubmatch(line); m != nil && r.titled {
		r.rows++
		return true, r.queue(m[1], m[2], m[3])
	}
	return false, nil
}

// device notes the cores of an interface or an instance. It ignores programs.
func (r *splitReader) device(name, cpus string) error {
	list, err := cpulist.Parse(strings.ReplaceAll(cpus, " ", ","))
	if err != nil {
		return err
	}
	if splitWorker.MatchString(name) {
		for _, id := range list {
			r.s.Workers = append(r.s.Workers, Worker{name, id})
		}
		return nil
	}
	if splitProgram.MatchString(name) || len(list) > 1 && !strings.ContainsAny(name, "0123456789") {
		return nil
	}
	n := r.interfaceOf(name)
	n.RxQueues = max(n.RxQueues, 1)
	r.s.IRQs = append(r.s.IRQs, IRQ{Name: name, Interface: name, Affinity: cpulist.Format(list)})
	return nil
}

// queue reads the row of a queue. If there is only one multi-queue interface, the queue
// is that interface's.
func (r *splitReader) queue(irq, cpu, queue string) error {
	multi := r.multi[r.driver]
	if len(multi) != 1 {
		return fmt.Errorf("%s with several queues, and the table does not say whose queue %s is", plural(len(multi), "interface"), queue)
	}
	list, err := cpulist.Parse(cpu)
	if err != nil {
		return err
	}
	name := multi[0]
	r.s.IRQs = append(r.s.IRQs, IRQ{Number: whole(irq), Name: name + "-TxRx-" + queue, Interface: name, Affinity: cpulist.Format(list)})
	return nil
}

func (r *splitReader) interfaceOf(name string) *Interface {
	if i := slices.IndexFunc(r.s.Interfaces, func(n Interface) bool { return n.Name == name }); i >= 0 {
		return &r.s.Interfaces[i]
	}
	r.s.Interfaces = append(r.s.Interfaces, Interface{Name: name, Kind: "physical", Up: true})
	return &r.s.Interfaces[len(r.s.Interfaces)-1]
}

// cpusOfTables adds the cores that the tables name. The box may have more.
func (s *Snapshot) cpusOfTables() {
	seen := map[int]bool{}
	for _, irq := range s.IRQs {
		list, err := cpulist.Parse(irq.Affinity)
		if err != nil {
			continue // the text was formatted from cores
		}
		for _, id := range list {
			seen[id] = true
		}
	}
	for _, w := range s.Workers {
		seen[w.CPU] = true
	}
	for _, id := range sortedKeys(seen) {
		s.CPUs = append(s.CPUs, CPU{ID: id})
	}
}
