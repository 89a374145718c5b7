package sample

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"
)

// Point is what happened in one interval.
type Point struct {
	At     time.Duration     `json:"at_ns"`           // the interval's end, since sampling began
	Took   time.Duration     `json:"took_ns"`         // its real length
	Cores  []Core            `json:"cores"`           // in the order of their numbers
	Links  []Link            `json:"links,omitempty"` // links that moved or dropped anything
	Drops  map[string]uint64 `json:"drops,omitempty"` // packets that weir dropped, by reason
	States uint32            `json:"states,omitempty"`
}

// Core is how one core spent an interval, in shares of it, with the counters of its
// receive queue.
type Core struct {
	ID       int     `json:"id"`
	Busy     float64 `json:"busy"`    // not idle and not waiting for a disk
	Softirq  float64 `json:"softirq"` // part of busy: the kernel's network work
	User     float64 `json:"user"`    // part of busy: programs
	Steal    float64 `json:"steal"`   // part of busy: taken by the hypervisor
	Packets  uint64  `json:"packets"` // taken from receive queues, after GRO by some drivers
	Dropped  uint64  `json:"dropped"` // backlog queue was full
	Squeezed uint64  `json:"squeezed"`
}

// Link is what one link did in an interval.
type Link struct {
	Name       string `json:"name"`
	RxPackets  uint64 `json:"rx_packets"`
	TxPackets  uint64 `json:"tx_packets"`
	RxBytes    uint64 `json:"rx_bytes"`
	TxBytes    uint64 `json:"tx_bytes"`
	RxDropped  uint64 `json:"rx_dropped"` // includes packets that did not fit the card's ring
	TxDropped  uint64 `json:"tx_dropped"`
	Errors     uint64 `json:"errors"`
	Queued     uint64 `json:"queued"`      // bytes waiting in its queueing disciplines at the end of the interval
	QueueDrops uint64 `json:"queue_drops"` // packets dropped by these
}

// Limits of a point from another machine.
const (
	maxCores   = 4096
	maxLinks   = 64
	maxReasons = 256
	maxName    = 64
)

// Check rejects a point that no sampler makes. Names in it may still contain any
// character.
func (p *Point) Check() error {
	if p.At < 0 || p.Took < 0 || p.At > 48*time.Hour || p.Took > 48*time.Hour {
		return fmt.Errorf("sample: interval of %s at %s", p.Took, p.At)
	}
	if len(p.Cores) > maxCores || len(p.Links) > maxLinks || len(p.Drops) > maxReasons {
		return fmt.Errorf("sample: %d cores, %d links, %d reasons", len(p.Cores), len(p.Links), len(p.Drops))
	}
	for _, c := range p.Cores {
		for _, share := range []float64{c.Busy, c.Softirq, c.User, c.Steal} {
			if math.IsNaN(share) || share < 0 || share > 1 {
				return fmt.Errorf("sample: core %d was busy for %g of the time", c.ID, share)
			}
		}
	}
	for _, l := range p.Links {
		if len(l.Name) > maxName {
			return fmt.Errorf("sample: a link's name has %d bytes", len(l.Name))
		}
	}
	for name := range p.Drops {
		if len(name) > maxName {
			return fmt.Errorf("sample: a reason has %d bytes", len(name))
		}
	}
	return nil
}

// Busiest returns the core that was busiest over all points, weighted by their lengths,
// and how busy it was. It returns -1 if there is none.
func Busiest(points []Point) (id int, busy float64) {
	spent := map[int]float64{}
	total := 0.0
	for _, p := range points {
		total += p.Took.Seconds()
		for _, c := range p.Cores {
			spent[c.ID] += c.Busy * p.Took.Seconds()
		}
	}
	id = -1
	for _, core := range slices.Sorted(maps.Keys(spent)) {
		if share := spent[core] / total; total > 0 && (id < 0 || share > busy) {
			id, busy = core, share
		}
	}
	return id, busy
}

// Dropped returns the sum of the drops of all points, by the place that dropped them.
func Dropped(points []Point) map[string]uint64 {
	sum := map[string]uint64{}
	add := func(place string, n uint64) {
		if n > 0 {
			sum[place] += n
		}
	}
	for _, p := range points {
		for _, c := range p.Cores {
			add("the kernel's backlog", c.Dropped)
		}
		for _, l := range p.Links {
			add(l.Name+" on reception", l.RxDropped)
			add(l.Name+" on sending", l.TxDropped)
			add(l.Name+", its errors", l.Errors)
			add(l.Name+", its queue", l.QueueDrops)
		}
		for reason, n := range p.Drops {
			add("weir: "+reason, n)
		}
	}
	return sum
}

// Longest returns the longest interval.
func Longest(points []Point) time.Duration {
	longest := time.Duration(0)
	for _, p := range points {
		longest = max(longest, p.Took)
	}
	return longest
}
