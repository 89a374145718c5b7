package dataplane

import (
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/fw/reason"
)

// reaches sends a packet from the LAN, and returns which packets of its protocol then arrive at the ends of the
// wires, each as "lan" or "wan" and its text. Another one that comes after it says that no more are on their way.
func (s *spreadNet) reaches(text string) []string {
	s.tb.Helper()
	const last = "icmp 192.168.1.10 > 198.18.0.77 type 8 id 77"
	for _, one := range []string{text, last} {
		_, err := unix.Write(s.lan, parsePkt(one).frame(lanHostMAC, lan0MAC))
		check(s.tb, err)
	}
	var seen []string
	over := false
	for deadline := time.Now().Add(spreadPatience); !over; {
		if time.Now().After(deadline) {
			s.tb.Fatalf("%s does not arrive; lan0: %s; wan0: %s", last, s.counts(s.net.lan0), s.counts(s.net.wan0))
		}
		for name, fd := range map[string]int{"wan": s.wan, "lan": s.lan} {
			buffer := make([]byte, 2048)
			for {
				n, from, err := unix.Recvfrom(fd, buffer, 0)
				if err != nil { // nothing comes for a while
					break
				}
				if from.(*unix.SockaddrLinklayer).Pkttype != unix.PACKET_HOST || buffer[12] != 8 || buffer[13] != 0 {
					continue
				}
				switch got := decodePkt(buffer[14:n]).String(); {
				case strings.HasPrefix(got, "udp "):
					seen = append(seen, name+" "+got)
				case strings.Contains(got, "198.18.0.77"):
					over = true
				}
			}
		}
	}
	slices.Sort(seen)
	return seen
}

// A copy is not sent if a policy may select it, as it would leave: by which device, and with which addresses. The packet
// itself has its own answer.
func TestCopiesWithPolicies(t *testing.T) {
	const (
		sent       = "udp 192.168.1.10:4000 > 198.51.100.9:53"
		forwarded  = "wan " + sent + " ttl 63"
		translated = "udp 203.0.113.2:4000 > 198.51.100.9:53"
		outside    = "wan " + translated + " ttl 63"
		static     = "match out on wan0 inet proto udp nat-to 203.0.113.2 static-port\npass\n"
	)
	for _, c := range []struct {
		name, rules string
		steps       [][]string // policies, and what arrives
	}{
		{"of what comes in", "pass\npass in on lan0 inet proto udp dup-to (lan0 192.168.1.10)", [][]string{
			{"", "lan " + sent, forwarded},
			{"out 192.168.1.0/24 198.51.100.0/24 esp lan", forwarded},
			{"out 192.168.1.0/24 198.51.100.0/24 esp wan", "lan " + sent},
			{"out 192.168.1.0/24 198.51.100.0/24 esp"},
			{"fwd 192.168.1.0/24 198.51.100.0/24 esp", "lan " + sent, forwarded}, // by the stack, which has no policy; copies are not forwarded
			{"all", forwarded},
			{"", "lan " + sent, forwarded},
		}},
		{"without a state", "pass no state\npass in on lan0 inet proto udp dup-to (lan0 192.168.1.10) no state", [][]string{
			{"", "lan " + sent, forwarded},
			{"out 192.168.1.0/24 198.51.100.0/24 esp lan", forwarded},
			{"out 192.168.1.0/24 198.51.100.0/24 esp wan", "lan " + sent},
		}},
		{"of what leaves, translated", static + "pass out on wan0 inet proto udp dup-to (lan0 192.168.1.10)", [][]string{
			{"", "lan " + translated, outside},
			{"out 203.0.113.2/32 198.51.100.0/24 esp lan", outside},
			{"out 192.168.1.0/24 198.51.100.0/24 esp lan", "lan " + translated, outside},
			{"out 203.0.113.2/32 198.51.100.0/24 esp wan", "lan " + translated},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSpreadNet(t, c.rules)
			to := scene{harness: s.harness}
			for _, step := range c.steps {
				to.policies(step[0])
				if got := s.reaches(sent); !slices.Equal(got, step[1:]) {
					t.Errorf("with policies %q arrives %q, want %q", step[0], got, step[1:])
				}
			}
		})
	}
}

// What policies select is not redirected by another core either, with a state and without. The stack forwards it, and
// TCX drops what is in clear then.
func TestSpreadPolicies(t *testing.T) {
	for _, rules := range []string{"pass", "pass no state"} {
		t.Run(rules, func(t *testing.T) {
			s := newSpreadNet(t, rules)
			for _, core := range []int{0, s.other + 1} {
				s.give(core, 1)
				time.Sleep(50 * time.Millisecond)
				s.meetPolicies(core != 0)
			}
		})
	}
}

// meetPolicies sends the same packet while there are no policies, those that select it, and others. handed: frames are handed
// to the other core.
func (s *spreadNet) meetPolicies(handed bool) {
	s.tb.Helper()
	to := scene{harness: s.harness}
	for _, step := range [][]string{
		{"", "wan " + toSite + " ttl 63"}, {siteOut}, {"out 192.168.1.0/24 10.8.0.0/16 esp", "wan " + toSite + " ttl 63"}, {siteOut + " held"},
	} {
		to.policies(step[0])
		before := must(s.dp.HandedOver())(s.tb)[s.other].Taken
		s.counts(s.net.lan0)
		s.counts(s.net.wan0)
		if got := s.reaches(toSite); !slices.Equal(got, step[1:]) {
			s.tb.Errorf("handed over %t, policies %q: %q arrives, want %q", handed, step[0], got, step[1:])
		}
		if taken := must(s.dp.HandedOver())(s.tb)[s.other].Taken - before; (taken > 1) != handed {
			s.tb.Errorf("handed over %t: core %d took %d frames", handed, s.other, taken)
		}
		up, dropped := s.counts(s.net.lan0), s.counts(s.net.wan0)
		if len(step) == 1 && (!strings.Contains(up, reason.UpPolicy.String()) || !strings.Contains(dropped, reason.Policy.String())) {
			s.tb.Errorf("handed over %t, policies %q: lan0 counts %q, wan0 %q", handed, step[0], up, dropped)
		}
	}
}
