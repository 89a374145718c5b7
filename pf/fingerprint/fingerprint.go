package fingerprint

import (
	"slices"
	"strings"
)

// File is where pf has its fingerprints.
const File = "/etc/pf.os"

// Unknown is the name of a sender whose SYN has no fingerprint.
const Unknown = "unknown"

// Most is how many fingerprints a file may have.
const Most = 4096

// A Kind says how a Number is compared.
type Kind uint8

// Kinds of numbers.
const (
	Exactly Kind = iota
	Any
	Multiple // of the number
	TimesMSS // the number times the SYN's MSS
	TimesMTU // the number times the MTU that the MSS implies
)

// A Number is a condition on a number of a SYN.
type Number struct {
	Kind Kind
	N    uint16
}

// A Fingerprint is what SYNs look like that some systems send.
type Fingerprint struct {
	Window, MSS, Scale Number
	Size               Number // bytes of the packet in IPv4; 20 more in IPv6
	TTL                uint8  // as it was sent
	DF                 bool   // do not fragment; IPv6 has no such bit
	Options            string // a letter each, in order: N no operation, M MSS, W window scale, S SACK, T timestamp
	ZeroTime           bool   // the timestamp is 0
}

// A System is an operating system.
type System struct{ Class, Version, Subtype string }

// A Listed fingerprint has all systems that have it.
type Listed struct {
	Fingerprint
	Systems []System
}

// A List has fingerprints in the order in which they are compared: the first that fits
// counts.
type List []Listed

// is reports whether a rule's name means the system: the class, or the class and the
// version, or both and the subtype.
func (s *System) is(name string) bool {
	for _, words := range [][]string{{s.Class}, {s.Class, s.Version}, {s.Class, s.Version, s.Subtype}} {
		if strings.EqualFold(name, strings.Join(words, " ")) {
			return true
		}
	}
	return false
}

// Of returns the positions of the fingerprints that a rule's name means.
func (l List) Of(name string) (positions []int) {
	for i := range l {
		if slices.ContainsFunc(l[i].Systems, func(s System) bool { return s.is(name) }) {
			positions = append(positions, i)
		}
	}
	return positions
}

// Names returns the names that rules may use.
func (l List) Names() []string {
	names := map[string]bool{Unknown: true}
	for _, f := range l {
		for _, s := range f.Systems {
			names[s.Class] = true
			names[strings.TrimSpace(s.Class+" "+s.Version)] = true
			names[strings.TrimSpace(s.Class+" "+s.Version+" "+s.Subtype)] = true
		}
	}
	all := make([]string, 0, len(names))
	for name := range names {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// add adds a fingerprint with a system. Systems with the same fingerprint share one.
func (l List) add(f Fingerprint, s System) List {
	for i := range l {
		if l[i].Fingerprint == f {
			l[i].Systems = append(l[i].Systems, s)
			return l
		}
	}
	return append(l, Listed{f, []System{s}})
}
