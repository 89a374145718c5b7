package rundir

import "weir/internal/fw/shaper"

// An Engine is what keeps the queues of an interface and direction within their rates.
type Engine struct {
	Interface string `json:"interface"`
	In        bool   `json:"in,omitempty"`
	shaper.Choice
	Holds  string `json:"holds,omitempty"`  // the kind of qdisc that holds the packets; empty: none does
	Device string `json:"device,omitempty"` // that has this qdisc
	Core   string `json:"core,omitempty"`   // that goes on with its packets; empty: those where they come in
}
