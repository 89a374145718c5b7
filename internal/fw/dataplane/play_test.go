package dataplane

import (
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/vishvananda/netns"

	"weir/internal/oracle/model"
	"weir/pf/resolve"
)

// A play is a set of rules and the steps that happen under them.
type play struct {
	name  string
	rules string
	steps []step
}

// A step is a packet at a hook and what becomes of it, or a change of the scene.
//
//	{"xdp lan", "tcp 192.168.1.10:4000 > 198.51.100.9:80 S", "forward rule wan tcp 192.168.1.10:4000 > 198.51.100.9:80 S ttl 63"}
//	{"tcx wan", packet, "drop block"}
//	{"out wan", packet, "up rule s1 …"}      leaves by TCX egress, the box's own
//	{"out wan came", packet, "…"}            … forwarded by the stack, with that mark
//	{"own wan +0x5", packet, "…"}            the box's own, with that mark
//	{"wait", "30", ""}                       seconds
//	{"policies", "out 10.0.0.0/8 ... esp", ""}  of IPsec, as scene.policies reads them
//	{"states", "", "line; line"}
//	{"sources", "", "address states connections rate; ..."}
//	{"counts", "", "states sources; ..."}    of the rules with limits
//	{"settle", "", "address <table>, n states ended"}
//
// The result of a packet is the verdict, the reason, and the mark or the redirect. Marks
// are came, leaves, record0 and so on (enum mark of bpf/config.h), then the
// administrator's bits. "back s1" says that TCX ingress redirects the packet (s1 is the
// first state; s1r is its direction 1). The packet follows if it has changed. $x is a
// number, and the same number wherever it occurs again.
type step struct{ at, packet, want string }

// weirs is weir's own bits of the mark by default.
var weirs = model.Marks{Mask: resolve.DefaultMarkMask}

// TestPackets gives frames to programs that are loaded only once, because the verifier
// takes seconds. Each section has its own rules and begins without states.
func TestPackets(t *testing.T) {
	h := newHarness(t, "pass\n"+limiterRule+stickyRule+leastRule+normalRule+familyRule, func(c *Config) { c.Room = 100 })
	for _, section := range []struct {
		name string
		run  func(*harness)
	}{
		{"parse", testParse},
		{"sanity", testSanity},
		{"implicit", testImplicit},
		{"forward", testForward},
		{"lists", testLists},
		{"choices", testChoices},
		{"nat in", testNatIn},
		{"sctp", testSCTP},
		{"diverts", testDiverts},
		{"port sets", testPortSets},
		{"endpoints", testEndpoints},
		{"least states", testLeastStates},
		{"up", testUp},
		{"skip", testSkip},
		{"life", testStateLife},
		{"limits of rules", testRuleLimits},
		{"limiters", testLimiters},
		{"anchors", testAnchors},
		{"track", testTrack},
		{"facts", testFacts},
		{"owners", testOwners},
		{"received on", testReceivedOn},
		{"systems", testSystems},
		{"wrap", testSequenceNumbersWrap},
		{"errors", testICMPErrors},
		{"families", testFamilies},
		{"fragments", testFragments},
		{"out", testOut},
		{"guard", testGuard},
		{"notes", testNotes},
		{"marks", testMarks},
		{"marks steer", testMarksSteer},
		{"scrub", testScrub},
		{"scrub headers", testScrubHeaders},
		{"scrub lists", testScrubLists},
		{"stamps", testStamps},
		{"stamps whose changes cancel", testStampsCancel},
		{"stamp 0", testStampZero},
		{"stamps on lo", testStampsOnLo},
		{"stamp checks", testStampChecks},
		{"stamp time", testStampTime},
		{"stamp ttl", testStampTTL},
		{"rejects", testRejects},
		{"policies", testPolicies},
		{"segments", testSegments},
		{"scattered frames", testScattered},
		{"layer 3", testLayer3},
		{"next hops", testNextHops},
		{"next hops full", testNextHopsFull},
		{"paths full", testPathsFull},
		{"fragments full", testFragmentsFull},
		{"hand-offs full", testHandoffsFull},
		{"log ring full", testLogRingFull},
		{"checksums", testChecksums},
		{"pools", testPools},
		{"pool without daemon", testPoolWithoutDaemon},
		{"addresses", testAddresses},
		{"capture", testCapture},
		{"tags", testTags},
		{"tagged", testTagged},
		{"closed", testClosed},
		{"bare", testBare},
		{"devices", testDevices}, // must be last: one of them is gone afterwards
	} {
		h.sub(section.name, func(h *harness) {
			h.reset()
			section.run(h)
		})
	}
}

// plays runs plays, each with its own rules and without states.
func (h *harness) plays(all []play) {
	for _, p := range all {
		h.sub(p.name, func(h *harness) {
			h.load(p.rules)
			s := scene{harness: h, numbers: map[string]string{}, order: []uint32{0}}
			for i, step := range p.steps {
				s.play(i, step)
			}
		})
	}
}

// sub runs a test of the harness as a subtest, which has another thread.
func (h *harness) sub(name string, f func(*harness)) {
	t := h.tb.(*testing.T)
	inside := must(netns.Get())(t)
	defer inside.Close()
	t.Run(name, func(t *testing.T) {
		runtime.LockOSThread() // never unlocked: the thread ends with the subtest
		check(t, netns.Set(inside))
		sub := *h
		sub.tb = t
		f(&sub)
	})
}

type scene struct {
	*harness
	numbers map[string]string
	order   []uint32 // indexes of states in the order of their creation, from 1 on
}

// note numbers the new states.
func (s *scene) note() {
	for st := range s.dp.View().States() {
		if !slices.Contains(s.order, st.Index) {
			s.order = append(s.order, st.Index)
		}
	}
}

func (s *scene) play(i int, step step) {
	s.tb.Helper()
	got := s.act(step.at, s.fill(step.packet))
	s.note()
	if !s.matches(step.want, got) {
		s.tb.Errorf("step %d: %s %s\n got %s\nwant %s\nstates %q", i, step.at, step.packet, got, s.fill(step.want), s.states())
	}
}

func (s *scene) act(at, packet string) string {
	s.tb.Helper()
	words := strings.Fields(at)
	switch words[0] {
	case "wait":
		seconds := must(strconv.ParseFloat(packet, 64))(s.tb)
		s.advance(seconds)
		return ""
	case "policies":
		return s.policies(packet)
	case "sources":
		return s.sourceTexts()
	case "counts":
		return s.limitTexts()
	case "settle":
		return s.settleTexts()
	case "states":
		return strings.Join(s.states(), "; ")
	case "xdp":
		return s.outcome(packet, s.in(s.xdp, words[1], packet))
	case "tcx":
		return s.outcome(packet, s.in(s.tcIn, words[1], packet))
	case "out":
		return s.outcome(packet, s.leave(words[1:], packet, s.net.lan0))
	case "own":
		return s.outcome(packet, s.leave(words[1:], packet, 0))
	}
	s.tb.Fatalf("no such hook: %s", at)
	return ""
}

// leave makes a packet leave by an interface, with its MACs as the stack sets them. If it
// has a mark, it came in by the interface from; 0 means that the box sends it.
func (s *scene) leave(words []string, packet string, from int) result {
	s.tb.Helper()
	var mark uint32
	if len(words) > 1 {
		mark = s.parseMark(words[1])
	} else {
		from = 0
	}
	if words[0] == "lan" {
		return s.tcFrom(s.net.lan0, parsePkt(packet).frame(lan0MAC, lanHostMAC), mark, from)
	}
	return s.tcFrom(s.net.wan0, parsePkt(packet).frame(wan0MAC, wanHostMAC), mark, from)
}

func (s *scene) parseMark(text string) uint32 {
	s.tb.Helper()
	word, others, _ := strings.Cut(text, "+")
	var mark uint64
	if others != "" {
		mark = must(strconv.ParseUint(others, 0, 32))(s.tb)
	}
	n, isRecord := strings.CutPrefix(word, "record")
	switch {
	case isRecord:
		return weirs.Set(uint32(mark), model.MarkRecord+uint32(must(strconv.Atoi(n))(s.tb)))
	case word == "came":
		return weirs.Set(uint32(mark), model.MarkCame)
	case word == "leaves":
		return weirs.Set(uint32(mark), model.MarkLeaves)
	case word == "divert":
		return weirs.Set(uint32(mark), model.MarkDivert)
	}
	return uint32(mark)
}

// markText returns a mark in the form that parseMark reads.
func (s *scene) markText(mark uint32) string {
	var text string
	switch v := weirs.Of(mark); v {
	case model.MarkNone:
	case model.MarkCame:
		text = "came"
	case model.MarkLeaves:
		text = "leaves"
	case model.MarkDivert:
		text = "divert"
	default:
		text = fmt.Sprintf("record%d", v-model.MarkRecord)
	}
	if others := weirs.Set(mark, 0); others != 0 {
		text += fmt.Sprintf("+%#x", others)
	}
	return text
}

// backText says whose packet TCX ingress must redirect.
func (s *scene) backText(number uint32) string {
	if number == 0 {
		return " back"
	}
	s.note()
	text := fmt.Sprintf(" back s%d", slices.Index(s.order, number>>1))
	if number&1 != 0 {
		text += "r"
	}
	return text
}

// outcome returns a result in the form of a step.
func (s *scene) outcome(sent string, r result) string {
	text := fmt.Sprintf("%s %s", r.verdict, r.reason)
	if r.verdict == drop {
		return text
	}
	if r.mark != 0 && r.verdict == up {
		text += " " + s.markText(r.mark)
	} else if r.back {
		text += s.backText(r.number)
	} else if r.meta {
		text += " done"
	}
	packet := r.packet()
	if r.verdict == up {
		packet = strings.TrimPrefix(strings.TrimPrefix(packet, "wan "), "lan ")
		if packet == parsePkt(sent).String() {
			return text
		}
	}
	return text + " " + packet
}

var variable = regexp.MustCompile(`\$[a-z]+`)

// fill replaces the variables that have a value.
func (s *scene) fill(text string) string {
	return variable.ReplaceAllStringFunc(text, func(name string) string {
		if value, ok := s.numbers[name]; ok {
			return value
		}
		return name
	})
}

// matches compares, and stores the values of new variables.
func (s *scene) matches(want, got string) bool {
	want = s.fill(want)
	names := variable.FindAllString(want, -1)
	pattern := "^" + variable.ReplaceAllString(regexp.QuoteMeta(strings.ReplaceAll(want, "$", "@@")), "") + "$"
	pattern = regexp.MustCompile(`@@[a-z]+`).ReplaceAllString(pattern, `([0-9]+)`)
	values := regexp.MustCompile(pattern).FindStringSubmatch(got)
	if values == nil {
		return false
	}
	for i, name := range names {
		s.numbers[name] = values[i+1]
	}
	return true
}
