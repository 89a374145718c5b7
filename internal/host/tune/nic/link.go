package nic

import (
	"fmt"
	"slices"
	"unsafe"
)

// Link is the state of a card's port, and its limits.
type Link struct {
	Mbit    int // 0: no link, or the driver does not report it
	MaxMbit int // for copper, which can fall back to lower speeds; 0 for other ports
	Duplex  string
	// AdvertisedMbit is the fastest speed that the card offers the other end, PartnerMbit
	// the fastest that the other end offers, CommonMbit the fastest that both offer, ReachMbit
	// the fastest that the port has and the other end offers. 0: the driver does not report it,
	// or the port is not of copper.
	AdvertisedMbit, PartnerMbit, CommonMbit, ReachMbit int
	Autoneg                                            bool
}

// Link reads the state of a card's port. The library's function prints to standard output
// if the kernel has more link modes than it knows.
func (c *Cards) Link(card string) (*Link, error) {
	s, err := c.link(card)
	if err != nil {
		return nil, err
	}
	return s.state(), nil
}

// state names what the settings say.
func (s *linkSettings) state() *Link {
	l := &Link{
		MaxMbit: s.fastest(supported), AdvertisedMbit: s.fastest(advertised), PartnerMbit: s.fastest(partner),
		CommonMbit: s.fastest(advertised, partner), ReachMbit: s.fastest(supported, partner), Autoneg: s.autoneg != 0,
	}
	if s.speed != speedUnknown {
		l.Mbit = int(s.speed)
	}
	switch s.duplex {
	case duplexHalf:
		l.Duplex = "half"
	case duplexFull:
		l.Duplex = "full"
	}
	return l
}

// fastest returns the highest speed of copper that is in each of these masks.
func (s *linkSettings) fastest(masks ...int) (mbit int) {
	for _, m := range modes {
		if !slices.ContainsFunc(masks, func(mask int) bool { return !s.has(mask, m.bit) }) {
			mbit = max(mbit, m.mbit)
		}
	}
	return mbit
}

// has reports whether a link mode is in one of the masks.
func (s *linkSettings) has(mask, bit int) bool {
	words, word := int(s.words), bit/32
	return word < words && s.masks[mask*words+word]&(1<<(bit%32)) != 0
}

// linkSettings is struct ethtool_link_settings, followed by room for the three masks of
// link modes.
type linkSettings struct {
	command, speed                                          uint32
	duplex, port, phy, autoneg, mdio, mdix, mdixControl     uint8
	words                                                   int8 // words per mask; negative: the number that the kernel wants
	transceiver, masterSlave, masterSlaveState, rateMatched uint8
	reserved                                                [7]uint32
	masks                                                   [3 * 127]uint32 // words each, in the order below
}

// The masks of linkSettings.
const (
	supported = iota
	advertised
	partner
)

// Values of ethtool_link_settings, and the link mode bits of copper ports by speed
// (linux/ethtool.h). A copper port can fall back from these speeds.
const (
	speedUnknown = 1<<32 - 1
	duplexHalf   = 0
	duplexFull   = 1
)

var modes = []struct{ bit, mbit int }{{1, 10}, {3, 100}, {5, 1000}, {47, 2500}, {48, 5000}, {12, 10000}}

// link asks twice: the first reply gives the length of the masks.
func (c *Cards) link(card string) (*linkSettings, error) {
	first := &linkSettings{command: commandGetLink}
	if err := c.ioctl(card, unsafe.Pointer(first)); err != nil {
		return nil, err
	}
	if first.words >= 0 {
		return nil, fmt.Errorf("the kernel wants masks of %d words", first.words)
	}
	second := &linkSettings{command: commandGetLink, words: -first.words}
	if err := c.ioctl(card, unsafe.Pointer(second)); err != nil {
		return nil, err
	}
	return second, nil
}
