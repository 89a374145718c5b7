package wide

import (
	"encoding/binary"
	"errors"
	"slices"

	"weir/internal/vpn/key"
)

// MostPorts is how many ports a link has at most.
const MostPorts = 16

// An Offer is what an end says of its end of a link. It is the whole of it: the last one that came counts.
type Offer struct {
	Boot       uint64 // a random number of the process that speaks, for this link
	Number     uint64 // of the offer, which counts up
	Port       uint16 // the first port, as this end knows it
	Generation uint64 // a random number that these keys have; 0: the link is not to be wide
	With       uint64 // the generation of the other end's keys that these are used with; 0: none yet
	Ask        bool   // the other end is to answer
	Moved      bool   // this end sends with these keys, and with none of before
	Known      bool   // it knows that the other end does
	Lanes      []Offered
}

// Offered is a port beside the first, with the public key that this end has there.
type Offered struct {
	Port uint16
	Key  key.Public
}

// How a note is laid out. Its first byte is no version of IP.
//
//	0   mark     the kind is its last byte
//	8   length   of all that follows it, with it; the rest is padding
//	10  flags
//	11  lanes
//	12  first port
//	14  zero
//	16  boot, number, generation, with
//	48  lanes: a port and a key each
const (
	mark       = "\x00weirwd"
	kindAt     = len(mark)
	lengthAt   = 8
	flagsAt    = 10
	countAt    = 11
	portAt     = 12
	zeroAt     = 14
	bootAt     = 16
	numberAt   = 24
	genAt      = 32
	withAt     = 40
	lanesAt    = 48
	laneSize   = 2 + key.Size
	padding    = 16
	kindOffer  = 1
	kindProbe  = 2
	kindAnswer = 3
)

const (
	flagAsk = 1 << iota
	flagMoved
	flagKnown
	flagsAll = flagAsk | flagMoved | flagKnown
)

// errOffer says nothing of what is wrong: nobody but a program of weir's speaks so.
var errOffer = errors.New("no offer of weir's")

// IsOffer reports whether a note may be an offer.
func IsOffer(note []byte) bool { return kindOf(note) == kindOffer }

func kindOf(note []byte) byte {
	if len(note) < lengthAt || string(note[:kindAt]) != mark {
		return 0
	}
	return note[kindAt]
}

// Append appends the offer as it is sent.
func (o *Offer) Append(to []byte) []byte {
	b := make([]byte, lanesAt, lanesAt+len(o.Lanes)*laneSize)
	copy(b, mark)
	b[kindAt], b[countAt] = kindOffer, byte(len(o.Lanes))
	for _, f := range []struct {
		on  bool
		bit byte
	}{{o.Ask, flagAsk}, {o.Moved, flagMoved}, {o.Known, flagKnown}} {
		if f.on {
			b[flagsAt] |= f.bit
		}
	}
	binary.BigEndian.PutUint16(b[portAt:], o.Port)
	binary.BigEndian.PutUint64(b[bootAt:], o.Boot)
	binary.BigEndian.PutUint64(b[numberAt:], o.Number)
	binary.BigEndian.PutUint64(b[genAt:], o.Generation)
	binary.BigEndian.PutUint64(b[withAt:], o.With)
	for _, l := range o.Lanes {
		b = binary.BigEndian.AppendUint16(b, l.Port)
		b = append(b, l.Key[:]...)
	}
	binary.BigEndian.PutUint16(b[lengthAt:], uint16(len(b)))
	return append(to, b...)
}

// ParseOffer reads an offer, behind which there may be padding.
func ParseOffer(note []byte) (*Offer, error) {
	if kindOf(note) != kindOffer || len(note) < lanesAt {
		return nil, errOffer
	}
	n, count, flags := int(binary.BigEndian.Uint16(note[lengthAt:])), int(note[countAt]), note[flagsAt]
	if count >= MostPorts || n != lanesAt+count*laneSize || n > len(note) || len(note)-n >= padding || !zero(note[n:]) || !zero(note[zeroAt:bootAt]) || flags&^flagsAll != 0 {
		return nil, errOffer
	}
	o := &Offer{
		Boot: binary.BigEndian.Uint64(note[bootAt:]), Number: binary.BigEndian.Uint64(note[numberAt:]), Port: binary.BigEndian.Uint16(note[portAt:]),
		Generation: binary.BigEndian.Uint64(note[genAt:]), With: binary.BigEndian.Uint64(note[withAt:]),
		Ask: flags&flagAsk != 0, Moved: flags&flagMoved != 0, Known: flags&flagKnown != 0,
	}
	for at := lanesAt; at < n; at += laneSize {
		o.Lanes = append(o.Lanes, Offered{binary.BigEndian.Uint16(note[at:]), key.Public(note[at+2 : at+laneSize])})
	}
	if !o.sound() {
		return nil, errOffer
	}
	return o, nil
}

// sound reports whether what the offer says can be.
func (o *Offer) sound() bool {
	if o.Boot == 0 || o.Port == 0 || (o.Generation == 0) != (len(o.Lanes) == 0) || o.Generation == 0 && (o.With != 0 || o.Moved) || o.Moved && o.With == 0 {
		return false
	}
	for i, l := range o.Lanes {
		if l.Port == 0 || l.Port == o.Port || l.Key == (key.Public{}) ||
			slices.ContainsFunc(o.Lanes[:i], func(other Offered) bool { return other.Port == l.Port || other.Key == l.Key }) {
			return false
		}
	}
	return true
}

func zero(b []byte) bool { return !slices.ContainsFunc(b, func(c byte) bool { return c != 0 }) }
