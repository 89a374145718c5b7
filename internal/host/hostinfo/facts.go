package hostinfo

import (
	"fmt"
	"slices"
	"strings"

	"weir/internal/units"
)

// Fact is one line of a machine's description.
type Fact struct{ Name, Value string }

// Facts returns a report's facts about the machine, in the order in which people ask.
func (m *Machine) Facts() []Fact {
	facts := []Fact{
		{"CPU", m.CPU}, {"cores", m.cores()}, {"memory", units.Thousands(m.Memory) + " MiB"},
		{"kernel", "Linux " + m.Kernel + ", " + m.Architecture}, {"governor", m.governor()},
	}
	if m.Hypervisor {
		facts = append(facts, Fact{"virtual", strings.TrimSuffix("a virtual machine: "+m.Host, ": ")})
	}
	if m.Isolated != "" {
		facts = append(facts, Fact{"isolated cores", m.Isolated})
	}
	if m.ClockSource != "" {
		facts = append(facts, Fact{"clock", m.ClockSource})
	}
	for _, n := range m.NICs {
		facts = append(facts, Fact{n.Name, n.String()})
	}
	if m.Conntrack != nil {
		facts = append(facts, Fact{"conntrack", fmt.Sprintf("%s connections, %s buckets",
			units.Thousands(m.Conntrack.Max), units.Thousands(m.Conntrack.Buckets))})
	}
	return append(facts, Fact{"mitigations", m.mitigationList()})
}

func (m *Machine) cores() string {
	text := units.Thousands(m.Cores)
	if m.ThreadsPerCore > 1 {
		text += fmt.Sprintf(", %d threads to each core's units", m.ThreadsPerCore)
	}
	if m.NUMANodes > 1 {
		text += fmt.Sprintf(", %d NUMA nodes", m.NUMANodes)
	}
	return text
}

func (m *Machine) governor() string {
	text := m.Governor
	if text == "none" {
		text = "none: the machine or its host decides alone"
	}
	if m.Turbo != "" {
		text += ", turbo " + m.Turbo
	}
	return text
}

// mitigationList returns the mitigations in the order of their names.
func (m *Machine) mitigationList() string {
	var names []string
	for name, answer := range m.Mitigations {
		names = append(names, name+": "+answer)
	}
	if len(names) == 0 {
		return "none needed"
	}
	slices.Sort(names)
	return strings.Join(names, "; ")
}

// String returns driver, speed, queues and offloads.
func (n NIC) String() string {
	parts := []string{n.Driver}
	if n.Mbit > 0 {
		parts = append(parts, units.Thousands(n.Mbit)+" Mbit/s")
	}
	parts = append(parts, units.Plural(n.Queues, "queue"), fmt.Sprintf("MTU %d", n.MTU))
	if len(n.Offloads) > 0 {
		parts = append(parts, "offloads: "+strings.Join(n.Offloads, " "))
	}
	return strings.Join(parts, ", ")
}
