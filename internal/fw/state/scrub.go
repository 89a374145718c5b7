package state

import (
	"fmt"
	"strings"
)

// A Scrub is how a connection's packets are normalised, by rules of either crossing.
type Scrub struct {
	NoDF     bool
	RandomID bool
	MinTTL   [2]uint8 // least TTL where direction 0 comes in, and where it leaves; 0: none
	MaxMSS   uint16   // largest MSS of SYNs; 0: any
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
	if in, out := s.MinTTL[0], s.MinTTL[1]; in == out {
		add(in != 0, "min-ttl %d", in)
	} else {
		add(in != 0, "min-ttl %d in", in)
		add(out != 0, "min-ttl %d out", out)
	}
	add(s.MaxMSS != 0, "max-mss %d", s.MaxMSS)
	return strings.Join(options, " ")
}
