package shaper

import (
	"fmt"

	"weir/internal/units"
)

// An Engine keeps what a tree of queues lets through within its rates.
type Engine uint8

// The engines.
const (
	Auto    Engine = iota // one of the others: Shaper.Choose
	Phantom               // counts what a queue would hold, and holds nothing
	Queue                 // the kernel's queues, which hold packets
)

// String returns the word for an engine in a file.
func (e Engine) String() string {
	return [...]string{Auto: "auto", Phantom: "phantom", Queue: "queue"}[e]
}

// MarshalText returns the same, for JSON.
func (e Engine) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// UnmarshalText reads it.
func (e *Engine) UnmarshalText(text []byte) error {
	for _, one := range []Engine{Auto, Phantom, Queue} {
		if one.String() == string(text) {
			*e = one
			return nil
		}
	}
	return fmt.Errorf("no engine %q", text)
}

// MaxHeldRate is the highest rate, in bytes per second, at which Auto lets the kernel hold packets.
// All of a line's packets pass one lock, so one core must carry them: 0.75 million a second on the
// machine of docs/measuring.md, that is 2 Gbit/s if they have 340 bytes on average. Half of that
// is left for slower cores and for all else that the core does.
const MaxHeldRate = 125_000_000

// A Choice is the engine of a tree, and the reason for it.
type Choice struct {
	Engine Engine `json:"engine"`
	Why    string `json:"why"`
}

// Choose chooses the engine of a tree without asking the machine, which may not have what holds
// packets. measured says that somebody has measured a queue behind the interface.
func (s *Shaper) Choose(measured bool) Choice {
	switch rate := s.Classes[0].Max.Bytes; {
	case s.Engine == Phantom:
		return Choice{Phantom, "the file says so"}
	case s.Engine == Queue:
		return Choice{Queue, "the file says so"}
	case s.In:
		return Choice{Phantom, "what comes in has passed the queue of its line already"}
	case !s.Modem && !measured:
		return Choice{Phantom, "no queue of a modem is known behind " + s.Interface}
	case rate > MaxHeldRate:
		return Choice{Phantom, fmt.Sprintf("the line has %sbit/s, and one core holds the packets of %sbit/s at most",
			units.Short(float64(rate)*8), units.Short(MaxHeldRate*8))}
	case s.Modem:
		return Choice{Queue, "a modem is behind " + s.Interface + ": its queue stays empty if packets wait here"}
	}
	return Choice{Queue, "a queue was measured behind " + s.Interface + ": it stays empty if packets wait here"}
}

// Cost says what an engine costs.
func (e Engine) Cost() string {
	if e == Queue {
		return "packets wait here, and all pass one lock on their way"
	}
	return "no packet waits; bursts of a few milliseconds go through"
}
