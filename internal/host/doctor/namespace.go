package doctor

import "slices"

// Checks of what belongs to the whole machine. In a network namespace, what is wrong there
// is somebody else's, or nobody's.
var (
	machineWide = []string{"UNDO-1", "VER-1", "IRQ-4", "PWR-2", "MIT-1", "NEIGH-1", "LOG-1"}
	// Cores work for all namespaces. They matter to one whose packets they receive.
	coreWide = []string{"CPU-1", "CPU-2", "CPU-3", "CPU-4", "IRQ-5", "VIRT-1", "PWR-1", "THR-1", "SQZ-1"}
)

// elsewhere says why a check has nothing to do with this network namespace; "": it has.
func (v *view) elsewhere(id string) string {
	switch {
	case !v.Host.Namespace:
		return ""
	case slices.Contains(machineWide, id):
		return "it is about the machine, not about this network namespace"
	case slices.Contains(coreWide, id) && v.bystander():
		return "hardly a packet came into this network namespace: the cores' work is others'"
	}
	return ""
}

// bystander reports whether this is a network namespace into which hardly a packet came:
// what the cores do is others' work.
func (v *view) bystander() bool { return v.Host.Namespace && v.sampled && v.received() < few }
