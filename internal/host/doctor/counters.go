package doctor

import "net/netip"

// Counters are what the kernel counted up to one moment. Maps are by core, by
// interrupt, or by interface.
type Counters struct {
	CPUs       map[int]CPUTimes             `json:"cpus,omitzero"`
	Softirqs   map[string]map[int]uint64    `json:"softirqs,omitzero"` // "NET_RX", by core
	Softnet    map[int]Softnet              `json:"softnet,omitzero"`
	IRQs       map[int]map[int]uint64       `json:"irqs,omitzero"` // by number, by core
	Links      map[string]Link              `json:"links,omitzero"`
	Statistics map[string]map[string]uint64 `json:"statistics,omitzero"` // ethtool -S, by interface
	Qdiscs     []Qdisc                      `json:"qdiscs,omitzero"`
	SNMP       map[string]uint64            `json:"snmp,omitzero"` // "Ip.FragFails", as /proc/net/snmp names them
	Throttle   map[int]uint64               `json:"throttle,omitzero"`
	Threads    map[string]map[int]uint64    `json:"threads,omitzero"` // time of threads that receive, as of CPUs, by interface and queue

	Conntrack  *Conntrack  `json:"conntrack,omitempty"`
	Neighbours *Neighbours `json:"neighbours,omitempty"`
	Weir       *WeirCount  `json:"weir,omitempty"`
}

// CPUTimes is how a core has spent its time, in the unit of /proc/stat. Only
// ratios matter.
type CPUTimes struct {
	User    uint64 `json:"user"`
	Nice    uint64 `json:"nice"`
	System  uint64 `json:"system"`
	Idle    uint64 `json:"idle"`
	IOWait  uint64 `json:"iowait"`
	IRQ     uint64 `json:"irq"`
	Softirq uint64 `json:"softirq"`
	Steal   uint64 `json:"steal"`
}

// Softnet is a core's line of /proc/net/softnet_stat.
type Softnet struct {
	Processed uint64 `json:"processed"` // packets that the stack took; not those that XDP kept
	Dropped   uint64 `json:"dropped"`   // the backlog was full
	Squeezed  uint64 `json:"squeezed"`  // times that the budget ended before the work
	RPS       uint64 `json:"received_rps"`
	FlowLimit uint64 `json:"flow_limit"`
}

// Link is what an interface counted (ip -s link). Bytes are without preamble and
// frame check sequence.
type Link struct {
	RxPackets uint64 `json:"rx_packets"`
	TxPackets uint64 `json:"tx_packets"`
	RxBytes   uint64 `json:"rx_bytes"`
	TxBytes   uint64 `json:"tx_bytes"`
	RxErrors  uint64 `json:"rx_errors"` // damaged frames, and with some drivers those that found no room
	TxErrors  uint64 `json:"tx_errors"`
	RxDropped uint64 `json:"rx_dropped"` // by the kernel: no protocol, wrong VLAN, no memory
	TxDropped uint64 `json:"tx_dropped"`
	RxMissed  uint64 `json:"rx_missed"` // the card's ring had no room
	RxFIFO    uint64 `json:"rx_fifo"`
	// CarrierChanges is how often the link came up or went down.
	CarrierChanges uint64 `json:"carrier_changes,omitempty"`
}

// Qdisc is a queueing discipline and what it counted.
type Qdisc struct {
	Interface  string `json:"interface"`
	Kind       string `json:"kind"`
	Handle     string `json:"handle"`
	Parent     string `json:"parent"` // "root", "ingress", or the class it hangs below
	RateBits   uint64 `json:"rate_bits,omitempty"`
	Bytes      uint64 `json:"bytes"`
	Packets    uint64 `json:"packets"`
	Drops      uint64 `json:"drops"`
	Overlimits uint64 `json:"overlimits"`
	Requeues   uint64 `json:"requeues"`
	Backlog    uint64 `json:"backlog_bytes"`
}

// Conntrack is the kernel's connection tracking. Its limits are sysctls.
type Conntrack struct {
	Count        int    `json:"count"`
	InsertFailed uint64 `json:"insert_failed"`
	Drop         uint64 `json:"drop"`
	EarlyDrop    uint64 `json:"early_drop"`
}

// Neighbours are the tables of next hops' link addresses, of IPv4 and IPv6.
type Neighbours struct {
	Entries4 int    `json:"entries_ipv4"`
	Entries6 int    `json:"entries_ipv6"`
	Full4    uint64 `json:"table_fulls_ipv4"`
	Full6    uint64 `json:"table_fulls_ipv6"`
}

// WeirCount is what weir counted on all interfaces.
type WeirCount struct {
	States  int               `json:"states"`
	Reasons map[string]uint64 `json:"reasons,omitzero"` // packets, by the reasons of docs/packet-path.md
	// NAT is the far ends towards which translation of sources uses most of its ports.
	NAT []NATUse `json:"nat,omitzero"`
}

// NATUse is the ports of one address that connections to one far end have: no two may
// have the same.
type NATUse struct {
	Protocol string         `json:"protocol"` // "tcp", "udp", "icmp", "ipv6-icmp"
	Address  netip.Addr     `json:"address"`  // that sources are translated to
	Far      netip.AddrPort `json:"far"`
	Ports    int            `json:"ports"` // in use
	Low      uint16         `json:"low"`   // the lowest of them
	High     uint16         `json:"high"`
}
