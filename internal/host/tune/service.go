package tune

import (
	"path/filepath"
	"slices"
)

// meddlers returns the services that change a key by themselves. Setting what they undo
// is pointless.
func meddlers(key string) []string {
	_, setting, _ := cardKey(key)
	switch {
	case setting == "irqs":
		return []string{"irqbalance"}
	case key == governorKey:
		return []string{"tuned", "power-profiles-daemon", "auto-cpufreq", "tlpd"}
	}
	return nil
}

// services returns the running programs among the meddlers.
func (h *Host) services() []string {
	files, err := filepath.Glob(h.path("proc/[0-9]*/comm"))
	if err != nil {
		return nil
	}
	known := append(meddlers(cardPrefix+anyCard+".irqs"), meddlers(governorKey)...)
	var found []string
	for _, file := range files {
		name := h.text("proc", filepath.Base(filepath.Dir(file)), "comm")
		for _, service := range known {
			// The kernel keeps 15 characters of a name.
			if name == service[:min(15, len(service))] && !slices.Contains(found, service) {
				found = append(found, service)
			}
		}
	}
	return found
}

// meddler returns the running service that changes a key by itself, "" for none.
func (j *planner) meddler(key string) string {
	for _, service := range meddlers(key) {
		if slices.Contains(j.services, service) {
			return service
		}
	}
	return ""
}
