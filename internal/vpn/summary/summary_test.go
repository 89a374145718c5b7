package summary

import (
	"bytes"
	"encoding/base64"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"weir/internal/vpn/key"
	"weir/pf/resolve"
)

func prefixes(texts ...string) (all []netip.Prefix) {
	for _, t := range texts {
		all = append(all, netip.MustParsePrefix(t))
	}
	return all
}

// both returns the ends of a tunnel that fit together.
func both() (a, b *End) {
	psk := key.NewPreshared()
	a = &End{Private: key.NewPrivate(), Preshared: psk, Tunnel: &resolve.WireGuard{Name: "wg0", Port: 51820, Addresses: prefixes("10.9.0.1/30", "fd09::1/64")}}
	b = &End{Private: key.NewPrivate(), Preshared: psk, Tunnel: &resolve.WireGuard{Name: "wg1", Port: 51821, Addresses: prefixes("10.9.0.2/30")}}
	a.Peer = &resolve.Peer{Name: "b", Key: b.Private.Public().String(), Endpoint: "b.example.net", Port: 51821, Allowed: prefixes("10.9.0.2/32", "10.2.0.0/16")}
	b.Peer = &resolve.Peer{Name: "a", Key: a.Private.Public().String(), Allowed: prefixes("10.9.0.1/32", "fd09::1/128", "10.1.0.0/16")}
	return a, b
}

var now = time.Unix(1000000, 0)

// from returns what an end writes, as the other reads it.
func from(t *testing.T, e *End) *Signed {
	t.Helper()
	text, err := e.Write(now)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []key.Secret{e.Private, e.Preshared} {
		raw := secret.Reveal()
		for _, form := range []string{string(raw[:]), base64.StdEncoding.EncodeToString(raw[:]), key.Public(raw).Hex()} {
			if !secret.IsZero() && bytes.Contains(text, []byte(form)) {
				t.Fatal("there is a secret in the summary")
			}
		}
	}
	s, err := Read(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// What fits is said to fit, and each mismatch is named.
func TestCompare(t *testing.T) {
	a, b := both()
	for _, pair := range [][2]*End{{a, b}, {b, a}} {
		all := pair[0].Compare(from(t, pair[1]), now.Add(time.Minute))
		if len(all) != 6 || !strings.Contains(all[0].Answer, "1m0s ago") {
			t.Errorf("%+v", all)
		}
		for _, f := range all {
			if !f.OK {
				t.Errorf("nothing is wrong, and it says %+v", f)
			}
		}
	}
	for _, c := range []struct {
		spoil            func(a, b *End)
		question, answer string
	}{
		{func(_, b *End) { b.Private = key.NewPrivate() }, "keys", "and the rules have"},
		{func(a, _ *End) { a.Private = key.NewPrivate() }, "keys", "for this one, and that is"},
		{func(a, b *End) { *b = *a }, "keys", "that of this end"},
		{func(a, _ *End) { a.Preshared = key.Secret{} }, "preshared key", "this end has none"},
		{func(_, b *End) { b.Preshared = key.Secret{} }, "preshared key", "the other end has none"},
		{func(_, b *End) { b.Preshared = key.NewPreshared() }, "preshared key", "they differ"},
		{func(_, b *End) { b.Peer.Allowed = prefixes("10.9.0.1/32", "10.1.0.0/16") }, "networks", "the other end does not allow this end's address fd09::1"},
		{func(a, _ *End) { a.Peer.Allowed = prefixes("10.2.0.0/16") }, "networks", "this end does not allow the other end's address 10.9.0.2"},
		{func(a, _ *End) { a.Peer.Allowed = prefixes("10.9.0.2/32", "10.1.0.0/16") }, "networks", "both ends say that 10.1.0.0/16"},
		{func(a, _ *End) { a.Peer.Wide = 4 }, "wide", "this end has the link be wide, and the other end does not"},
		{func(_, b *End) { b.Peer.Wide = 4 }, "wide", "the other end has the link be wide, and this end does not"},
		{func(_, b *End) { b.Tunnel.Port = 7 }, "ports", "this end sends to port 51821 of b.example.net, and the other end listens on port 7"},
		{func(_, b *End) { b.Peer.Endpoint, b.Peer.Port = "192.0.2.1", 9 }, "ports", "the other end sends to port 9 of 192.0.2.1, and this end listens on port 51820"},
		{func(a, b *End) {
			a.Tunnel.MTU, a.Tunnel.MTUFixed, b.Tunnel.MTU, b.Tunnel.MTUFixed = 1420, true, 1400, true
		}, "MTU", "here 1420, there 1400"},
		{func(a, _ *End) { a.Peer.Endpoint = "" }, "endpoints", "nobody can begin"},
	} {
		a, b := both()
		c.spoil(a, b)
		found := false
		for _, f := range a.Compare(from(t, b), now) {
			found = found || !f.OK && f.Question == c.question && strings.Contains(f.Answer, c.answer)
		}
		if !found {
			t.Errorf("no answer to %s has %q: %+v", c.question, c.answer, a.Compare(from(t, b), now))
		}
	}
}

// A summary that was changed is not taken, nor one that a third party has signed in the name of another, nor one that
// comes back.
func TestSignature(t *testing.T) {
	a, b := both()
	text, err := b.Write(now)
	if err != nil {
		t.Fatal(err)
	}
	taken := func(text []byte) bool {
		s, err := Read(text)
		return err == nil && a.Compare(s, now)[0].OK
	}
	if !taken(text) {
		t.Fatal("a good summary is not taken")
	}
	if indented := bytes.ReplaceAll(text, []byte("\n"), []byte("\n\t ")); !taken(indented) {
		t.Error("white space spoils the signature")
	}
	for i := range text {
		if changed := bytes.Clone(text); true {
			// The third bit: the last character of a base64 text has two that count for nothing.
			if changed[i] ^= 4; taken(changed) && !bytes.Equal(bytes.TrimSpace(changed), bytes.TrimSpace(text)) && strings.TrimSpace(string(text[i])) != "" {
				t.Errorf("byte %d (%q) is changed, and the summary is taken", i, text[i])
			}
		}
	}
	third := *b // it has the configuration of b, and no key of it
	third.Private = key.NewPrivate()
	forged, err := third.Write(now)
	if err != nil {
		t.Fatal(err)
	}
	forged = bytes.ReplaceAll(forged, []byte(third.Private.Public().String()), []byte(b.Private.Public().String()))
	if taken(forged) {
		t.Error("a third party's summary is taken")
	}
	other := *a // the summary is for a, and not for whom else b is a peer of
	other.Private = key.NewPrivate()
	if s, err := Read(text); err != nil || other.Compare(s, now)[0].OK {
		t.Errorf("a summary for another end is taken: %v", err)
	}
	for _, wrong := range []string{"", "{}", "[]", `{"weir_vpn_summary":1}`, `{"weir_vpn_summary":1,"body":7}`, `{"weir_vpn_summary":1,"body":{"from":"x"}}`} {
		if _, err := Read([]byte(wrong)); !errors.Is(err, ErrNone) {
			t.Errorf("%q: %v", wrong, err)
		}
	}
	if _, err := Read([]byte(`{"weir_vpn_summary":2,"body":{}}`)); !errors.Is(err, ErrVersion) {
		t.Errorf("version 2: %v", err)
	}
}

// The key depends on both ends and on what it is for.
func TestDerive(t *testing.T) {
	a, b, c := key.NewPrivate(), key.NewPrivate(), key.NewPrivate()
	seen := map[string]bool{}
	for _, pair := range [][2]key.Secret{{a, b}, {a, c}, {b, c}} {
		for _, label := range []string{labelMAC, labelPreshared} {
			one, err := derive(pair[0], pair[1].Public(), label)
			if err != nil {
				t.Fatal(err)
			}
			two, err := derive(pair[1], pair[0].Public(), label)
			if err != nil || !bytes.Equal(one, two) {
				t.Errorf("the ends derive %x and %x, %v", one, two, err)
			}
			if seen[string(one)] {
				t.Error("two keys are the same")
			}
			seen[string(one)] = true
		}
	}
	if _, err := derive(a, key.Public{}, labelMAC); err == nil {
		t.Error("a public key that gives everybody the same secret is taken")
	}
}

func FuzzRead(f *testing.F) {
	_, b := both()
	text, err := b.Write(now)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"weir_vpn_summary":1,"body":{},"mac":""}`))
	a, _ := both()
	f.Fuzz(func(t *testing.T, text []byte) {
		if s, err := Read(text); err == nil && a.Compare(s, now)[0].OK {
			t.Error("a summary is taken that nobody has signed")
		}
	})
}
