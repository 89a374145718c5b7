package dataplane

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Environment variables that choose TestRandom's run and its length.
const (
	seedVariable    = "WEIR_RANDOM_SEED"
	packetsVariable = "WEIR_RANDOM_PACKETS"
	episodeVariable = "WEIR_RANDOM_EPISODE"
)

// episodeLength is how many events one ruleset gets.
const episodeLength = 700

// shrinking is how long a failing history is shortened.
const shrinking = 30 * time.Second

// TestRandom gives the dataplane and the model the same random packets and rules. It
// compares the result of each packet, the states after it, and in the end all counters. A
// failure prints the rules and the packets that matter. Each of two CPUs plays half of
// the episodes, with its own interfaces, programs and maps. To repeat a run, or to make
// it longer:
//
//	WEIR_RANDOM_SEED=N WEIR_RANDOM_PACKETS=N go test -run TestRandom$ ./internal/fw/dataplane
//	WEIR_RANDOM_SEED=N WEIR_RANDOM_EPISODE=N go test -run TestRandom$ ./internal/fw/dataplane
func TestRandom(t *testing.T) {
	seed := number(t, seedVariable, 1)
	packets := int(number(t, packetsVariable, 500_000))
	alone := os.Getenv(episodeVariable) != ""
	episode := number(t, episodeVariable, 0)
	t.Logf("%s=%d", seedVariable, seed)
	for n, kind := range []struct {
		name             string
		implicit, copies bool
		packets          int
	}{
		{"implicit-pass", true, false, packets / 2},
		{"no-implicit-pass", false, false, packets * 3 / 8},
		{"copies", true, true, packets / 8},
	} {
		begin := uint64(n)
		if alone {
			if episode%3 != begin {
				continue
			}
			begin, kind.packets = episode, 1
		}
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			oneCPU(t, n)
			newStage(t, kind.implicit, kind.copies).run(t, seed, begin, kind.packets)
		})
	}
}

// run plays every third episode, beginning with the given one, until enough packets were
// sent.
func (s *stage) run(t *testing.T, seed, episode uint64, packets int) {
	t.Helper()
	begin, shots := time.Now(), 0
	for ; shots < packets; episode += 3 {
		s.drawing = &drawing{rand.New(rand.NewPCG(seed, episode)), s.twin.host(), s.twin.implicit, s.twin.copies}
		if s.play(); s.failed != nil {
			s.shrink()
			t.Fatalf("%s=%d, episode %d\n%s", seedVariable, seed, episode, s)
		}
		shots += s.shots
	}
	t.Logf("%d packets in %s", shots, time.Since(begin).Round(time.Second))
}

// number reads an environment variable.
func number(t *testing.T, variable string, unset uint64) uint64 {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return unset
	}
	return must(strconv.ParseUint(text, 10, 64))(t)
}

// A stage plays episodes: rules, and events under them.
type stage struct {
	*drawing
	twin   *twin
	lines  []string // of the rules
	events []event
	failed error // difference after the last event
	shots  int
}

func newStage(t *testing.T, implicit, copies bool) *stage {
	t.Helper()
	return &stage{twin: newTwinIn(newNet(t), implicit, copies)}
}

// play draws rules and events until something differs.
func (s *stage) play() {
	s.failed, s.shots, s.events = nil, 0, nil
	s.lines = s.ruleset()
	s.drawFlags()
	s.drawCapture()
	s.twin.prefetch(s.IntN(2) == 0)
	s.twin.warm = s.IntN(2) == 0
	s.twin.use(strings.Join(s.lines, "\n"))
	f := &traffic{drawing: s.drawing, twin: s.twin}
	for range episodeLength {
		e := f.next()
		s.events = append(s.events, e)
		if e.shot != nil {
			s.shots++
		}
		if s.failed = s.act(e, f); s.failed != nil {
			return
		}
	}
	s.failed = s.twin.differCounters()
}

// drawFlags draws the abilities of the interfaces.
func (s *stage) drawFlags() {
	clear(s.twin.flags)
	clear(s.twin.tags)
	clear(s.twin.logical)
	for _, name := range []string{"lan0", "wan0"} {
		flags := allFlags
		for _, f := range []InterfaceFlags{InterfaceTarget, InterfaceStatic4, InterfaceStatic6} {
			if s.IntN(8) == 0 {
				flags &^= f
			}
		}
		s.twin.flags[name] = flags
		if s.IntN(8) == 0 {
			s.twin.flags[name] &^= InterfaceTarget // no VLAN device is one
			s.twin.tags[name] = tag{one[uint16](s.Rand, Type8021Q, Type8021AD), uint16(s.Uint32()) | 1}
		}
	}
	for name := range s.twin.tags {
		s.twin.logical[name] = len(s.twin.tags) == 1 && s.IntN(4) != 0 // each other's carriers are none
	}
}

// drawCapture captures the packets of some episodes. That must change nothing.
func (s *stage) drawCapture() {
	var all []CaptureFilter
	if s.IntN(4) == 0 {
		all = []CaptureFilter{{Readers: 1, All: true}}
	}
	check(s.twin.tb, s.twin.dp.SetCapture(CaptureBytes, all))
}

// act runs an event. f, if any, learns the result.
func (s *stage) act(e event, f *traffic) error {
	switch {
	case e.sweep:
		s.twin.sweep()
	case e.moves:
		s.twin.move()
	case e.shot == nil:
		s.twin.wait(e.ticks)
	case e.of != nil && !s.twin.holds(e.number, *e.of):
	default:
		o, err := s.twin.shoot(*e.shot)
		if err != nil {
			return err
		}
		if f != nil {
			f.remember(e.shot, &o)
		}
	}
	return nil
}

// replay plays events under rules and returns how they differ, or nil.
func (s *stage) replay(lines []string, events []event) error {
	text := strings.Join(lines, "\n")
	if _, faults := loadTest(text, s.host); faults.HasErrors() {
		return nil
	}
	s.twin.use(text)
	for _, e := range events {
		if err := s.act(e, nil); err != nil {
			return err
		}
	}
	return s.twin.differCounters()
}

// shrink removes what the difference does not need.
func (s *stage) shrink() {
	deadline := time.Now().Add(shrinking)
	if err := s.replay(s.lines, s.events); err == nil {
		s.failed = fmt.Errorf("%w\n(but not when it was repeated)", s.failed)
		return
	}
	for range 2 {
		s.events = s.cut(len(s.events), deadline, func(from, to int) ([]string, []event) {
			return s.lines, slices.Delete(slices.Clone(s.events), from, to)
		}).events
		s.lines = s.cut(len(s.lines), deadline, func(from, to int) ([]string, []event) {
			return slices.Delete(slices.Clone(s.lines), from, to), s.events
		}).lines
	}
}

// cut tries to remove parts of n, large ones first, and keeps what still fails.
func (s *stage) cut(n int, deadline time.Time, without func(from, to int) ([]string, []event)) *stage {
	for size := (n + 1) / 2; size > 0; size /= 2 {
		for at := n - size; at > -size && time.Now().Before(deadline); at -= size {
			from, to := max(at, 0), at+size
			if to > n {
				continue
			}
			lines, events := without(from, to)
			if err := s.replay(lines, events); err != nil {
				s.lines, s.events, s.failed = lines, events, err
				n -= to - from
			}
		}
	}
	return s
}

// String prints rules, events and difference.
func (s *stage) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "set implicit-pass %t; interfaces %v; tags %v, done by XDP %v; lan0 is %d, wan0 is %d\n%s\n", s.twin.implicit, s.twin.flags, s.twin.tags, s.twin.logical,
		s.twin.net.lan0, s.twin.net.wan0, strings.Join(s.lines, "\n"))
	for i, e := range s.events {
		switch {
		case e.sweep:
			fmt.Fprintf(&b, "%d: the garbage collection releases states\n", i+1)
		case e.moves:
			fmt.Fprintf(&b, "%d: routes move\n", i+1)
		case e.shot == nil:
			fmt.Fprintf(&b, "%d: %d ms go by\n", i+1, e.ticks*10)
		default:
			fmt.Fprintf(&b, "%d: %s\n", i+1, e.shot)
		}
	}
	fmt.Fprintf(&b, "%v", s.failed)
	return b.String()
}
