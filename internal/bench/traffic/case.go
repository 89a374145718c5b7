package traffic

import (
	"fmt"

	"weir/internal/units"
)

// Values of the keys of a [Case].
const (
	UDP = "udp"
	TCP = "tcp"

	OneWay = "one"  // frames go from the LAN to the internet
	Both   = "both" // as many threads send answers, too

	Far    = "far"    // frames cross the last wire, and its receiver drops them
	Egress = "egress" // frames are dropped where the firewall sends them
)

// NewFlows is the number of connections whose opening is timed. They fit conntrack on
// small machines, and are a multiple of the frames between time stamps.
const NewFlows = 48 << 10

// Case is one setting in which all paths are measured.
type Case struct {
	Frame     int    `json:"frame"` // bytes with the frame's checksum; 0: the pattern's sizes
	Flows     int    `json:"flows"`
	Family    int    `json:"family"` // 4 or 6
	Protocol  string `json:"proto"`
	Cores     int    `json:"cores"`
	Direction string `json:"direction"`
	Sink      string `json:"sink"`
	Rules     int    `json:"rules,omitempty"`   // rules added before the example's own; no frame matches them
	Tables    int    `json:"tables,omitempty"`  // prefixes of a table before these; no frame is in it
	Limit     int    `json:"limit,omitempty"`   // weir's set limit states; 0: the example's, or twice the flows
	Pattern   string `json:"pattern,omitempty"` // of steady traffic; "": scattered
}

// IPv6 reports whether frames use IPv6.
func (c Case) IPv6() bool { return c.Family == 6 }

// TCP reports whether frames use TCP.
func (c Case) TCP() bool { return c.Protocol == TCP }

// Both reports whether frames go in both directions.
func (c Case) Both() bool { return c.Direction == Both }

// Needed returns the number of connections that exist at once.
func (c Case) Needed() int { return c.Flows + NewFlows }

func (c Case) String() string {
	return fmt.Sprintf("%s, %s flows, IPv%d, %s, %s, %s direction, sink %s", c.size(), units.Thousands(c.Flows), c.Family,
		c.Protocol, units.Plural(c.Cores, "core"), c.Direction, c.Sink) + c.more()
}

// more names the keys that only some cases have.
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
	if c.Pattern != "" && c.Pattern != IMIX {
		text += ", pattern " + c.Pattern
	}
	return text
}

// size names the size of the frames.
func (c Case) size() string {
	if c.Pattern == IMIX {
		return "IMIX"
	}
	return fmt.Sprintf("%d bytes", c.Frame)
}

// Short names a case by its most commonly varied keys.
func (c Case) Short() string {
	return fmt.Sprintf("%s, %s", c.size(), units.Plural(c.Flows, "connection")) + c.more()
}
