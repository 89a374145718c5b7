package affinity

import (
	"fmt"
	"os"
	"slices"

	"weir/internal/host/doctor"
	"weir/internal/host/netif"
	"weir/internal/host/tune"
)

// Command is the command that keeps the journal of the changes.
const Command = "weir affinity"

// Open opens the machine, in the process's network namespace, for the changes planned
// here. The caller closes it.
func Open() (*tune.Host, error) {
	cookie, err := netif.Cookie()
	if err != nil {
		return nil, err
	}
	// Earlier versions kept the journal in another file, in another format.
	old := fmt.Sprintf("/run/weir-affinity/%d/journal.json", cookie)
	if _, err := os.Stat(old); err == nil {
		return nil, fmt.Errorf("an earlier weir has changed affinities: restore them with weir affinity revert of that version, or remove %s to keep them", old)
	}
	return tune.OpenVolatile(Command)
}

// Changes returns the changes that doctor planned. irqs are the machine's.
func Changes(all []doctor.Placement, irqs []doctor.IRQ) (changes []tune.Change) {
	for i := range all {
		p := &all[i]
		k := tune.QueueKey{Interface: p.Interface, What: string(p.Kind), Queue: p.Queue, IRQ: p.IRQ}
		if p.Kind == doctor.KindIRQ {
			if at := slices.IndexFunc(irqs, func(irq doctor.IRQ) bool { return irq.Number == p.IRQ }); at >= 0 {
				k.Name = irqs[at].Name
			}
		}
		changes = append(changes, tune.Change{Key: k.String(), From: p.From, To: p.To, Why: p.Why})
	}
	return changes
}
