package hostdb

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// fakeDNS knows one host, and is slow for all others.
type fakeDNS struct {
	asked []string
	slow  time.Duration
}

func (f *fakeDNS) LookupNetIP(ctx context.Context, _, host string) ([]netip.Addr, error) {
	f.asked = append(f.asked, host)
	switch host {
	case "www.example.net":
		return []netip.Addr{netip.MustParseAddr("::ffff:192.0.2.7"), netip.MustParseAddr("2001:db8::7")}, nil
	case "gone.example.net":
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	select {
	case <-ctx.Done():
		return nil, &net.DNSError{Err: "i/o timeout", Name: host, IsTimeout: true}
	case <-time.After(f.slow):
		return nil, &net.DNSError{Err: "server misbehaving", Name: host, IsTemporary: true}
	}
}

func TestLookup(t *testing.T) {
	f := &fakeDNS{}
	d := Asking(f)
	for range 2 {
		addrs, err := d.Lookup("www.example.net")
		if err != nil || len(addrs) != 2 || !addrs[0].Is4() {
			t.Errorf("%v, %v", addrs, err)
		}
	}
	if addrs, err := d.Lookup("gone.example.net"); addrs != nil || err != nil {
		t.Errorf("a host that is not there: %v, %v", addrs, err)
	}
	for _, name := range []string{"", "10.0.0.256", "2001:db8::x", "a..b", "-a.net", "a b", "a/b", strings.Repeat("a.", 200) + "net"} {
		if addrs, err := d.Lookup(name); addrs != nil || err != nil {
			t.Errorf("%q: %v, %v", name, addrs, err)
		}
	}
	if len(f.asked) != 2 {
		t.Errorf("asked for %q", f.asked)
	}
	if known := d.Known(); len(known) != 1 || len(known["www.example.net"]) != 2 {
		t.Errorf("knows %v", known)
	}
}

// TestLookupLimit finds look-ups that go on after the total limit.
func TestLookupLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeDNS{slow: Limit - time.Second}
		d := Asking(f)
		start := time.Now()
		_, first := d.Lookup("a.example.net")
		_, second := d.Lookup("b.example.net")
		_, third := d.Lookup("c.example.net")
		if first == nil || second == nil || third == nil {
			t.Errorf("found: %v, %v, %v", first, second, third)
		}
		if took := time.Since(start); took != Limit {
			t.Errorf("took %v", took)
		}
		if len(f.asked) != 2 {
			t.Errorf("asked for %q", f.asked)
		}
		d.Again()
		if _, err := d.Lookup("a.example.net"); err == nil || len(f.asked) != 3 {
			t.Errorf("not asked again: %v, %q", err, f.asked)
		}
	})
}

func TestRemember(t *testing.T) {
	f := &fakeDNS{}
	d := Asking(f)
	d.Remember(map[string][]netip.Addr{"db.example.net": {netip.MustParseAddr("192.0.2.9")}})
	d.Again()
	if addrs, err := d.Lookup("db.example.net"); err != nil || len(addrs) != 1 || len(f.asked) != 0 {
		t.Errorf("%v, %v, asked for %q", addrs, err, f.asked)
	}
	if (*DNS)(nil).Known() != nil {
		t.Error("nobody knows a host")
	}
	if err := reason(errors.New("x")); err == nil {
		t.Error("a reason is lost")
	}
}

// TestRecall finds hosts that are looked up although only remembered ones may be used.
func TestRecall(t *testing.T) {
	f := &fakeDNS{}
	d := Asking(f)
	if addrs, err := d.Recall("www.example.net"); addrs != nil || !errors.Is(err, errNotAsked) || len(f.asked) != 0 {
		t.Errorf("before it was looked up: %v, %v, asked for %q", addrs, err, f.asked)
	}
	if addrs, err := d.Recall("10.0.0.256"); addrs != nil || err != nil {
		t.Errorf("what is no host: %v, %v", addrs, err)
	}
	if _, err := d.Lookup("www.example.net"); err != nil {
		t.Fatal(err)
	}
	if addrs, err := d.Recall("www.example.net"); err != nil || len(addrs) != 2 {
		t.Errorf("after it was looked up: %v, %v", addrs, err)
	}
	if addrs, err := Asking(nil).Lookup("www.example.net"); addrs != nil || !errors.Is(err, errNotAsked) {
		t.Errorf("of nobody: %v, %v", addrs, err)
	}
}
