package ppp

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// table is the state transition table of RFC 1661 4.1 as it is printed there.
const table = `
 Up   |    2     irc,scr/6     -         -         -         -         -         -         -           -
 Down |    -         -         0       tls/1       0         1         1         1         1         tld/1
 Open |  tls/1       1     irc,scr/6     3r        5r        5r        6         7         8           9r
 Close|    0       tlf/0       2         2         4         4     irc,str/4 irc,str/4 irc,str/4 tld,irc,str/4
  TO+ |    -         -         -         -       str/4     str/5     scr/6     scr/6     scr/8         -
  TO- |    -         -         -         -       tlf/2     tlf/3     tlf/3p    tlf/3p    tlf/3p        -
 RCR+ |    -         -       sta/2 irc,scr,sca/8   4         5       sca/8   sca,tlu/9   sca/8   tld,scr,sca/8
 RCR- |    -         -       sta/2 irc,scr,scn/6   4         5       scn/6     scn/7     scn/6   tld,scr,scn/6
 RCA  |    -         -       sta/2     sta/3       4         5       irc/7     scr/6x  irc,tlu/9   tld,scr/6x
 RCN  |    -         -       sta/2     sta/3       4         5     irc,scr/6   scr/6x  irc,scr/8   tld,scr/6x
 RTR  |    -         -       sta/2     sta/3     sta/4     sta/5     sta/6     sta/6     sta/6   tld,zrc,sta/5
 RTA  |    -         -         2         3       tlf/2     tlf/3       6         6         8       tld,scr/6
 RUC  |    -         -       scj/2     scj/3     scj/4     scj/5     scj/6     scj/7     scj/8       scj/9
 RXJ+ |    -         -         2         3         4         5         6         6         8           9
 RXJ- |    -         -       tlf/2     tlf/3     tlf/2     tlf/3     tlf/3     tlf/3     tlf/3   tld,irc,str/5
 RXR  |    -         -         2         3         4         5         6         7         8       ser/9
`

var actionNames = [actions]string{
	thisLayerUp: "tlu", thisLayerDown: "tld", thisLayerStarted: "tls", thisLayerFinished: "tlf", initRestartCount: "irc",
	zeroRestartCount: "zrc", sendRequest: "scr", sendAck: "sca", sendNak: "scn", sendTerminateRequest: "str",
	sendTerminateAck: "sta", sendCodeReject: "scj", sendEchoReply: "ser",
}

// recorder is below a layer and writes down what the layer does.
type recorder struct{ did []string }

func (r *recorder) send(_ Protocol, p Packet) {
	names := map[Code]string{
		ConfigureRequest: "scr", ConfigureAck: "sca", ConfigureNak: "scn", TerminateRequest: "str", TerminateAck: "sta", CodeReject: "scj",
	}
	r.did = append(r.did, names[p.Code])
}
func (r *recorder) layerUp(*layer)               { r.did = append(r.did, "tlu") }
func (r *recorder) layerDown(*layer)             { r.did = append(r.did, "tld") }
func (r *recorder) layerFinished(*layer, string) { r.did = append(r.did, "tlf") }
func (r *recorder) special(Packet) bool          { return false }
func (r *recorder) echoAsked(Packet)             { r.did = append(r.did, "ser") }
func (r *recorder) room() int                    { return 1488 }

type noTerms struct{}

func (noTerms) request() []Option                     { return nil }
func (noTerms) refused(Code, []Option)                {}
func (noTerms) judge([]Option, bool) (Code, []Option) { return ConfigureAck, nil }

// printed are the cells of the table: event, state, actions, next state.
func printed(t *testing.T) (cells [events][states]struct {
	do   []string
	next State
	ok   bool
}) {
	t.Helper()
	lines := strings.Split(strings.Trim(table, "\n"), "\n")
	if len(lines) != events {
		t.Fatalf("%d lines", len(lines))
	}
	for e, line := range lines {
		name, rest, _ := strings.Cut(line, "|")
		if strings.TrimSpace(name) != eventNames[e] {
			t.Fatalf("line %d is %s, not %s", e, name, eventNames[e])
		}
		words := strings.Fields(rest)
		if len(words) != states {
			t.Fatalf("%s has %d cells", name, len(words))
		}
		for s, word := range words {
			if word == "-" {
				continue
			}
			word = strings.TrimRight(word, "rpx")
			do, next, found := strings.Cut(word, "/")
			if !found {
				do, next = "", do
			}
			cells[e][s].ok = true
			cells[e][s].next = State(next[0] - '0')
			if do != "" {
				cells[e][s].do = strings.Split(do, ",")
			}
		}
	}
	return cells
}

// TestTable compares each of the 160 cells with the printed one, and lets a layer go through
// it: it must do what is visible of it and be in the state that follows.
func TestTable(t *testing.T) {
	now := time.Unix(1000, 0)
	for e, row := range printed(t) {
		for s, want := range row {
			got := transitions[e][s]
			if got.ok != want.ok {
				t.Errorf("%s in %s: can happen: %v, want %v", eventNames[e], State(s), got.ok, want.ok)
				continue
			}
			var do []string
			for _, a := range got.do {
				do = append(do, actionNames[a])
			}
			if want.ok && (got.next != want.next || !slices.Equal(do, want.do)) {
				t.Errorf("%s in %s: %v/%d, want %v/%d", eventNames[e], State(s), do, got.next, want.do, want.next)
			}
			r := &recorder{}
			l := layer{protocol: IPCP, terms: noTerms{}, link: r, period: time.Second, state: State(s)}
			l.in, l.answer, l.request = Packet{Code: EchoRequest}, Packet{Code: ConfigureAck}, Packet{Code: ConfigureRequest}
			if event(e) == requestBad {
				l.answer.Code = ConfigureNak
			}
			l.handle(event(e), now)
			visible := slices.DeleteFunc(slices.Clone(want.do), func(a string) bool { return a == "irc" || a == "zrc" || a == "tls" })
			after := want.next
			if !want.ok {
				after = State(s)
			}
			if l.state != after || !slices.Equal(visible, r.did) {
				t.Errorf("%s in %s: did %v and is in %s, want %v and %s", eventNames[e], State(s), r.did, l.state, visible, after)
			}
			if l.deadline.IsZero() && slices.ContainsFunc(visible, func(a string) bool { return a == "scr" || a == "str" }) {
				t.Errorf("%s in %s: no timer runs", eventNames[e], State(s))
			}
		}
	}
}

// TestLateAnswers has a peer that needs longer than the restart timer: the answer to the
// first request counts although that has been sent again.
func TestLateAnswers(t *testing.T) {
	now := time.Unix(1000, 0)
	r := &recorder{}
	l := layer{protocol: IPCP, terms: noTerms{}, link: r, period: time.Second, state: Starting}
	l.handle(up, now)
	first := l.request
	now = now.Add(time.Second)
	l.tick(now)
	if len(r.did) != 2 || l.request.ID != first.ID {
		t.Fatalf("did %v, identifiers %d and %d", r.did, first.ID, l.request.ID)
	}
	l.receive(Packet{Code: ConfigureAck, ID: first.ID, Data: first.Data}, now)
	if l.state != AckRcvd {
		t.Errorf("the state is %s", l.state)
	}
	l.receive(Packet{Code: ConfigureAck, ID: first.ID, Data: first.Data}, now)
	if l.state != AckRcvd || len(r.did) != 2 {
		t.Errorf("the same answer once more led to %s, %v", l.state, r.did)
	}
	l.receive(Packet{Code: ConfigureAck, ID: first.ID + 1, Data: first.Data}, now)
	if l.state != AckRcvd {
		t.Errorf("an answer to no request led to %s", l.state)
	}
}

// TestRestartCounter has a peer that never answers: 10 requests, then 2 to terminate.
func TestRestartCounter(t *testing.T) {
	now := time.Unix(1000, 0)
	r := &recorder{}
	l := layer{protocol: IPCP, terms: noTerms{}, link: r, period: time.Second, state: Starting}
	l.handle(up, now)
	for range 30 {
		now = now.Add(time.Second)
		l.tick(now)
	}
	want := slices.Repeat([]string{"scr"}, maxConfigure)
	if !slices.Equal(r.did, append(want, "tlf")) || l.state != Stopped {
		t.Errorf("did %v and is in %s", r.did, l.state)
	}
	r.did = nil
	l.state = Opened
	l.handle(shut, now)
	for range 30 {
		now = now.Add(time.Second)
		l.tick(now)
	}
	if !slices.Equal(r.did, []string{"tld", "str", "str", "tlf"}) || l.state != Closed {
		t.Errorf("did %v and is in %s", r.did, l.state)
	}
}
