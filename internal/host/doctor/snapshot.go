package doctor

import (
	"net/netip"
	"time"
)

// Format and Version are what a bundle of this form begins with
// (docs/doctor-bundle.md). A change that older readers would misread raises
// Version.
const (
	Format  = "weir-doctor-bundle"
	Version = 1
)

// Snapshot is what was read of a host. What could not be read is absent: a
// missing number is a nil pointer, a missing list is nil, and where the reason is
// known Unreadable has it.
type Snapshot struct {
	Format   string    `json:"format"`
	Version  int       `json:"version"`
	Program  string    `json:"program,omitempty"` // that wrote it
	Taken    time.Time `json:"taken,omitzero"`
	Redacted bool      `json:"redacted,omitempty"` // addresses are stand-ins
	Source   string    `json:"source,omitempty"`   // what printed it, where it is no bundle of a host that was read

	Host       Host              `json:"host"`
	CPUs       []CPU             `json:"cpus,omitzero"` // those online
	Interfaces []Interface       `json:"interfaces,omitzero"`
	IRQs       []IRQ             `json:"irqs,omitzero"`    // of network cards
	Sysctls    map[string]string `json:"sysctls,omitzero"` // by the names of sysctl(8)
	Unknown    []UnknownLine     `json:"unknown_sysctls,omitzero"`
	Services   []string          `json:"services,omitzero"` // programs that run and matter here
	Chains     []Chain           `json:"chains,omitzero"`   // of packet filters besides weir
	Routes     []Route           `json:"routes,omitzero"`   // default routes
	Weir       *Weir             `json:"weir,omitempty"`    // nil: it does not run, or is not readable
	PF         *PF               `json:"pf,omitempty"`      // of a FreeBSD or OpenBSD
	Workers    []Worker          `json:"workers,omitzero"`  // of a firewall that judges in instances of its own

	// Between Before and After lie Seconds. Wished is how long was asked for.
	Seconds float64   `json:"seconds,omitempty"`
	Wished  float64   `json:"wished_seconds,omitempty"`
	Before  *Counters `json:"before,omitempty"`
	After   *Counters `json:"after,omitempty"`
	Cost    *Cost     `json:"cost,omitempty"`
	Watched *Watched  `json:"watched,omitempty"` // nil: the kernel has taken no programs

	// Unreadable says why something is absent, by its name in this form
	// ("services", "interfaces.eth0.eee").
	Unreadable map[string]string `json:"unreadable,omitzero"`
}

// Host is about the machine as a whole.
type Host struct {
	System      string            `json:"system,omitempty"` // "Linux", "FreeBSD"
	Kernel      string            `json:"kernel,omitempty"` // its release
	CPU         string            `json:"cpu,omitempty"`    // name of the first core
	Machine     string            `json:"machine,omitempty"`
	Hypervisor  bool              `json:"hypervisor,omitempty"`
	MemoryMiB   int               `json:"memory_mib,omitempty"`
	Mitigations map[string]string `json:"mitigations,omitzero"` // of what the CPU is affected by
	IdleStates  []IdleState       `json:"idle_states,omitzero"` // of core 0
}

// IdleState is a state that an idle core sleeps in.
type IdleState struct {
	Name     string `json:"name"`
	ExitUsec int    `json:"exit_usec"` // time to wake up, microseconds
	Disabled bool   `json:"disabled,omitempty"`
}

// CPU is one core as the kernel counts them: a hyper-thread is one.
type CPU struct {
	ID       int    `json:"id"`
	Siblings []int  `json:"siblings,omitzero"` // hyper-threads of the same core, this one too
	Node     *int   `json:"node,omitempty"`    // NUMA node
	Governor string `json:"governor,omitempty"`
	Scaling  string `json:"scaling_driver,omitempty"`
	MHz      int    `json:"mhz,omitempty"`
	MaxMHz   int    `json:"max_mhz,omitempty"`
	Isolated bool   `json:"isolated,omitempty"` // by isolcpus= or nohz_full=
}

// IRQ is an interrupt of a network card.
type IRQ struct {
	Number    int    `json:"number"`
	Name      string `json:"name"`                // as in /proc/interrupts: "eth1-TxRx-3"
	Interface string `json:"interface,omitempty"` // "": the name tells
	Affinity  string `json:"affinity,omitempty"`  // cores as in smp_affinity_list: "0-3,8"
	Effective string `json:"effective,omitempty"`
}

// UnknownLine is a line of a file that sets sysctls at boot, whose key this kernel does
// not have.
type UnknownLine struct {
	At  string `json:"at"` // "/etc/sysctl.d/60-router.conf:3"
	Key string `json:"key"`
}

// Chain is a chain of a packet filter that forwarded packets meet.
type Chain struct {
	Name   string `json:"name"` // "nftables ip filter FORWARD", "iptables filter FORWARD"
	Hook   string `json:"hook"` // "forward", "postrouting"
	Policy string `json:"policy,omitempty"`
	// NAT says that the chain translates sources.
	NAT bool `json:"nat,omitempty"`
}

// Route is a default route.
type Route struct {
	Interface string     `json:"interface"`
	Gateway   netip.Addr `json:"gateway,omitzero"`
	Family    string     `json:"family"`           // "inet", "inet6"
	Origin    string     `json:"origin,omitempty"` // "ra": learnt by router advertisements
}

// Weir is what weir does on the host.
type Weir struct {
	StateLimit int             `json:"state_limit,omitempty"`
	Interfaces []WeirInterface `json:"interfaces,omitzero"`
	// NATPorts are the ranges that translation of sources chooses ports from.
	NATPorts []PortRange `json:"nat_ports,omitzero"`
}

// PortRange is ports from Low to High, both too.
type PortRange struct {
	Low  uint16 `json:"low"`
	High uint16 `json:"high"`
}

// Size is how many ports there are.
func (r PortRange) Size() int { return int(r.High) - int(r.Low) + 1 }

// WeirInterface is the hook at which packets of an interface are judged.
type WeirInterface struct {
	Name string `json:"name"`
	Hook string `json:"hook"` // "xdp", "tcx", "none"
	Mode string `json:"mode,omitempty"`
	Why  string `json:"why,omitempty"`
}

// PF is what pfctl -si says of pf, and -sm of its limits.
type PF struct {
	Enabled    bool           `json:"enabled"`
	States     int            `json:"states"`
	StateLimit int            `json:"state_limit,omitempty"` // 0: not said
	Counters   map[string]int `json:"counters,omitzero"`     // since pf was enabled: "memory", "congestion", …
}

// Worker is an instance of a firewall that judges packets on a core.
type Worker struct {
	Name string `json:"name"` // "fw_0"
	CPU  int    `json:"cpu"`
}

// Cost is what reading the host cost it.
type Cost struct {
	CPUSeconds float64 `json:"cpu_seconds"` // of one core, for the whole of Seconds
}
