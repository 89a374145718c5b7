package doctor

import "net/netip"

// Counters are the kernel's counters at one moment. Maps are by core, by interrupt or by
// interface.
type Counters struct {
	CPUs       map[int]CPUTimes             `json:"cpus,omitzero"`
	Softirqs   map[string]map[int]uint64    `json:"softirqs,omitzero"` // "NET_RX", by core
	Softnet    map[int]Softnet              `json:"softnet,omitzero"`
	IRQs       map[int]map[int]uint64       `json:"irqs,omitzero"` // by number, by core
	Links      map[string]Link              `json:"links,omitzero"`
	Statistics map[string]map[string]uint64 `json:"statistics,omitzero"` // ethtool -S, by interface
	Qdiscs     []Qdisc                      `json:"qdiscs,omitzero"`
	SNMP       map[string]uint64            `json:"snmp,omitzero"` // "Ip.FragFails", as /proc/net/snmp and /proc/net/netstat name them
	Throttle   map[int]uint64               `json:"throttle,omitzero"`
	Threads    map[string]map[int]uint64    `json:"threads,omitzero"` // CPU time of threads that receive, in the unit of CPUs; by interface and queue

	// Sockets lists the sockets that have dropped datagrams, and the listening ones before
	// whose program connections wait.
	Sockets []Socket `json:"sockets,omitzero"`
	// TCPSockets counts what TCP holds for all sockets; nil: unknown.
	TCPSockets *TCPSockets `json:"tcp_sockets,omitempty"`
	// Bus counts the errors of a card's slot that its hardware corrected, by interface and by
	// the kernel's names (aer_dev_correctable): "BadTLP".
	Bus map[string]map[string]uint64 `json:"bus,omitzero"`

	// Ksoftirqd counts by core how long its ksoftirqd has waited for it; nil: unknown. Softirqs
	// that find no end, or that come while it is runnable, are left to that thread.
	Ksoftirqd map[int]Waits `json:"ksoftirqd,omitzero"`

	// NFQueues lists the queues in which packets wait for a program that judges them.
	NFQueues []NFQueue `json:"nfqueues,omitzero"`
	// Destinations6 is the number of IPv6 routes and cached destinations (rt6_stats); nil:
	// unknown.
	Destinations6 *int `json:"destinations_ipv6,omitempty"`

	Conntrack  *Conntrack  `json:"conntrack,omitempty"`
	Neighbours *Neighbours `json:"neighbours,omitempty"`
	Weir       *WeirCount  `json:"weir,omitempty"`
	VPN        []VPNCount  `json:"vpn,omitzero"` // tunnels of weir vpn run
}

// TCPSockets is what TCP holds for all sockets (/proc/net/sockstat).
type TCPSockets struct {
	Orphans int `json:"orphans"` // closed by their program, and still waiting for their far end
	Pages   int `json:"pages"`   // memory, in pages
}

// Waits is how often a thread got a core, and how long it was runnable before
// (/proc/PID/schedstat).
type Waits struct {
	Nanoseconds uint64 `json:"ns"`
	Turns       uint64 `json:"turns"`
}

// CPUTimes is how a core spent its time, in the unit of /proc/stat. Only ratios matter.
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
	Processed uint64 `json:"processed"` // packets that the stack took, without those that XDP kept
	Dropped   uint64 `json:"dropped"`   // dropped because the backlog was full
	Squeezed  uint64 `json:"squeezed"`  // times that the budget ended before the work
	RPS       uint64 `json:"received_rps"`
	FlowLimit uint64 `json:"flow_limit"`
}

// Link holds an interface's counters (ip -s link). Bytes exclude the preamble and the
// frame check sequence.
type Link struct {
	RxPackets uint64 `json:"rx_packets"`
	TxPackets uint64 `json:"tx_packets"`
	RxBytes   uint64 `json:"rx_bytes"`
	TxBytes   uint64 `json:"tx_bytes"`
	RxErrors  uint64 `json:"rx_errors"` // damaged frames; some drivers add those that found no room
	TxErrors  uint64 `json:"tx_errors"`
	RxDropped uint64 `json:"rx_dropped"` // dropped by the kernel: no protocol, wrong VLAN, no memory
	TxDropped uint64 `json:"tx_dropped"`
	RxMissed  uint64 `json:"rx_missed"` // dropped because the card's ring had no room
	RxFIFO    uint64 `json:"rx_fifo"`
	// CarrierChanges counts how often the link went up or down.
	CarrierChanges uint64 `json:"carrier_changes,omitempty"`
	// TxTimeouts counts how often a send queue stood still until the kernel reset the card.
	TxTimeouts uint64 `json:"tx_timeouts,omitempty"`
}

// Qdisc is a queueing discipline with its counters.
type Qdisc struct {
	Interface  string `json:"interface"`
	Kind       string `json:"kind"`
	Handle     string `json:"handle"`
	Parent     string `json:"parent"` // "root", "ingress", or the parent class
	RateBits   uint64 `json:"rate_bits,omitempty"`
	Bytes      uint64 `json:"bytes"`
	Packets    uint64 `json:"packets"`
	Drops      uint64 `json:"drops"`
	Overlimits uint64 `json:"overlimits"`
	Requeues   uint64 `json:"requeues"`
	Backlog    uint64 `json:"backlog_bytes"`

	Classes []Class `json:"classes,omitzero"` // of HTB
	// Policers counts the filters at ingress that drop above a rate; nil: unknown.
	Policers *int `json:"policers,omitempty"`
}

// Class is a class of a queueing discipline.
type Class struct {
	Handle      string `json:"handle"`
	CeilingBits uint64 `json:"ceiling_bits"`
	Bytes       uint64 `json:"bytes"`
	Drops       uint64 `json:"drops"` // without those of the classes below it
}

// NFQueue is a queue of packets for a program that judges them (NFQUEUE).
type NFQueue struct {
	Number  int    `json:"number"`
	PortID  uint32 `json:"port_id,omitempty"` // of the program's socket (netlink); 0: unknown
	Program string `json:"program,omitempty"` // "": unknown
	Waiting int    `json:"waiting"`
	Given   uint64 `json:"given"`   // packets that were queued
	Dropped uint64 `json:"dropped"` // packets that found it full
	Unread  uint64 `json:"unread"`  // packets for which the program's socket had no room
}

// Socket is a program's socket.
type Socket struct {
	Protocol string `json:"protocol"` // "udp", "tcp"
	Port     int    `json:"port"`
	Inode    uint64 `json:"inode,omitempty"`   // tells it from others of its port
	Program  string `json:"program,omitempty"` // "": unknown
	Drops    uint64 `json:"drops,omitempty"`   // datagrams that found no room
	Waiting  int    `json:"waiting,omitempty"` // connections that the program has not taken yet
}

// Conntrack is the kernel's connection tracking. Its limits are sysctls.
type Conntrack struct {
	Count        int    `json:"count"`
	InsertFailed uint64 `json:"insert_failed"`
	Drop         uint64 `json:"drop"`
	EarlyDrop    uint64 `json:"early_drop"`
	// Invalid counts packets that belong to no connection, and begin none.
	Invalid uint64 `json:"invalid,omitempty"`
}

// Neighbours are the neighbour tables of IPv4 and IPv6.
type Neighbours struct {
	Entries4 int    `json:"entries_ipv4"`
	Entries6 int    `json:"entries_ipv6"`
	Full4    uint64 `json:"table_fulls_ipv4"`
	Full6    uint64 `json:"table_fulls_ipv6"`
}

// WeirCount holds weir's counters, summed over all interfaces.
type WeirCount struct {
	States  int               `json:"states"`
	Reasons map[string]uint64 `json:"reasons,omitzero"` // packets, by the reasons of docs/packet-path.md
	// NAT lists the far ends towards which source translation uses most of its ports.
	NAT []NATUse `json:"nat,omitzero"`
	// Queues lists the queues of weir's rules that take packets.
	Queues []WeirQueue `json:"queues,omitzero"`
}

// WeirQueue is what a queue of weir's rules has counted, in bytes on the line.
type WeirQueue struct {
	Interface string `json:"interface"`
	In        bool   `json:"in,omitempty"` // it shapes what comes in
	Name      string `json:"name"`
	Engine    string `json:"engine,omitempty"` // "phantom": no packet waits; "queue": the kernel holds them
	Bytes     uint64 `json:"bytes"`
	Packets   uint64 `json:"packets"`
	Drops     uint64 `json:"drops"`
	Marked    uint64 `json:"marked,omitempty"`  // packets that told of congestion instead
	Backlog   uint64 `json:"backlog,omitempty"` // bytes that wait, or that were sent beyond a share
}

// NATUse is the ports of one address in use towards one far end. Each connection to that
// far end needs a port of its own.
type NATUse struct {
	Protocol string         `json:"protocol"` // "tcp", "udp", "icmp", "ipv6-icmp"
	Address  netip.Addr     `json:"address"`  // address that sources are translated to
	Far      netip.AddrPort `json:"far"`
	Ports    int            `json:"ports"` // in use
	Low      uint16         `json:"low"`   // the lowest port in use
	High     uint16         `json:"high"`
}

// VPNCount is what a tunnel of weir vpn run has carried, by whom and where.
type VPNCount struct {
	Interface string `json:"interface"`
	Engine    string `json:"engine"` // "kernel", "userspace"
	// Via lists the interfaces that packets to its peers leave by.
	Via []string `json:"via,omitempty"`
	// SocketLost counts datagrams that found no room in the sockets of its port.
	SocketLost uint64 `json:"socket_lost,omitempty"`
	// Workers are the threads that encrypt and decrypt; the kernel's engine has none.
	Workers []VPNWorker `json:"workers"`
}

// VPNWorker is a thread that carries the packets of a tunnel. It sends what comes from its
// queue of the tunnel's interface, and takes its turn with what comes by the port. It counts
// the packets inside the tunnel.
type VPNWorker struct {
	Queue  int    `json:"queue"`
	Thread int    `json:"thread,omitempty"` // its id; 0: it does not run
	CPUs   string `json:"cpus"`             // cores it may run on: "0-3"
	CPU    int    `json:"cpu"`              // core it ran on last
	Ticks  uint64 `json:"ticks"`            // its time, in the unit of CPUs

	SentPackets     uint64 `json:"sent_packets"`
	SentBytes       uint64 `json:"sent_bytes"`
	ReceivedPackets uint64 `json:"received_packets"`
	ReceivedBytes   uint64 `json:"received_bytes"`
	SentLost        uint64 `json:"sent_lost,omitempty"`     // packets to nobody, or that could not be sent
	ReceivedLost    uint64 `json:"received_lost,omitempty"` // not authentic, too old, or not from an allowed network
}
