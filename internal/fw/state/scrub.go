package state

import (
	"fmt"
	"strings"
)

// A Scrub is how packets of one direction of a connection are normalised.
type Scrub struct {
	NoDF           bool
	RandomID       bool
	Enters, Leaves uint8  // least TTL where they come in, and where they leave; 0: none
	MaxMSS         uint16 // largest MSS of SYNs; 0: any
	HasTOS         bool   // packets get TOS
	ReassembleTCP  bool   // State.Normal is valid
	TOS            uint8
}

// String returns the options in the form of pf.conf, "" if there are none. If the least
// TTLs of the two sides differ, each is printed with its side.
func (s *Scrub) String() string {
	var options []string
	add := func(given bool, format string, values ...any) {
		if given {
			options = append(options, fmt.Sprintf(format, values...))
		}
	}
	add(s.NoDF, "no-df")
	add(s.RandomID, "random-id")
	if s.Enters == s.Leaves {
		add(s.Enters != 0, "min-ttl %d", s.Enters)
	} else {
		add(s.Enters != 0, "min-ttl %d in", s.Enters)
		add(s.Leaves != 0, "min-ttl %d out", s.Leaves)
	}
	add(s.ReassembleTCP, "reassemble tcp")
	add(s.MaxMSS != 0, "max-mss %d", s.MaxMSS)
	add(s.HasTOS, "set-tos %#.2x", s.TOS)
	return strings.Join(options, " ")
}

// scrubs returns how packets of both directions are normalised, as they are printed: for
// the second only if it is not the same, seen from the other side.
func (s *State) scrubs() (forth, back string) {
	same := s.Scrub[0]
	same.Enters, same.Leaves = same.Leaves, same.Enters
	forth = s.Scrub[0].String()
	if s.Scrub[1] != same {
		back = s.Scrub[1].String()
		if back == "" {
			back = "no"
		}
	}
	return forth, back
}
