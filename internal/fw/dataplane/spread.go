package dataplane

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"time"

	"weir/internal/fw/bpfload"
	"weir/internal/fw/limits"
	"weir/internal/killpoint"
)

// Maps of bpf/path/spread.h.
const (
	mapSpreadSlots  = "spread_slots"
	mapSpreadCores  = "spread_cores"
	mapSpreadFrames = "spread_frames"
	mapSpreadNext   = "spread_next"
	mapSpreadStays  = "spread_stays"
)

// spreadMaps go on in the next generation, so that frames on their way keep their order.
var spreadMaps = []string{mapSpreadSlots, mapSpreadCores, mapSpreadFrames, mapSpreadNext}

const (
	programSpread     = "weir_xdp_spread"
	programSpreadTake = "weir_spread_take"
)

// entryCore is what takes the place of weir_xdp on the cores that frames are handed to: the same
// programs, loaded a second time.
var entryCore = entry{"weir_core", "core_tails"}

const (
	// SpreadBuckets is how many sets of connections the frames of an interface have. Each has a core.
	SpreadBuckets = limits.SpreadBuckets
	// MostSpreadCore is the last core that frames may be handed to.
	MostSpreadCore = limits.SpreadCores - 1

	// spreadQueue is how many frames the kernel has room for on their way to a core: the most that it allows, and
	// more than SPREAD_ROOM, beyond which weir drops, by what several cores give at once.
	spreadQueue = 16384
	// spreadFormat is what the programs count in the maps: 1: by interface, too. Before there was none.
	spreadFormat = 1
	// backWithin is how long frames on their way are waited for.
	backWithin = time.Second
	// spreadAway is by how much more a core has taken than it was given if none waits for it, and none will.
	spreadAway = 1 << 20
	// spreadAway16 is likewise by how many more of an interface: its numbers wrap at 16 bits.
	spreadAway16 = 1 << 14
)

// spreadEntries returns the sizes of the maps.
func (d *Dataplane) spreadEntries() map[string]uint32 {
	if !d.config.Spread {
		return map[string]uint32{mapSpreadSlots: 1, mapSpreadCores: 1, mapSpreadFrames: 1}
	}
	cores := uint32(1)
	if n, err := bpfload.CPUs(); err == nil { // else the kernel has refused far more
		cores = uint32(min(n, MostSpreadCore+1))
	}
	return map[string]uint32{mapSpreadFrames: cores}
}

// twins adds to the objects the programs that go on with frames that were handed over.
func (d *Dataplane) twins(specs []*bpfload.Spec) {
	if !d.config.Spread {
		return
	}
	for _, spec := range specs {
		if spec.Programs[entryXDP.name] == nil {
			continue
		}
		tails := append([]string{tailOwner}, tailNames[:]...)
		for _, tail := range tails {
			bpfload.Twin(spec, entryXDP.name+"_"+tail, entryCore.name+"_"+tail, entryXDP.tails, entryCore.tails)
		}
		bpfload.Twin(spec, entryXDP.name, entryCore.name, entryXDP.tails, entryCore.tails)
	}
}

// openSpread opens the maps of the generation before. Without all of them there are new ones. If its queues have less
// room, or its programs count otherwise, there are new ones, too, and Commit takes the frames back from the others.
func (d *Dataplane) openSpread() error {
	if !d.config.Spread {
		return nil
	}
	entries := d.spreadEntries()
	found := make(map[string]*bpfload.Map)
	for _, name := range spreadMaps {
		m, err := bpfload.OpenMap(filepath.Join(liveGeneration(d.config.Dir), pinName(name)))
		if isMissing(err) {
			return closeMaps(found)
		}
		if err != nil {
			return errors.Join(err, closeMaps(found))
		}
		found[name] = m
		want := entries[name]
		if name == mapSpreadSlots {
			want = limits.SpreadSlots
		}
		if checkLayout(name, m) != nil || want != 0 && m.MaxEntries() != want {
			return closeMaps(found)
		}
	}
	fits, err := queuesFit(found[mapSpreadFrames])
	if err == nil && fits {
		fits, err = formatFits(found[mapSpreadSlots])
	}
	switch {
	case err != nil:
		return errors.Join(err, closeMaps(found))
	case fits:
		d.spread = found
	default:
		d.outgoing = found
	}
	return nil
}

// formatFits reports whether the programs that use the maps of a generation count as this version's do.
func formatFits(slots *bpfload.Map) (fits bool, err error) {
	err = changeArray(slots, func(slots []xdpSpreadSlot) { fits = slots[0].Format == spreadFormat })
	return fits, err
}

// setFormat notes in new maps how the programs count.
func (d *Dataplane) setFormat() error {
	if !d.config.Spread || d.spread != nil {
		return nil
	}
	return changeArray(d.objects.Maps[mapSpreadSlots], func(slots []xdpSpreadSlot) { slots[0].Format = spreadFormat })
}

// wantedShares are the cores that the buckets of all interfaces are to have.
type wantedShares [limits.SpreadSlots][SpreadBuckets]uint8

// wantShares says which cores the buckets are to have, and returns which they were to have.
func wantShares(of *bpfload.Map, wanted *wantedShares) (before wantedShares, err error) {
	err = changeArray(of, func(slots []xdpSpreadSlot) {
		for i := range slots {
			for j := range slots[i].Bucket {
				b := &slots[i].Bucket[j]
				before[i][j], b.Wanted = b.Wanted, wanted[i][j]
			}
		}
	})
	return before, err
}

// takeBack has the generation before keep all frames on the cores that receive them, and waits a moment for those on
// their way: this generation has other queues. giveAgain undoes it.
func (d *Dataplane) takeBack() (giveAgain func() error, err error) {
	if d.outgoing == nil {
		return func() error { return nil }, nil
	}
	slots := d.outgoing[mapSpreadSlots]
	before, err := wantShares(slots, &wantedShares{})
	giveAgain = func() error {
		_, err := wantShares(slots, &before)
		return err
	}
	if err != nil {
		return giveAgain, err
	}
	return giveAgain, awaitTaken(d.outgoing[mapSpreadCores])
}

// awaitTaken waits for a moment until no frame waits for a core.
func awaitTaken(of *bpfload.Map) (err error) {
	for end := time.Now().Add(backWithin); err == nil && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		waits := false
		err = changeArray(of, func(cores []xdpSpreadCore) {
			for i := range cores {
				waits = waits || int32(atomic.LoadUint32(&cores[i].Given)-atomic.LoadUint32(&cores[i].Taken)) > 0
			}
		})
		if !waits {
			break
		}
	}
	return err
}

// queuesFit reports whether each core's queue in a map of frames on their way has the room that the programs
// count on: other versions may have had less.
func queuesFit(m *bpfload.Map) (bool, error) {
	for core := range m.MaxEntries() {
		room, err := bpfload.CoreRoom(m, core)
		if err != nil {
			return false, fmt.Errorf("look at the queue of core %d: %w", core, err)
		}
		if room > 0 && room < spreadQueue {
			return false, nil
		}
	}
	return true, nil
}

func closeMaps(maps map[string]*bpfload.Map) error {
	var errs []error
	for _, m := range maps {
		errs = append(errs, m.Close())
	}
	return errors.Join(errs...)
}

// Spread says whether frames that come in by an interface are handed to other cores, as SetShares
// has it. Before Commit it says so of the generation to come. The interface has XDP.
func (d *Dataplane) Spread(ifindex int, on bool) error {
	return d.place.Do(func() error {
		if on {
			if err := d.needSpread(); err != nil {
				return err
			}
		}
		if d.lock != nil { // not committed yet
			d.spreads[ifindex] = on
			return nil
		}
		return d.whileLive(func() error { return d.switchSpread(ifindex, on) })
	})
}

// needSpread loads the programs.
func (d *Dataplane) needSpread() error {
	if !d.config.Spread {
		return errors.New("this dataplane was not built to spread frames")
	}
	if err := d.need(entryXDP.programs(d.rare(false)...)...); err != nil {
		return err
	}
	names := append(entryCore.programs(d.rare(false)...), programSpread, programSpreadTake)
	if err := d.need(names...); err != nil {
		return fmt.Errorf("load the programs of other cores: %w", err)
	}
	if err := put(d.objects.Maps[mapSpreadStays], 0, d.objects.Programs[entryXDP.name]); err != nil {
		return err
	}
	if d.lock != nil { // not committed: the programs of the live generation go on until Commit replaces them
		var id uint32
		if err := d.objects.Maps[mapSpreadNext].Lookup(uint32(0), &id); err == nil {
			return nil
		}
	}
	return d.useSpread()
}

// useSpread has other cores go on with this generation's programs. If it has none loaded, no frame
// is on its way, and the programs of the generation before must not stay.
func (d *Dataplane) useSpread() error {
	p := d.objects.Programs[entryCore.name]
	if p == nil {
		if !d.config.Spread {
			return nil
		}
		if err := d.objects.Maps[mapSpreadNext].Delete(uint32(0)); err != nil && !errors.Is(err, bpfload.ErrNoKey) {
			return fmt.Errorf("forget the programs of other cores: %w", err)
		}
		return nil
	}
	if err := put(d.objects.Maps[mapSpreadNext], 0, p); err != nil {
		return err
	}
	killpoint.Done("have other cores go on with the new programs")
	return nil
}

// switchSpread replaces the program of a live link.
func (d *Dataplane) switchSpread(ifindex int, on bool) error {
	key := linkKey{ifindex, bpfload.XDP}
	l, err := openPinnedLink(key, d.config.Dir)
	if err != nil {
		return err
	}
	defer l.link.Close()
	name := programs[key.hook]
	if on {
		name = programSpread
	}
	if err := l.link.Replace(d.objects.Programs[name]); err != nil {
		return fmt.Errorf("change how frames of interface %d are spread: %w", ifindex, err)
	}
	d.spreads[ifindex] = on
	return nil
}

// program returns the program for a link.
func (d *Dataplane) program(key linkKey) string {
	if key.hook == bpfload.XDP && d.spreads[key.ifindex] {
		return programSpread
	}
	return programs[key.hook]
}

// SetShares gives each bucket of an interface a core, by its number + 1; 0: the core that receives.
// A bucket gets it when none of its frames is on its way.
func (d *Dataplane) SetShares(ifindex int, cores *[SpreadBuckets]uint8) error {
	opened := make(map[uint8]bool)
	for _, core := range cores {
		if core == 0 || opened[core] {
			continue
		}
		fresh, err := bpfload.OpenCoreWith(d.objects.Maps[mapSpreadFrames], uint32(core-1), spreadQueue, d.objects.Programs[programSpreadTake])
		if err == nil && fresh {
			err = d.setTaken(int(core-1), 0)
		}
		if err != nil {
			return fmt.Errorf("hand frames to core %d: %w", core-1, err)
		}
		opened[core] = true
	}
	return changeArray(d.objects.Maps[mapSpreadSlots], func(slots []xdpSpreadSlot) {
		slot := &slots[ifindex%limits.SpreadSlots]
		if slot.Ifindex != uint32(ifindex) {
			slot.Ifindex, slot.Receiver = uint32(ifindex), 0
		}
		for i := range slot.Bucket {
			slot.Bucket[i].Wanted = cores[i]
		}
	})
}

// AbandonCore hands no frame to a core any more until SetShares names it again, and says whether it did until
// now. The core has gone offline. The kernel then has the thread that takes the frames run on other cores, also
// when the core is back. So it counts none here, and the queue looks full. Frames on their way may be overtaken.
func (d *Dataplane) AbandonCore(core int) (bool, error) {
	m := d.objects.Maps[mapSpreadFrames]
	if core >= int(m.MaxEntries()) {
		return false, nil
	}
	room, err := bpfload.CoreRoom(m, uint32(core))
	if err != nil || room == 0 {
		return false, err
	}
	if err := m.Delete(uint32(core)); err != nil {
		return false, fmt.Errorf("hand no frames to core %d: %w", core, err)
	}
	return true, d.setTaken(core, spreadAway)
}

// setTaken says how many more frames a core has taken than it was given.
func (d *Dataplane) setTaken(core int, more uint32) error {
	return changeArray(d.objects.Maps[mapSpreadCores], func(cores []xdpSpreadCore) {
		c := &cores[core]
		c.noneWaits(uint16(min(more, spreadAway16)))
		atomic.StoreUint32(&c.Taken, atomic.LoadUint32(&c.Given)+more)
	})
}

// CountLost counts the frames that a core was given and has not taken as lost: the kernel could not hand them over.
// was is what HandedOver said so long ago that none can wait any more. If the core has been given or has taken
// frames since, nothing happens.
func (d *Dataplane) CountLost(core int, was HandOver) error {
	return changeArray(d.objects.Maps[mapSpreadCores], func(cores []xdpSpreadCore) {
		c := &cores[core]
		if atomic.LoadUint32(&c.Given) == was.Given && atomic.CompareAndSwapUint32(&c.Taken, was.Taken, was.Given) {
			atomic.AddUint32(&c.Lost, was.Given-was.Taken)
			c.noneWaits(0)
		}
	})
}

// noneWaits notes that no frame of any interface waits for the core, which has taken so many more than it was given.
func (c *xdpSpreadCore) noneWaits(more uint16) {
	for i := range c.Took {
		c.Took[i] = c.Gave[i] + more
	}
}

// Shares is what the frames of an interface do now.
type Shares struct {
	Receiver int                   // the core that receives; -1: none has
	Cores    [SpreadBuckets]uint8  // by bucket: the core that has its frames, + 1; 0: the core that receives
	Wanted   [SpreadBuckets]uint8  // by bucket: the core that it gets
	Frames   [SpreadBuckets]uint32 // that have come; wraps
	Known    bool                  // SetShares was called for this interface; else its frames may do what an earlier one's did
	idle     bool
}

// Idle reports whether no frame is on its way to another core, and the next ones stay, too.
func (s *Shares) Idle() bool { return s.idle }

// Shares returns what the frames of an interface do.
func (d *Dataplane) Shares(ifindex int) (s Shares, err error) {
	number := ifindex % limits.SpreadSlots
	var gave, took []uint16 // by core
	err = changeArray(d.objects.Maps[mapSpreadCores], func(cores []xdpSpreadCore) {
		for i := range cores {
			c := &cores[i]
			taken := atomic.LoadUint32(&c.Taken)
			gave, took = append(gave, c.Gave[number]), append(took, c.Took[number])
			if atomic.LoadUint32(&c.Given) == taken {
				took[i] = gave[i] // nothing waits, whichever interface a core that was offline counted it for
			}
		}
	})
	if err != nil {
		return s, err
	}
	s.Receiver, s.idle = -1, true
	now := uint16(atomic.LoadUint32(&d.tables.shared.Now))
	err = changeArray(d.objects.Maps[mapSpreadSlots], func(slots []xdpSpreadSlot) {
		slot := &slots[number]
		if slot.Ifindex != uint32(ifindex) {
			return
		}
		s.Known = true
		s.Receiver = int(slot.Receiver) - 1
		for i := range slot.Bucket {
			b := &slot.Bucket[i]
			s.Cores[i], s.Wanted[i], s.Frames[i] = b.Core, b.Wanted, atomic.LoadUint32(&b.Frames)
			s.idle = s.idle && b.Wanted == 0 && (b.Core == 0 || b.settled(gave[b.Core-1], took[b.Core-1], now))
		}
	})
	return s, err
}

// settled is spread_is_settled() of bpf/path/spread.h for a bucket of another core, which was given so many frames of the
// interface and has taken so many.
func (b *xdpSpreadBucket) settled(gave, took, now uint16) bool {
	given := uint16(b.Given)
	waits := int16(gave-took) > 0 && given-took < gave-took
	return !waits && (took-given >= limits.SpreadTaken || now-b.Tick >= limits.SpreadIdle)
}

// Spreads reports whether frames of an interface may be handed to other cores.
func (d *Dataplane) Spreads(ifindex int) bool { return d.spreads[ifindex] }

// HandOver is how many frames a core has been given, and what became of them. All wrap. Taken includes Lost: frames
// that no core has taken. Full were dropped before.
type HandOver struct{ Given, Taken, Full, Lost uint32 }

// HandedOver returns that of all cores.
func (d *Dataplane) HandedOver() (all []HandOver, err error) {
	err = changeArray(d.objects.Maps[mapSpreadCores], func(cores []xdpSpreadCore) {
		for i := range cores {
			c := &cores[i]
			all = append(all, HandOver{atomic.LoadUint32(&c.Given), atomic.LoadUint32(&c.Taken), atomic.LoadUint32(&c.Full), atomic.LoadUint32(&c.Lost)})
		}
	})
	return all, err
}
