package traffic

import (
	"fmt"

	"weir/internal/units"
)

// Words for the keys of a [Case].
const (
	UDP = "udp"
	TCP = "tcp"

	OneWay = "one"  // frames go from the LAN to the internet
	Both   = "both" // and as many threads send the answers

	Far    = "far"    // frames cross the last wire and are dropped by its receiver
	Egress = "egress" // frames are dropped where the firewall sends them
)

// NewFlows are the connections whose opening is timed: no more than fit
// conntrack on small machines, a multiple of the frames between time stamps.
const NewFlows = 48 << 10

// Case is one setting that all paths are measured in.
type Case struct {
	Frame     int    `json:"frame"` // bytes, with the frame's checksum
	Flows     int    `json:"flows"`
	Family    int    `json:"family"` // 4 or 6
	Protocol  string `json:"proto"`
	Cores     int    `json:"cores"`
	Direction string `json:"direction"`
	Sink      string `json:"sink"`
	Rules     int    `json:"rules,omitempty"`  // added in front of the example's own; no frame matches them
	Tables    int    `json:"tables,omitempty"` // prefixes of a table in front of these; no frame is in it
	Limit     int    `json:"limit,omitempty"`  // set limit states of weir; 0: the example's, or twice the flows
}

// IPv6 reports whether frames are of IPv6.
func (c Case) IPv6() bool { return c.Family == 6 }

// TCP reports whether frames are of TCP.
func (c Case) TCP() bool { return c.Protocol == TCP }

// Both reports whether frames go in both directions.
func (c Case) Both() bool { return c.Direction == Both }

// Needed is how many connections a case has at once.
func (c Case) Needed() int { return c.Flows + NewFlows }

func (c Case) String() string {
	return fmt.Sprintf("%d bytes, %s flows, IPv%d, %s, %s, %s direction, sink %s", c.Frame, units.Thousands(c.Flows), c.Family,
		c.Protocol, units.Plural(c.Cores, "core"), c.Direction, c.Sink) + c.more()
}

// more names what only some cases have.
func (c Case) more() (text string) {
	if c.Rules > 0 {
		text += ", " + units.Plural(c.Rules, "further rule")
	}
	if c.Tables > 0 {
		text += ", a table of " + units.Plural(c.Tables, "host")
	}
	if c.Limit > 0 {
		text += ", room for " + units.Plural(c.Limit, "state")
	}
	return text
}

// Short names a case by what people vary most.
func (c Case) Short() string {
	return fmt.Sprintf("%d bytes, %s", c.Frame, units.Plural(c.Flows, "connection")) + c.more()
}
