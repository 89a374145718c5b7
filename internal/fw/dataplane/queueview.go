package dataplane

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"weir/internal/fw/bpfload"
)

// A QueueClass is what a class of the queues has done, in bytes on the line.
type QueueClass struct {
	Sent        uint64     `json:"bytes"` // that passed
	Packets     uint64     `json:"packets"`
	Lost        uint64     `json:"dropped_bytes"`
	Drops       uint64     `json:"dropped_packets"`
	Why         QueueDrops `json:"dropped_why"` // of them
	Marked      uint64     `json:"marked"`      // packets that tell of congestion
	Shared      uint64     `json:"shared"`      // packets whose connection had no counter of its own
	Granted     uint64     `json:"granted"`     // bytes that the tree has given it
	Backlog     uint64     `json:"backlog"`     // bytes that its connections have sent beyond what they were given
	Hosts       uint32     `json:"hosts"`       // with backlog
	Connections uint32     `json:"connections"` // likewise
	Level       uint64     `json:"host_rate"`   // bytes per second that one more host would get
	RTT         QueueRTT   `json:"rtt"`
	Max         uint64     `json:"max_rate"` // bytes per second; 0: none but that of a queue above
}

// QueueTimer is how the timer of the queues does.
type QueueTimer struct {
	Runs     uint32        `json:"runs"`
	Active   uint32        `json:"active"` // connections that it looks at
	Busy     uint32        `json:"busy"`   // those with backlog
	Longest  time.Duration `json:"longest_ns"`
	Spent    time.Duration `json:"spent_ns"`    // by all runs
	Late     uint64        `json:"late"`        // runs that came more than 2 ms late
	Unserved time.Duration `json:"unserved_ns"` // that no run served, because the next one came too late
}

// Queues returns what the classes of all trees have done, in the order of
// ruleset.Program.Shapers and of their classes. There are none if no interface has queues.
func (v *View) Queues() (all []QueueClass, timer QueueTimer, err error) {
	dir := liveGeneration(v.dir)
	classes, err := bpfload.OpenMap(filepath.Join(dir, pinName(mapQueueClasses)))
	if isMissing(err) {
		return nil, timer, nil
	}
	if err != nil {
		return nil, timer, err
	}
	defer classes.Close()
	data, err := bpfload.OpenMap(filepath.Join(dir, pinName(mapQueueData)))
	if err != nil {
		return nil, timer, err
	}
	defer data.Close()
	if err := errors.Join(checkLayout(mapQueueClasses, classes), checkLayout(mapQueueData, data)); err != nil {
		return nil, timer, err
	}
	var now uint32
	err = errors.Join(
		changeArray(classes, func(raw []xdpQueueClass) {
			for i := 1; i < len(raw); i++ {
				all = append(all, queueClassOf(&raw[i]))
			}
		}),
		changeArray(data, func(raw []xdpQueueSection) { timer, now = queueTimerOf(&raw[0]), raw[0].Clock.Ms }),
	)
	if err == nil {
		err = readQueueRTTs(dir, all, now)
	}
	if err != nil {
		return nil, timer, fmt.Errorf("read the queues: %w", err)
	}
	return all, timer, nil
}

func queueClassOf(c *xdpQueueClass) QueueClass {
	return QueueClass{
		Sent: c.Sent, Packets: c.Packets, Lost: c.Lost, Drops: c.Drops, Why: queueDropsOf(c), Marked: c.Marked, Shared: c.Shared,
		Granted: c.Granted, Backlog: c.Backlog, Hosts: c.Hosts, Connections: c.Counters, Level: c.Level >> queueFine * 1000,
		Max: bytesPerSecond(c.Max.Rate),
	}
}

// QueueRoom is for how many connections the queues have a count, and the memory of all that they need.
// Neither grows.
type QueueRoom struct {
	Connections uint32 `json:"connections"`
	Bytes       uint64 `json:"bytes"`
}

// QueueRoom returns the room of the queues. There is none if no interface has queues.
func (v *View) QueueRoom() (room QueueRoom, err error) {
	classes := uint32(0)
	for _, name := range queueMaps {
		m, err := bpfload.OpenMap(filepath.Join(liveGeneration(v.dir), pinName(name)))
		if isMissing(err) {
			return QueueRoom{}, nil
		}
		if err != nil {
			return QueueRoom{}, err
		}
		room.Bytes += uint64(m.MaxEntries()) * uint64(m.ValueSize())
		switch name {
		case mapQueueClasses:
			classes = m.MaxEntries()
		case mapQueueCounters:
			room.Connections = m.MaxEntries()
		}
		if err := m.Close(); err != nil {
			return QueueRoom{}, err
		}
	}
	room.Connections -= classes // one of each class is for all that find none
	return room, nil
}

// bytesPerSecond is the inverse of rawRate.
func bytesPerSecond(raw uint64) uint64 { return (raw*1_000_000 + 1<<23) >> 24 }

// QueueRates returns who has set the rate of each tree, in the order of ruleset.Program.Shapers.
func (v *View) QueueRates(trees int) (all []RateBy, err error) {
	data, err := bpfload.OpenMap(filepath.Join(liveGeneration(v.dir), pinName(mapQueueData)))
	if isMissing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer data.Close()
	if err := checkLayout(mapQueueData, data); err != nil {
		return nil, err
	}
	err = changeArray(data, func(raw []xdpQueueSection) {
		for i := range min(trees, len(raw[0].Shapers)-1) {
			all = append(all, RateBy(raw[0].Shapers[i+1].SetBy))
		}
	})
	return all, err
}

func queueTimerOf(s *xdpQueueSection) QueueTimer {
	c := &s.Clock
	return QueueTimer{
		Runs: c.Tick, Active: c.Active, Busy: c.Busy, Longest: time.Duration(c.Longest), Spent: time.Duration(c.Spent),
		Late: c.Late, Unserved: time.Duration(c.Lost),
	}
}
