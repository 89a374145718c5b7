package keeper

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/vpn/key"
	"weir/internal/vpn/tunnel"
	"weir/pf/resolve"
)

// The same event again within a minute is counted. Memory is bounded, and the last events are there.
func TestJournal(t *testing.T) {
	j := &journal{}
	now := time.Unix(1000, 0)
	for i := range 10 {
		j.note(Event{Time: now.Add(time.Duration(i) * 20 * time.Second), Interface: "wg0", Text: "again"})
		j.note(Event{Time: now.Add(time.Duration(i) * 20 * time.Second), Interface: "wg1", Text: "again"})
	}
	if all := j.after(0).Events; len(all) != 2 || all[0].Times != 10 || !all[0].Last.Equal(now.Add(180*time.Second)) {
		t.Errorf("%+v", all)
	}
	j.note(Event{Time: now.Add(time.Hour), Interface: "wg0", Text: "again"})
	if all := j.after(2).Events; len(all) != 1 || all[0].Number != 3 || all[0].Times != 1 {
		t.Errorf("an hour later: %+v", all)
	}
	for i := range 3 * mostEvents {
		j.note(Event{Time: now, Text: fmt.Sprint(i)})
	}
	all := slices.DeleteFunc(j.after(0).Events, func(e Event) bool { return e.Interface != "" }) // others stay
	if len(all) > mostEvents || len(all) < mostEvents*8/10 || all[len(all)-1].Text != fmt.Sprint(3*mostEvents-1) {
		t.Errorf("%d events, the last %+v", len(all), all[len(all)-1])
	}
	for i := range all {
		if all[i].Number != all[0].Number+uint64(i) {
			t.Fatalf("event %d has the number %d", i, all[i].Number)
		}
	}
	last := all[len(all)-1].Number
	if rest := j.after(last - 3).Events; len(rest) != 3 || rest[0].Number != last-2 || len(j.after(last).Events) != 0 || len(j.after(last+7).Events) != 0 {
		t.Errorf("after %d: %+v", last-3, rest)
	}
}

// Whoever does the same all the time, with a key or without, pushes out his own events, and none of others.
func TestJournalIsShared(t *testing.T) {
	j := &journal{}
	now := time.Unix(1000, 0)
	j.note(Event{Time: now, Interface: "wg0", Kind: OfTunnel, Text: "the engine begins"})
	for i := range 50 {
		j.note(Event{Time: now, Interface: "wg0", Peer: "quiet", Kind: OfEndpoint, Text: fmt.Sprintf("at 192.0.2.1:%d", i)})
	}
	for i := range 3 * mostEvents {
		j.note(Event{Time: now, Interface: "wg0", Peer: "loud", Kind: OfEndpoint, Text: fmt.Sprintf("at 192.0.2.2:%d", i)})
		j.note(Event{Time: now, Interface: "wg0", Kind: OfHandshake, Text: fmt.Sprintf("Received invalid initiation message from 192.0.2.3:%d", i)})
	}
	count := map[string]int{}
	all := j.after(0).Events
	for i := range all {
		count[all[i].Peer+" "+string(all[i].Kind)]++
		if i > 0 && all[i].Number <= all[i-1].Number {
			t.Fatalf("event %d after %d", all[i].Number, all[i-1].Number)
		}
	}
	if len(all) > mostEvents || count[" tunnel"] != 1 || count["quiet endpoint"] != 50 || count["loud endpoint"] < mostEvents/3 || count[" handshake"] < mostEvents/3 {
		t.Errorf("%d events: %v", len(all), count)
	}
}

// What an engine says is told of the peer that it is about. Those without a key fill no log.
func TestHeard(t *testing.T) {
	k := &keeper{}
	public := key.NewPrivate().Public().String()
	peers := &[]resolve.Peer{{Name: "far", Key: public}}
	short := "peer(" + public[:4] + "…" + public[39:43] + ")"
	k.heard("wg0", peers, short+" - Handshake did not complete after 5 seconds, retrying (try 2)", false)
	k.heard("wg0", peers, short+" - Sending handshake initiation", false)
	k.heard("wg0", peers, short+" - Failed to send data packets: no route to host", true)
	for i := range 1000 {
		k.heard("wg0", peers, fmt.Sprintf("Received invalid initiation message from 192.0.2.1:%d", i), false)
	}
	all := k.journal.after(0).Events
	if len(all) < 3 || len(all) > 5 {
		t.Fatalf("%+v", all)
	}
	for i, want := range []Event{{Peer: "far", Kind: OfHandshake, Text: "Handshake did not complete"}, {Peer: "far", Kind: OfError, Text: "Failed to send"}, {Kind: OfHandshake, Text: "Received invalid"}} {
		if is := all[i]; is.Peer != want.Peer || is.Kind != want.Kind || !strings.HasPrefix(is.Text, want.Text) || is.Interface != "wg0" {
			t.Errorf("event %d is %+v", i, is)
		}
	}
}

// What has changed is noted, and nothing else; no secret.
func TestNoted(t *testing.T) {
	a, b := key.NewPrivate(), key.NewPrivate()
	public, other := key.NewPrivate().Public(), key.NewPrivate().Public()
	k := &keeper{}
	r := &running{keeper: k, of: resolve.WireGuard{Name: "wg0", Peers: []resolve.Peer{{Name: "far", Key: public.String()}}}}
	psk := key.NewPreshared()
	from := &tunnel.Config{Private: a, Port: 1, Peers: []tunnel.Peer{{Key: public}}}
	r.noteChange(nil, from)
	r.noteChange(from, from)
	r.noteChange(from, &tunnel.Config{Private: b, Port: 2, Peers: []tunnel.Peer{{Key: public, Preshared: psk}, {Key: other}}})
	r.noteChange(from, &tunnel.Config{Private: a, Port: 1})
	now := time.Unix(100000, 0)
	r.states = map[key.Public]tunnel.State{public: {Handshake: now}}
	r.noteState("far", public, now)
	r.notedAt = now
	r.noteState("far", public, now.Add(time.Minute))
	r.notedAt = now.Add(time.Minute)
	r.noteState("far", public, now.Add(time.Hour))
	r.states[public] = tunnel.State{Handshake: now, Behind: &tunnel.Behind{Messages: 1, Time: now.Add(time.Hour)}}
	r.noteState("far", public, now.Add(time.Hour))
	r.noteState("far", public, now.Add(time.Hour))
	var said []string
	for _, e := range k.journal.after(0).Events {
		said = append(said, strings.TrimSpace(e.Peer+" "+e.Text))
	}
	text := strings.Join(said, "\n")
	for _, want := range []string{
		"public key " + a.Public().String() + ", port 1, 1 peers", "another private key: the public key is " + b.Public().String(), "port 2 instead of 1",
		"far another preshared key", "a new peer, with the public key " + other.String(), "the peer with the public key " + public.String() + " is gone",
		"far a handshake with", "far no handshake for 3m0s: the session has expired", "far a handshake of the peer is refused: its clock has gone back",
	} {
		if strings.Count(text, want) != 1 {
			t.Errorf("%q is not there once", want)
		}
	}
	if len(said) != 9 {
		t.Errorf("%d events:\n%s", len(said), text)
	}
}
