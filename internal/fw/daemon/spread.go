package daemon

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"weir/internal/fw/dataplane"
	"weir/internal/fw/limits"
	"weir/internal/host/netif"
	"weir/internal/host/proc"
	"weir/pf/resolve"
)

// Shares of a core's time, by which the daemon decides.
const (
	fullCore  = 0.9 // and more: it cannot do more
	spareCore = 0.6 // and less: it can
	easyCore  = 0.7 // and less: the core that receives takes work back
	evenCores = 0.1 // cores that differ by less have their shares
	// fullFor and easyFor are for how many seconds.
	fullFor = 3
	easyFor = 5
	// muchTraffic is how many packets a second an interface has at least that fills a core, and oneQueue the share
	// of them that a core has if the card spreads nothing.
	muchTraffic = 10_000
	oneQueue    = 0.75
	// spreadStep is how many buckets come back in a second from an easy load, and the most that come back for drops. If
	// the core is full, spreadDrain more come back.
	spreadStep  = dataplane.SpreadBuckets / 16
	spreadDrain = dataplane.SpreadBuckets / 64
	// dropsFor is for how many seconds a
	// core drops until a great connection leaves it.
	dropsFor = 3
)

// A spreader is an interface whose frames other cores may take.
type spreader struct {
	resolve.Spread
	why    string
	full   int  // seconds for which a core was full of what it receives, or, while it spreads, easy
	known  bool // frames is of the last second
	frames [dataplane.SpreadBuckets]uint32
	handed []dataplane.HandOver // by core, at the last look; nil: not known yet
	drops  map[int]int          // by core: seconds for which it has dropped frames, without one that it did not
	online []int                // cores that may take frames of any interface
	among  int                  // interfaces that spread, which may share cores
	came   []uint64             // by core: packets of the interface that were counted there, while a core is full
	told   []int                // the cores that the log says its frames are handed to
	kept   kept
	failed string // what the log says went wrong
}

// spreading is what the daemon knows of spreading.
type spreading struct {
	by    map[string]*spreader // by interface
	times map[int]proc.Times   // of the cores, at the last look
	said  string               // what was recorded of all

	handed []dataplane.HandOver // by core, at the last look
	again  bool                 // a core takes none, and has to begin anew
	failed string               // what the log says went wrong with them
}

// stuckFrames wait at least if a core that takes none is taken for one that has been offline.
const stuckFrames = 256

// isStuck reports whether a core was given frames between two looks, and has taken none of many.
func isStuck(before, now dataplane.HandOver) bool {
	return now.Given != before.Given && now.Taken == before.Taken && int32(now.Given-now.Taken) >= stuckFrames
}

// isLost reports whether frames that a core was given will not be taken: none was given or taken between two looks.
func isLost(before, now dataplane.HandOver) bool {
	return now.Given == before.Given && now.Taken == before.Taken && int32(now.Given-now.Taken) > 0
}

// abandonCores hands no frames to cores that have gone offline. Those that are back begin anew. It counts frames that no
// core has taken.
func (b *box) abandonCores() error {
	handed, err := b.dp.HandedOver()
	if err != nil {
		return err
	}
	before, online := b.spreads.handed, steerable()
	b.spreads.handed, b.spreads.again = handed, false
	for core := range handed {
		back := slices.Contains(online, core)
		if back && (core >= len(before) || !isStuck(before[core], handed[core])) {
			if core < len(before) && isLost(before[core], handed[core]) {
				if err := b.dp.CountLost(core, handed[core]); err != nil {
					return err
				}
			}
			continue
		}
		did, err := b.dp.AbandonCore(core)
		if err != nil {
			return err
		}
		if did {
			b.spreads.again = b.spreads.again || back
			b.cfg.Log.Warn("a core takes no frames any more: it is or was offline", "core", core)
		}
	}
	return nil
}

// willSpread says of a generation to come which interfaces spread, before it is committed: those that do
// whatever the load is, and those whose frames other cores have now, perhaps by an earlier daemon.
// Without the programs for that, frames stay.
func (b *box) willSpread(dp *dataplane.Dataplane, rules *compiled, m *machine) {
	for _, s := range rules.options.Spreads {
		l := m.link(s.Interface)
		if l == nil || b.cannotSpread(l, rules.options.Spreads, m) != "" {
			continue
		}
		if s.Auto {
			if now, err := dp.Shares(l.Index); err != nil || now.Idle() {
				continue
			}
		}
		if err := dp.Spread(l.Index, true); err != nil {
			b.cfg.Log.Warn("frames stay on the core that receives", "interface", l.Name, "error", err)
		}
	}
}

// cannotSpread returns why the frames of an interface stay where they come in; "": they need not.
func (b *box) cannotSpread(l *netif.Link, all []resolve.Spread, m *machine) string {
	h := b.hooks[l.Index]
	takes := h.known.Flags&dataplane.InterfaceTarget != 0
	if h.known.Flags == 0 { // at a start the dataplane is told after the commit
		target, err := netif.XDPTargetOf(l.Index)
		takes = err == nil && target.Any
	}
	switch {
	case h.Hook != XDP:
		return "it has no XDP"
	case len(steerable()) < 2:
		return "there is one core"
	case !takes:
		return "its driver takes no redirected frames, so other cores could not answer by it"
	}
	for _, s := range all {
		if other := m.link(s.Interface); other != nil && other.Index < l.Index && (other.Index-l.Index)%limits.SpreadSlots == 0 {
			return fmt.Sprintf("its index, %d, is that of %s, %d, in the last four bits", l.Index, other.Name, other.Index)
		}
	}
	return ""
}

// followLoad moves shares among the cores, once a second.
func (b *box) followLoad() {
	if b.dp == nil || b.rules == nil || len(b.rules.options.Spreads) == 0 {
		b.spreads = spreading{}
		return
	}
	times, err := proc.Cores("/proc")
	if err != nil {
		b.cfg.Log.Debug("how busy cores are", "error", err)
		return
	}
	load := loads(b.spreads.times, times)
	b.spreads.times = times
	err = b.abandonCores()
	if isNews(&b.spreads.failed, err) {
		b.cfg.Log.Warn("look at the cores that frames are handed to", "error", err)
	}
	now, online := make(map[string]*spreader), steerable()
	m := &machine{links: b.links}
	for _, s := range b.rules.options.Spreads {
		one := b.spreads.by[s.Interface]
		if one == nil {
			one = &spreader{}
		}
		one.Spread, one.online, one.among = s, online, len(b.rules.options.Spreads)
		now[s.Interface] = one
		l := m.link(s.Interface)
		if l == nil {
			one.why = "there is no such interface"
			continue
		}
		if why := b.cannotSpread(l, b.rules.options.Spreads, m); why != "" {
			one.why = why
			if b.dp.Spreads(l.Index) { // it did until now
				b.stopSpreading(l)
			}
			continue
		}
		err := b.followOne(one, l, load)
		if err != nil {
			one.why = err.Error()
		}
		if isNews(&one.failed, err) {
			b.cfg.Log.Warn("spread frames", "interface", l.Name, "error", err)
		}
	}
	b.spreads.by = now
	b.noteSpreads()
}

// isNews reports whether an error is another one than last time, and notes it.
func isNews(said *string, err error) bool {
	text := ""
	if err != nil {
		text = err.Error()
	}
	before := *said
	*said = text
	return text != "" && text != before
}

// noteSpreads records what the interfaces do if that has changed.
func (b *box) noteSpreads() {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(b.spreads.by)) {
		fmt.Fprintf(&text, "%s: %s\n", name, b.spreads.by[name].why)
	}
	if text.String() == b.spreads.said {
		return
	}
	b.spreads.said = text.String()
	m, err := b.machine()
	if err == nil {
		err = b.noteInterfaces(m)
	}
	if err != nil {
		b.cfg.Log.Debug("record how frames are spread", "error", err)
	}
}

// coreLoad is how a core spent the last second, as shares of it. Programs with a low priority (nice) give way, and count as nothing.
type coreLoad struct{ busy, softirq float64 }

func loads(before, now map[int]proc.Times) map[int]coreLoad {
	all := make(map[int]coreLoad)
	for core, t := range now {
		was, known := before[core]
		d := t.Minus(was)
		if total := float64(d.Total()); known && total > 0 {
			all[core] = coreLoad{1 - float64(d.Idle+d.IOWait+d.Nice)/total, float64(d.Softirq) / total}
		}
	}
	return all
}

// followOne decides for one interface.
func (b *box) followOne(s *spreader, l *netif.Link, load map[int]coreLoad) error {
	if !b.dp.Spreads(l.Index) {
		if s.Auto {
			needs, err := b.needsSpread(s, l, load)
			if err != nil || !needs {
				return err
			}
		}
		if err := b.dp.Spread(l.Index, true); err != nil {
			return err
		}
		s.full, s.known = 0, false
		b.cfg.Log.Info("frames may be handed to other cores", "interface", l.Name, "why", s.why)
	}
	now, err := b.dp.Shares(l.Index)
	if err != nil {
		return err
	}
	handed, err := b.dp.HandedOver()
	if err != nil {
		return err
	}
	dropped := s.dropped(&now, handed)
	wanted := now.Wanted
	if now.Receiver >= 0 && s.known {
		s.share(&wanted, &now, load, dropped)
	}
	s.say(&now)
	s.frames, s.known = now.Frames, true
	if wanted != now.Wanted || !now.Known || b.spreads.again {
		if err := b.dp.SetShares(l.Index, &wanted); err != nil {
			return err
		}
	}
	if s.isOther(&now) {
		b.cfg.Log.Info("other cores take frames", "interface", l.Name, "receives", now.Receiver, "cores", s.told)
	}
	if s.Auto && s.full >= easyFor && now.Idle() {
		s.full = 0
		s.why = "the core that receives can do the work alone"
		b.cfg.Log.Info("frames are handed to other cores no more", "interface", l.Name, "why", s.why)
		return b.dp.Spread(l.Index, false)
	}
	return nil
}

// needsSpread reports whether the frames of an interface have filled one core for a while.
func (b *box) needsSpread(s *spreader, l *netif.Link, load map[int]coreLoad) (bool, error) {
	before := s.came
	s.came = nil
	if !slices.ContainsFunc(slices.Collect(maps.Values(load)), coreLoad.isFull) {
		s.full, s.why = 0, "no core is full of what it receives"
		return false, nil
	}
	interfaces := []int{l.Index}
	for index, h := range b.hooks {
		if h.parent.by == l.Name && index != l.Index {
			interfaces = append(interfaces, index)
		}
	}
	now, err := b.dp.View().PacketsByCore(interfaces...)
	if err != nil {
		return false, err
	}
	s.came = now
	if before == nil {
		return false, nil
	}
	came := make(map[int]uint64)
	for core := range now {
		came[core] = now[core] - min(now[core], before[core]) // an interface may have gone
	}
	return s.needs(load, came), nil
}

// isFull reports whether a core can receive no more.
func (c coreLoad) isFull() bool { return c.softirq >= fullCore }

// needs reports whether one core has been full for a while of what it receives from the interface, and another is not.
// came is how many packets of the interface each core has had in the last second.
func (s *spreader) needs(load map[int]coreLoad, came map[int]uint64) bool {
	receiver, total, spare := -1, uint64(0), -1
	for _, core := range slices.Sorted(maps.Keys(load)) {
		total += came[core]
		if receiver < 0 || came[core] > came[receiver] {
			receiver = core
		}
	}
	for _, core := range slices.Sorted(maps.Keys(load)) {
		if core != receiver && load[core].busy <= spareCore && s.may(core) {
			spare = core
			break
		}
	}
	switch {
	case total < muchTraffic:
		s.why = "a core is full, but not of its frames"
	case float64(came[receiver]) < oneQueue*float64(total):
		s.why = "its card gives frames to several cores"
	case !load[receiver].isFull():
		s.why = fmt.Sprintf("core %d, which receives its frames, is not full", receiver)
	case spare < 0:
		s.why = "no other core has time"
	default:
		s.full++
		s.why = fmt.Sprintf("core %d is full of what it receives, core %d has time", receiver, spare)
		return s.full >= fullFor
	}
	s.full = 0
	return false
}

// may reports whether a core may take frames.
func (s *spreader) may(core int) bool {
	return core <= dataplane.MostSpreadCore && (len(s.Cores) == 0 || slices.Contains(s.Cores, core)) && slices.Contains(s.online, core)
}

// isOther reports whether frames are handed to other cores than the log says, and notes them. With shares that move
// between the same cores it is silent.
func (s *spreader) isOther(now *dataplane.Shares) bool {
	cores := []int{}
	for _, core := range now.Cores {
		if core != 0 && !slices.Contains(cores, int(core)-1) {
			cores = append(cores, int(core)-1)
		}
	}
	slices.Sort(cores)
	if slices.Equal(cores, s.told) {
		return false
	}
	s.told = cores
	return true
}

// say says what the frames do.
func (s *spreader) say(now *dataplane.Shares) {
	var names []string
	count, all := make(map[int]int), 0 // by what came in the last second, a few connections may be most of it; else by buckets
	still := !s.known || s.total(now) == 0
	for i, core := range now.Cores {
		n := 1
		if !still {
			n = int(s.framesOf(now, i))
		}
		count[int(core)-1] += n
		all += n
	}
	s.kept.note(100*count[-1]/all, still)
	delete(count, -1)
	for _, core := range slices.Sorted(maps.Keys(count)) {
		names = append(names, fmt.Sprint(core))
	}
	switch {
	case now.Receiver < 0:
		s.why = "no frame has come"
	case len(names) == 0:
		s.why = fmt.Sprintf("core %d receives and does all", now.Receiver)
	default:
		s.why = fmt.Sprintf("core %d receives and does about %d %%, core %s the rest", now.Receiver, s.kept.said, strings.Join(names, ", "))
	}
}

// kept is how much of the frames the core that receives does itself, in per cent, as it is said. Each change is recorded, so it has steps, and
// what one second differs by is none.
type kept struct {
	known bool
	mean  int // of the last seconds, in quarters of a per cent
	still int // seconds without a frame
	said  int
}

const (
	keptStep   = 10
	keptMargin = 7 // how far the mean is from what was said when another step is
	stillFor   = 5 // seconds without a frame, after which the share is that of the buckets
)

// note notes a second. still: no frame came, and the share is that of the buckets.
func (k *kept) note(share int, still bool) {
	if !still {
		k.still = 0
	} else if k.still++; k.known && k.still < stillFor {
		return
	}
	switch {
	case !k.known || still:
		k.mean = 4 * share
	default:
		k.mean += share - k.mean/4
	}
	if now := k.mean / 4; !k.known || max(now-k.said, k.said-now) > keptMargin {
		k.said = (now + keptStep/2) / keptStep * keptStep
	}
	k.known = true
}

// endSpreading takes all frames back to the cores that receive, where the new rules do not spread. It waits
// a moment for frames on their way, so that none is overtaken.
func (b *box) endSpreading(rules *compiled) error {
	if b.dp == nil {
		return nil
	}
	var errs []error
	for i := range b.links {
		l := &b.links[i]
		stays := slices.ContainsFunc(rules.options.Spreads, func(s resolve.Spread) bool { return s.Interface == l.Name })
		if stays || !b.dp.Spreads(l.Index) {
			continue
		}
		errs = append(errs, b.takeBack(l.Index))
	}
	return errors.Join(errs...)
}

// endSpreadingNow has the interfaces that the rules in force no longer spread keep their frames.
func (b *box) endSpreadingNow() {
	for i := range b.links {
		l := &b.links[i]
		stays := slices.ContainsFunc(b.rules.options.Spreads, func(s resolve.Spread) bool { return s.Interface == l.Name })
		if !stays && b.dp.Spreads(l.Index) {
			b.stopSpreading(l)
		}
	}
}

// stopSpreading takes the frames of an interface back, and hands no more to other cores.
func (b *box) stopSpreading(l *netif.Link) {
	if err := errors.Join(b.takeBack(l.Index), b.dp.Spread(l.Index, false)); err != nil {
		b.cfg.Log.Warn("take frames back", "interface", l.Name, "error", err)
	}
}

func (b *box) takeBack(ifindex int) error {
	var none [dataplane.SpreadBuckets]uint8
	if err := b.dp.SetShares(ifindex, &none); err != nil {
		return err
	}
	for range 100 {
		now, err := b.dp.Shares(ifindex)
		if err != nil || now.Idle() {
			return err
		}
		unix.Nanosleep(&unix.Timespec{Nsec: 10e6}, nil) //nolint:errcheck // a signal may end it early
	}
	return nil
}
