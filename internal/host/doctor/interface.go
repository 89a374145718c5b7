package doctor

import (
	"net/netip"

	"weir/internal/host/cpulist"
)

// Interface is a network device with its settings.
type Interface struct {
	Name      string         `json:"name"`
	Kind      string         `json:"kind"` // "physical", or the kernel's name: veth, vlan, bond, ifb, ppp, …
	Driver    string         `json:"driver,omitempty"`
	Up        bool           `json:"up"`
	MTU       int            `json:"mtu,omitempty"`      // bytes
	Mbit      int            `json:"mbit,omitempty"`     // 0: no link, or the driver does not report it
	MaxMbit   int            `json:"max_mbit,omitempty"` // highest speed that the port supports
	Duplex    string         `json:"duplex,omitempty"`   // "full", "half"
	Offers    *Offers        `json:"offers,omitempty"`   // what the two ends tell each other; nil: unknown
	Master    string         `json:"master,omitempty"`   // bridge or bond that it belongs to
	Parent    string         `json:"parent,omitempty"`   // device below a VLAN or PPPoE session
	External  bool           `json:"external,omitempty"` // a tunnel whose far ends come with each packet (ip link … external)
	PPPoE     *PPPoE         `json:"pppoe,omitempty"`    // the PPP interface's session; nil: none, or unknown
	MAC       string         `json:"mac,omitempty"`
	Addresses []netip.Prefix `json:"addresses,omitzero"`

	RxQueues int `json:"rx_queues,omitempty"` // number in use
	TxQueues int `json:"tx_queues,omitempty"`
	// TxQueueLen is the number of packets that a queue in front of it holds, unless its
	// discipline has a limit of its own (txqueuelen); nil: unknown.
	TxQueueLen *int            `json:"tx_queue_len,omitempty"`
	Channels   *Channels       `json:"channels,omitempty"`
	Rings      *Rings          `json:"rings,omitempty"`
	Features   map[string]bool `json:"features,omitzero"` // offloads, by the kernel's names: "rx-lro"
	RSS        *RSS            `json:"rss,omitempty"`
	EEE        *EEE            `json:"eee,omitempty"`
	Pause      *Pause          `json:"pause,omitempty"`
	Coalesce   *Coalesce       `json:"coalesce,omitempty"`
	PCI        *PCI            `json:"pci,omitempty"`
	USB        int             `json:"usb_mbit,omitempty"` // speed of the USB port that it is plugged into; 0: none
	Node       *int            `json:"node,omitempty"`     // NUMA node; -1: none
	// RPS lists, for each receive queue, the cores that its packets are spread over,
	// in the form of smp_affinity_list. "" is none. XPS lists the cores that send
	// through each queue.
	RPS      []string `json:"rps,omitzero"`
	XPS      []string `json:"xps,omitzero"`
	Threaded *bool    `json:"threaded_napi,omitempty"`
	// NAPI lists the receivers of the queues, if the kernel reports them (6.8).
	NAPI []NAPI `json:"napi,omitzero"`
	XDP  string `json:"xdp,omitempty"` // "native", "generic", "offloaded"; "": none attached
	Bond *Bond  `json:"bond,omitempty"`
}

// Offers are the fastest speeds that the two ends of a copper cable tell each other.
type Offers struct {
	Autoneg bool `json:"autoneg"`
	Mbit    int  `json:"mbit,omitempty"`    // the card; 0: unknown
	Partner int  `json:"partner,omitempty"` // the other end; 0: unknown
	Common  int  `json:"common,omitempty"`  // the fastest that both offer; 0: unknown
	Reach   int  `json:"reach,omitempty"`   // the fastest that the port has and the other end offers; 0: unknown
}

// PPPoE is the session of a PPP interface.
type PPPoE struct {
	Session int `json:"session"` // its number (RFC 2516)
}

// NAPI takes a receive queue's packets out of its ring. It runs in softirq on the core of
// the queue's interrupt, or in a thread.
type NAPI struct {
	Queue  int     `json:"queue"`
	IRQ    int     `json:"irq,omitempty"`
	Thread *Thread `json:"thread,omitempty"` // nil: runs in softirq
}

// Thread is a kernel thread that receives.
type Thread struct {
	CPUs string `json:"cpus"` // cores it may run on: "0-3"
	CPU  int    `json:"cpu"`  // core it ran on last
}

// core returns the core where the thread receives, also if the thread is bound to one
// core and has not run yet.
func (t *Thread) core() int {
	if cpus, err := cpulist.Parse(t.CPUs); err == nil && len(cpus) == 1 {
		return cpus[0]
	}
	return t.CPU
}

// Channels are the numbers of a card's queues, as ethtool -l prints them.
type Channels struct {
	Combined    int `json:"combined"`
	MaxCombined int `json:"max_combined"`
	Rx          int `json:"rx,omitempty"`
	MaxRx       int `json:"max_rx,omitempty"`
	Tx          int `json:"tx,omitempty"`
	MaxTx       int `json:"max_tx,omitempty"`
}

// Rings are the numbers of descriptors per queue, as ethtool -g prints them.
type Rings struct {
	Rx    int `json:"rx"`
	MaxRx int `json:"max_rx"`
	Tx    int `json:"tx"`
	MaxTx int `json:"max_tx"`
}

// RSS is how a card spreads flows over receive queues.
type RSS struct {
	// Hash lists the hashed fields of each protocol ("tcp4", "udp4", "tcp6", "udp6")
	// in the letters of ethtool -N: s and d for addresses, f and n for ports. "sd"
	// leaves out ports.
	Hash map[string]string `json:"hash,omitzero"`
	// Indirection lists the queue of each hash bucket.
	Indirection []int `json:"indirection,omitzero"`
	// Symmetric reports whether both directions of a flow arrive on the same queue;
	// nil: unknown.
	Symmetric *bool `json:"symmetric,omitempty"`
}

// EEE is Energy-Efficient Ethernet (IEEE 802.3az).
type EEE struct {
	Enabled bool `json:"enabled"`
	Active  bool `json:"active"` // the link partner takes part
}

// Pause is flow control by pause frames (IEEE 802.3x).
type Pause struct {
	Autoneg bool `json:"autoneg"`
	Rx      bool `json:"rx"`
	Tx      bool `json:"tx"`
}

// Coalesce is how long a card waits before it raises an interrupt.
type Coalesce struct {
	Adaptive bool `json:"adaptive_rx"`
	RxUsecs  int  `json:"rx_usecs"`
	RxFrames int  `json:"rx_frames"`
}

// PCI is a card's place on the bus. Speeds are per lane in 10⁹ transfers per second, as
// in the files current_link_speed and max_link_speed.
type PCI struct {
	Address  string  `json:"address,omitempty"`
	ID       string  `json:"id,omitempty"` // "8086:1539": vendor and device
	Speed    float64 `json:"gt_per_s"`
	MaxSpeed float64 `json:"max_gt_per_s"`
	Width    int     `json:"width"`
	MaxWidth int     `json:"max_width"`
	// ASPM reports whether the slot may sleep between transfers; nil: unknown.
	ASPM *bool `json:"aspm,omitempty"`
}

// Bond is a link aggregation group.
type Bond struct {
	Mode    string   `json:"mode"` // "802.3ad", "balance-xor", "active-backup", …
	Hash    string   `json:"hash,omitempty"`
	Members []string `json:"members"`
	// Aggregates is the aggregate that each member joined by LACP (802.3ad). The bond uses one of
	// them.
	Aggregates map[string]int `json:"aggregates,omitzero"`
}
