package ipsec

import (
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"

	"weir/pf/resolve"
)

// Lines that charon of Debian 12 writes, and what is said of them.
func TestHear(t *testing.T) {
	all := []resolve.IKEv2{{Name: "a", Peer: "192.0.2.7"}, {Name: "b"}}
	for _, c := range []struct{ name, id, line, tunnel, want string }{
		{"weir-a", "1", "received AUTHENTICATION_FAILED notify error", "a", "refuses us"},
		{"weir-a", "1", "received NO_PROPOSAL_CHOSEN notify error", "a", "none of our algorithms"},
		{"weir-a", "1", "received NO_PROPOSAL_CHOSEN notify, no CHILD_SA built", "a", "(PFS)"},
		{"weir-a", "1", "received TS_UNACCEPTABLE notify, no CHILD_SA built", "a", "for these networks"},
		{"weir-a", "1", "tried 1 shared key for 'hq' - 'branch', but MAC mismatched", "a", "another preshared key"},
		{"weir-a", "1", "no trusted ECDSA public key found for 'branch'", "a", "no certificate that we trust"},
		{"weir-a", "1", "constraint check failed: identity 'branch' required ", "a", "somebody else than dstid"},
		{"weir-a", "1", "unable to install inbound and outbound IPsec SA (SAD) in kernel", "a", "takes no keys"},
		{"weir-a", "1", "retransmit 1 of request with message ID 0", "", ""},
		{"weir-a", "1", "retransmit 2 of request with message ID 0", "a", "does not answer"},
		{"weir-a", "1", "CHILD_SA weir-a{1} established with SPIs c2_i c4_o and TS 10.1.0.0/16 === 10.2.0.0/16", "", ""},
		{"mine", "1", "received AUTHENTICATION_FAILED notify error", "", ""},
		{"(unnamed)", "9", "received packet: from 192.0.2.7[500] to 192.0.2.1[500] (240 bytes)", "", ""},
		{"(unnamed)", "9", "no matching peer config found", "a", "another identity"},
		{"(unnamed)", "8", "looking for peer configs matching 192.0.2.1[hq]...198.51.100.7[branch]", "", ""},
		{"(unnamed)", "8", "no matching peer config found", "b", "another identity"},
		{"(unnamed)", "7", "no IKE config found for 192.0.2.1...192.0.2.7, sending NO_PROPOSAL_CHOSEN", "a", "no tunnel expects"},
		{"(unnamed)", "6", "no matching peer config found", "", ""},
	} {
		x := New("", "", slog.New(slog.DiscardHandler))
		x.wanted = all
		strangers := map[string]netip.Addr{"9": netip.MustParseAddr("192.0.2.7"), "8": netip.MustParseAddr("198.51.100.7")}
		x.hear(section{{"msg", c.line}, {"ikesa-name", c.name}, {"ikesa-uniqueid", c.id}}.message(), strangers, time.Unix(1000, 0))
		if c.tunnel == "" {
			if len(x.said) != 0 {
				t.Errorf("%s: %+v", c.line, x.said)
			}
			continue
		}
		state, _ := x.State(c.tunnel)
		if !strings.Contains(state.Error, c.want) || !strings.Contains(state.Error, c.line) || state.ErrorTime.Unix() != 1000 {
			t.Errorf("%s: %+v", c.line, x.said)
		}
	}
}

// What goes wrong with the peer counts more than what does with somebody who may be the peer.
func TestRumour(t *testing.T) {
	x := New("", "", slog.New(slog.DiscardHandler))
	x.wanted = []resolve.IKEv2{{Name: "a", Peer: "branch.example.net"}}
	strangers := map[string]netip.Addr{"9": netip.MustParseAddr("198.51.100.7")}
	hear := func(name, line string, at int64) string {
		x.hear(section{{"msg", line}, {"ikesa-name", name}, {"ikesa-uniqueid", "9"}}.message(), strangers, time.Unix(at, 0))
		state, _ := x.State("a")
		return state.Error
	}
	if said := hear("", "received proposals unacceptable", 1000); !strings.HasPrefix(said, "somebody at 198.51.100.7, who may be the peer: the peer offers no algorithms") {
		t.Error(said)
	}
	if said := hear("weir-a", "received AUTHENTICATION_FAILED notify error", 1001); !strings.HasPrefix(said, "the peer refuses us") {
		t.Error(said)
	}
	if said := hear("", "received proposals unacceptable", 1200); !strings.HasPrefix(said, "the peer refuses us") {
		t.Error(said)
	}
	if said := hear("", "received proposals unacceptable", 2000); !strings.HasPrefix(said, "somebody at") {
		t.Error(said)
	}
	x.forget("weir-a")
	if state, _ := x.State("a"); state.Error != "" {
		t.Error(state.Error)
	}
}

func TestRemote(t *testing.T) {
	for line, want := range map[string]string{
		"received packet: from 2001:db8::7[4500] to 2001:db8::1[4500] (240 bytes)":     "2001:db8::7",
		"looking for peer configs matching 192.0.2.1[hq]...198.51.100.7[a...b]":        "198.51.100.7",
		"no IKE config found for 192.0.2.1...198.51.100.7, sending NO_PROPOSAL_CHOSEN": "198.51.100.7",
		"looking for a route to 192.0.2.1 ...":                                         "",
		"sending packet: from 192.0.2.1[500] to 198.51.100.7[500]":                     "",
	} {
		if a, ok := remote(line); ok != (want != "") || ok && a.String() != want {
			t.Errorf("%s: %v", line, a)
		}
	}
}
