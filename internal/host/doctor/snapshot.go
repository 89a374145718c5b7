package doctor

import (
	"net/netip"
	"time"
)

// Format and Version begin a bundle of this form (docs/doctor-bundle.md). A change that
// older readers would misread raises Version.
const (
	Format  = "weir-doctor-bundle"
	Version = 1
)

// Snapshot holds what was read of a host. What could not be read is absent: a missing
// number is a nil pointer, and a missing list is nil. Unreadable has the reason if it is
// known.
type Snapshot struct {
	Format   string    `json:"format"`
	Version  int       `json:"version"`
	Program  string    `json:"program,omitempty"` // program that wrote it
	Taken    time.Time `json:"taken,omitzero"`
	Redacted bool      `json:"redacted,omitempty"` // addresses are stand-ins
	Source   string    `json:"source,omitempty"`   // program that printed it, if it is no bundle of a host

	Host       Host              `json:"host"`
	CPUs       []CPU             `json:"cpus,omitzero"` // cores online
	Interfaces []Interface       `json:"interfaces,omitzero"`
	IRQs       []IRQ             `json:"irqs,omitzero"`    // interrupts of network cards
	Sysctls    map[string]string `json:"sysctls,omitzero"` // by the names of sysctl(8)
	Unknown    []UnknownLine     `json:"unknown_sysctls,omitzero"`
	Services   []string          `json:"services,omitzero"` // running programs that matter here
	Chains     []Chain           `json:"chains,omitzero"`   // chains of packet filters other than weir
	Routes     []Route           `json:"routes,omitzero"`   // default routes
	MarkRules  []MarkRule        `json:"mark_rules,omitzero"`
	Policies   *Policies         `json:"ipsec_policies,omitempty"`
	Weir       *Weir             `json:"weir,omitempty"`   // nil: weir does not run, or is not readable
	PF         *PF               `json:"pf,omitempty"`     // pf of a FreeBSD or OpenBSD host
	BSD        *BSD              `json:"bsd,omitempty"`    // what FreeBSD's own tools tell; nil: nothing was read
	Workers    []Worker          `json:"workers,omitzero"` // instances of a firewall that runs several
	Tunnels    []Tunnel          `json:"tunnels,omitzero"`
	Log        []Message         `json:"log,omitzero"` // what of the kernel's log doctor knows

	// Seconds is the time between Before and After. Wished is the time asked for.
	Seconds float64   `json:"seconds,omitempty"`
	Wished  float64   `json:"wished_seconds,omitempty"`
	Before  *Counters `json:"before,omitempty"`
	After   *Counters `json:"after,omitempty"`
	Cost    *Cost     `json:"cost,omitempty"`
	Watched *Watched  `json:"watched,omitempty"` // nil: the kernel did not accept the programs

	// Unreadable gives the reason why something is absent, by its name in this form
	// ("services", "interfaces.eth0.eee").
	Unreadable map[string]string `json:"unreadable,omitzero"`
}

// Host describes the machine as a whole.
type Host struct {
	System      string            `json:"system,omitempty"` // "Linux", "FreeBSD"
	Kernel      string            `json:"kernel,omitempty"` // its release
	CPU         string            `json:"cpu,omitempty"`    // name of the first core
	Machine     string            `json:"machine,omitempty"`
	Hypervisor  bool              `json:"hypervisor,omitempty"`
	Namespace   bool              `json:"network_namespace,omitempty"` // a network namespace other than the machine's first
	MemoryMiB   int               `json:"memory_mib,omitempty"`
	Mitigations map[string]string `json:"mitigations,omitzero"` // by the CPU's vulnerabilities
	IdleStates  []IdleState       `json:"idle_states,omitzero"` // idle states of core 0
}

// IdleState is a state that an idle core sleeps in.
type IdleState struct {
	Name     string `json:"name"`
	ExitUsec int    `json:"exit_usec"` // time to wake up in microseconds
	Disabled bool   `json:"disabled,omitempty"`
}

// CPU is one core as the kernel counts them. Each hyper-thread is one.
type CPU struct {
	ID       int    `json:"id"`
	Siblings []int  `json:"siblings,omitzero"` // hyper-threads of the same core, including this one
	Node     *int   `json:"node,omitempty"`    // NUMA node
	Governor string `json:"governor,omitempty"`
	Scaling  string `json:"scaling_driver,omitempty"`
	MHz      int    `json:"mhz,omitempty"`
	MaxMHz   int    `json:"max_mhz,omitempty"`
	BaseMHz  int    `json:"base_mhz,omitempty"`  // what it keeps with all cores at work, without turbo
	LimitMHz int    `json:"limit_mhz,omitempty"` // the governor may not set more
	Isolated bool   `json:"isolated,omitempty"`  // isolated by isolcpus= or nohz_full=
}

// IRQ is an interrupt of a network card.
type IRQ struct {
	Number    int    `json:"number"`
	Name      string `json:"name"`                // as in /proc/interrupts: "eth1-TxRx-3"
	Interface string `json:"interface,omitempty"` // "": see the name
	Affinity  string `json:"affinity,omitempty"`  // allowed cores as in smp_affinity_list: "0-3,8"
	Effective string `json:"effective,omitempty"`
}

// UnknownLine is a line of a file of sysctls set at boot, whose key this kernel does not
// have.
type UnknownLine struct {
	At  string `json:"at"` // "/etc/sysctl.d/60-router.conf:3"
	Key string `json:"key"`
}

// Chain is a packet filter's chain that forwarded packets go through.
type Chain struct {
	Name   string `json:"name"` // "nftables ip filter FORWARD", "iptables filter FORWARD"
	Hook   string `json:"hook"` // "forward", "postrouting"
	Policy string `json:"policy,omitempty"`
	// Accepts lists the interfaces from which a rule of the chain, or of one that it jumps
	// to, accepts packets ("virbr0", "veth*"; "*": from all); nil: unknown.
	Accepts []string `json:"accepts,omitzero"`
	// NAT reports whether the chain translates sources.
	NAT bool `json:"nat,omitempty"`
}

// Route is a default route.
type Route struct {
	Interface string     `json:"interface"`
	Gateway   netip.Addr `json:"gateway,omitzero"`
	Family    string     `json:"family"`           // "inet", "inet6"
	Origin    string     `json:"origin,omitempty"` // "ra": learned from router advertisements
}

// MarkRule is a policy routing rule that compares bits of a packet's mark and is not
// inverted.
type MarkRule struct {
	Family   string `json:"family"` // "inet", "inet6"
	Priority int    `json:"priority"`
	Mark     uint32 `json:"mark"`
	Mask     uint32 `json:"mask"`
}

// Weir describes weir on the host.
type Weir struct {
	StateLimit int             `json:"state_limit,omitempty"`
	Interfaces []WeirInterface `json:"interfaces,omitzero"`
	// MarkMask holds the bits of the mark that weir uses; 0: unknown.
	MarkMask uint32 `json:"mark_mask,omitempty"`
	// NATPorts lists the port ranges that source translation chooses from.
	NATPorts []PortRange `json:"nat_ports,omitzero"`
	// Sessions lists the PPPoE interfaces of the rules in force.
	Sessions []WeirSession `json:"sessions,omitzero"`
}

// WeirSession is a PPPoE interface of weir, by the log of its session.
type WeirSession struct {
	Name    string   `json:"name"`
	On      string   `json:"on"`               // interface below
	State   string   `json:"state"`            // as weir pppoe status has it
	Seconds float64  `json:"seconds"`          // in that state
	Step    string   `json:"step,omitempty"`   // that the last attempt has not done: PADI, PADR, LCP, authentication, IPCP; session: it was up
	Why     string   `json:"why,omitempty"`    // what was said last about that
	Quirks  []string `json:"quirks,omitempty"` // what the provider does and others do not
}

// PortRange is the ports from Low to High, inclusive.
type PortRange struct {
	Low  uint16 `json:"low"`
	High uint16 `json:"high"`
}

// Size returns the number of ports.
func (r PortRange) Size() int { return int(r.High) - int(r.Low) + 1 }

// WeirInterface is the hook where weir evaluates an interface's packets.
type WeirInterface struct {
	Name string `json:"name"`
	Hook string `json:"hook"` // "xdp", "tcx", "none"
	Mode string `json:"mode,omitempty"`
	Why  string `json:"why,omitempty"`
}

// PF is the output of pfctl -si, and of -sm for its limits.
type PF struct {
	Enabled    bool           `json:"enabled"`
	States     int            `json:"states"`
	StateLimit int            `json:"state_limit,omitempty"` // 0: not given
	Counters   map[string]int `json:"counters,omitzero"`     // since pf was enabled: "memory", "congestion", …
}

// Worker is a firewall instance that runs on a core.
type Worker struct {
	Name string `json:"name"` // "fw_0"
	CPU  int    `json:"cpu"`
}

// Tunnel carries packets inside other packets.
type Tunnel struct {
	Kind      string `json:"kind"`                // "wireguard", "ipsec", "tun", or the kernel's name: vxlan, gre, …
	Interface string `json:"interface,omitempty"` // "": it has none (IPsec)
	// Flows counts the pairs of far ends that the outer packets go between: WireGuard's
	// peers, the hosts that IPsec's associations connect. A card's hash tells no more
	// apart; 0: unknown.
	Flows int `json:"flows,omitempty"`
}

// Policies counts the IPsec policies for what is forwarded.
type Policies struct {
	Bare   int  `json:"bare"`             // those of no xfrm interface
	Bound  int  `json:"bound,omitempty"`  // those of one
	Blocks bool `json:"blocks,omitempty"` // what none selects is blocked
}

// Cost is what reading cost the host.
type Cost struct {
	CPUSeconds float64 `json:"cpu_seconds"` // CPU seconds over all of Seconds
}
