package keeper

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"weir/internal/vpn/key"
	"weir/internal/vpn/tunnel"
	"weir/pf/resolve"
)

// An Event is something that has happened to a tunnel.
type Event struct {
	Number    uint64    `json:"number"` // counts from 1, in each process
	Time      time.Time `json:"time"`
	Interface string    `json:"interface"`
	Peer      string    `json:"peer,omitempty"`
	Kind      Kind      `json:"kind"`
	Text      string    `json:"text"`
	Times     int       `json:"times"` // it came so often, the last time at Last
	Last      time.Time `json:"last"`
}

// Kind says what an event is about.
type Kind string

// Kinds of events.
const (
	OfTunnel    Kind = "tunnel"    // engine, interface, problems
	OfKeys      Kind = "keys"      // keys, and which peers there are
	OfHandshake Kind = "handshake" // sessions
	OfEndpoint  Kind = "endpoint"  // where a peer is
	OfMTU       Kind = "mtu"
	OfError     Kind = "error" // what the engine says
)

// Log is what a process remembers.
type Log struct {
	Began  time.Time `json:"began"` // the process
	Events []Event   `json:"events"`
}

// A journal remembers the last events. The same one again within a minute is counted with the first.
type journal struct {
	began time.Time

	mu     sync.Mutex
	events []Event // in order
	number uint64
	odd    time.Time // when somebody without a key was last noted
}

// How many events are remembered, and how far back the same one is looked for.
const (
	mostEvents = 4000
	samePause  = time.Minute
	sameEvents = 100
)

func (j *journal) note(e Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i := len(j.events) - 1; i >= max(0, len(j.events)-sameEvents); i-- {
		if is := &j.events[i]; is.Interface == e.Interface && is.Peer == e.Peer && is.Kind == e.Kind && is.Text == e.Text {
			if e.Time.Sub(is.Last) >= samePause {
				break
			}
			is.Times, is.Last = is.Times+1, e.Time
			return
		}
	}
	j.number++
	e.Number, e.Times, e.Last = j.number, 1, e.Time
	if len(j.events) == mostEvents {
		j.shorten()
	}
	j.events = append(j.events, e)
}

// shorten drops the oldest events of one kind, of one peer or of nobody in particular, that there are the
// most of: whoever does the same all the time pushes out his own.
func (j *journal) shorten() {
	type source struct {
		of, peer string
		kind     Kind
	}
	from := func(e *Event) source { return source{e.Interface, e.Peer, e.Kind} }
	count, most := map[source]int{}, source{}
	for i := range j.events {
		s := from(&j.events[i])
		if count[s]++; count[s] > count[most] {
			most = s
		}
	}
	drop := max(1, count[most]/shortened)
	j.events = slices.DeleteFunc(j.events, func(e Event) bool {
		if drop == 0 || from(&e) != most {
			return false
		}
		drop--
		return true
	})
}

// shortened is which part of events goes at a time.
const shortened = 10

// after returns the events after one of that number.
func (j *journal) after(number uint64) Log {
	j.mu.Lock()
	defer j.mu.Unlock()
	at, _ := slices.BinarySearchFunc(j.events, number+1, func(e Event, n uint64) int { return int(int64(e.Number) - int64(n)) })
	return Log{Began: j.began, Events: append([]Event{}, j.events[at:]...)}
}

// may reports whether what somebody without a key does is noted: once a second, whatever he does.
func (j *journal) may(now time.Time) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if now.Sub(j.odd) < time.Second {
		return false
	}
	j.odd = now
	return true
}

// note notes what has happened to the tunnel.
func (t *running) note(kind Kind, peer, format string, args ...any) {
	t.keeper.journal.note(Event{Time: time.Now(), Interface: t.of.Name, Peer: peer, Kind: kind, Text: fmt.Sprintf(format, args...)})
}

// heard notes what an engine in user space says. It begins with the short name of a peer, or is about somebody unknown.
func (k *keeper) heard(of string, peers *[]resolve.Peer, text string, bad bool) {
	e := Event{Time: time.Now(), Interface: of, Kind: OfHandshake, Text: text}
	if bad {
		e.Kind = OfError
	}
	name, rest, ok := strings.Cut(text, " - ")
	if ok && strings.HasPrefix(name, "peer(") {
		e.Text, e.Peer = rest, name
		for _, p := range *peers {
			if shortName(p.Key) == name {
				e.Peer = p.Name
			}
		}
	} else if !bad && !k.journal.may(e.Time) {
		return
	}
	if bad || telling(e.Text) {
		k.journal.note(e)
	}
}

// shortName is what the engine calls a peer.
func shortName(key string) string {
	const first, second, last = 4, 39, 43
	if len(key) < last {
		return ""
	}
	return "peer(" + key[:first] + "…" + key[second:last] + ")"
}

// telling reports whether one of the engine's remarks says what is not seen otherwise.
func telling(text string) bool {
	return slices.ContainsFunc([]string{
		"Handshake did not complete", "Retrying handshake", "Removing all keys", "ConsumeMessageInitiation: ", "Received invalid ", "wide: ",
	}, func(begin string) bool { return strings.HasPrefix(text, begin) })
}

// noteChange notes in what a configuration that the engine has taken differs from the one before.
func (t *running) noteChange(from, to *tunnel.Config) {
	names := map[key.Public]string{}
	for i := range t.of.Peers {
		if k, err := key.ParsePublic(t.of.Peers[i].Key); err == nil {
			names[k] = t.of.Peers[i].Name
		}
	}
	if from == nil {
		t.note(OfKeys, "", "public key %s, port %d, %d peers", to.Private.Public(), to.Port, len(to.Peers))
		return
	}
	if from.Private != to.Private {
		t.note(OfKeys, "", "another private key: the public key is %s", to.Private.Public())
	}
	if from.Port != to.Port {
		t.note(OfTunnel, "", "port %d instead of %d", to.Port, from.Port)
	}
	find := func(c *tunnel.Config, k key.Public) *tunnel.Peer {
		at := slices.IndexFunc(c.Peers, func(p tunnel.Peer) bool { return p.Key == k })
		if at < 0 {
			return nil
		}
		return &c.Peers[at]
	}
	for i := range to.Peers {
		p := &to.Peers[i]
		was := find(from, p.Key)
		switch {
		case was == nil:
			t.note(OfKeys, names[p.Key], "a new peer, with the public key %s", p.Key)
			continue
		case was.Preshared != p.Preshared:
			t.note(OfKeys, names[p.Key], "another preshared key")
		}
		if !slices.Equal(was.Allowed, p.Allowed) {
			t.note(OfKeys, names[p.Key], "other allowed networks: %v", p.Allowed)
		}
	}
	for i := range from.Peers {
		if k := from.Peers[i].Key; find(to, k) == nil {
			t.note(OfKeys, "", "the peer with the public key %s is gone", k)
		}
	}
}

// noteState notes in what the state of a peer differs from the one that was noted last.
func (t *running) noteState(peer string, k key.Public, now time.Time) {
	if t.noted == nil {
		t.noted = map[key.Public]tunnel.State{}
	}
	was, is := t.noted[k], t.states[k]
	if is.Endpoint != was.Endpoint && is.Endpoint.IsValid() {
		if was.Endpoint.IsValid() {
			t.note(OfEndpoint, peer, "at %s instead of %s", is.Endpoint, was.Endpoint)
		} else {
			t.note(OfEndpoint, peer, "at %s", is.Endpoint)
		}
	}
	switch session, before := sessionOf(is.Handshake, now), sessionOf(was.Handshake, t.notedAt); {
	case is.Handshake.IsZero():
	case !is.Handshake.Equal(was.Handshake) && session == Current && (before != Current || t.links[k] == nil): // probes of ways are handshakes
		t.note(OfHandshake, peer, "a handshake with %s at %s: there is a session", is.Endpoint, is.Handshake.Format(time.TimeOnly))
	case session == OldSession && before == Current:
		t.note(OfHandshake, peer, "no handshake for %s: the session has expired", rejectAfter)
	}
	if r := is.Refused; r != nil && (was.Refused == nil || *was.Refused != *r) {
		t.note(OfError, peer, "a packet from %s is dropped: that is in none of its allowed networks", r.Source)
	}
	if b := is.Behind; b != nil && (was.Behind == nil || *was.Behind != *b) {
		t.note(OfError, peer, "a handshake of the peer is refused: its clock has gone back since the last one, or somebody sends its messages again")
	}
	t.noted[k] = is
}
