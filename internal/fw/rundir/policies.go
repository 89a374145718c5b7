package rundir

// Policies says which IPsec policies of the kernel the dataplane follows.
type Policies struct {
	Followed int    `json:"followed"`         // those that say what is forwarded, and belong to no xfrm interface
	Held     int    `json:"held,omitempty"`   // of these, those that have just gone
	Blocks   bool   `json:"blocks,omitempty"` // what none selects is blocked
	All      string `json:"all,omitempty"`    // why everything goes up to the stack; empty: it does not
}
