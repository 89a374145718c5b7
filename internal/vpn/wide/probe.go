package wide

import (
	"encoding/binary"
	"errors"
)

// A Probe asks whether a lane carries packets of a size, and is the answer to that.
type Probe struct {
	Answer bool
	Deaf   bool   // nothing comes by the lane to who asks; no answer says so
	Number uint64 // which the answer has too
	Size   int    // of the note
}

// leastProbe is the size of the smallest, and mostProbe that of the largest.
const (
	leastProbe = 32
	mostProbe  = 9216
)

// flagDeaf is the only flag that a probe has.
const flagDeaf = 1

var errProbe = errors.New("no probe of weir's")

// Append appends the probe as it is sent: as large as the packets that it is sent for.
func (p *Probe) Append(to []byte) []byte {
	b := make([]byte, min(max(p.Size, leastProbe), mostProbe))
	copy(b, mark)
	if b[kindAt] = kindProbe; p.Answer {
		b[kindAt] = kindAnswer
	} else if p.Deaf {
		b[flagsAt] = flagDeaf
	}
	binary.BigEndian.PutUint16(b[lengthAt:], uint16(len(b)))
	binary.BigEndian.PutUint64(b[bootAt:], p.Number)
	return append(to, b...)
}

// ParseProbe reads a probe, behind which there may be padding.
func ParseProbe(note []byte) (*Probe, error) {
	kind := kindOf(note)
	if kind != kindProbe && kind != kindAnswer || len(note) < leastProbe {
		return nil, errProbe
	}
	n := int(binary.BigEndian.Uint16(note[lengthAt:]))
	if n < leastProbe || n > mostProbe || n > len(note) || len(note)-n >= padding || !zero(note[countAt:bootAt]) || !zero(note[numberAt:]) {
		return nil, errProbe
	}
	flags := note[flagsAt]
	if flags&^flagDeaf != 0 || flags != 0 && kind == kindAnswer {
		return nil, errProbe
	}
	return &Probe{Answer: kind == kindAnswer, Deaf: flags != 0, Number: binary.BigEndian.Uint64(note[bootAt:]), Size: n}, nil
}
