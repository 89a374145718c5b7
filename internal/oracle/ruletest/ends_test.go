package ruletest

import (
	"encoding/json"
	"net/netip"
	"testing"

	"weir/internal/oracle/model"
)

func TestEndsHold(t *testing.T) {
	end := func(low, high uint16, prefixes ...string) *model.End {
		e := &model.End{Low: low, High: high}
		for _, p := range prefixes {
			e.Addrs = append(e.Addrs, netip.MustParsePrefix(p))
		}
		return e
	}
	for _, test := range []struct {
		expected string
		end      *model.End
		holds    bool
	}{
		{`"192.0.2.1:80"`, end(80, 80, "192.0.2.1/32"), true},
		{`"192.0.2.1:80"`, end(80, 81, "192.0.2.1/32"), false},
		{`"192.0.2.1"`, end(1, 65535, "192.0.2.1/32"), true},
		{`"192.0.2.1:80-90"`, end(80, 90, "192.0.2.1/32"), true},
		{`"192.0.2.1:81-90"`, end(80, 90, "192.0.2.1/32"), false},
		{`"192.0.2.1:80"`, end(80, 80, "192.0.2.1/32", "192.0.2.2/32"), false},
		{`["192.0.2.1:80", "192.0.2.2:80"]`, end(80, 80, "192.0.2.1/32", "192.0.2.2/32"), true},
		{`["192.0.2.1:80", "192.0.2.2:81"]`, end(80, 80, "192.0.2.1/32", "192.0.2.2/32"), false},
		{`["192.0.2.2:80", "192.0.2.0/31:80", "192.0.2.3"]`, end(80, 80, "192.0.2.0/30"), true},
		{`["192.0.2.0/31:80", "192.0.2.3"]`, end(80, 80, "192.0.2.0/30"), false},
		{`"192.0.2.0-192.0.2.3:80"`, end(80, 80, "192.0.2.0/30"), true},
		{`"0.0.0.0-255.255.255.255"`, end(80, 80, "0.0.0.0/0"), true},
		{`"[2001:db8::1]:80"`, end(80, 80, "2001:db8::1/128"), true},
		{`"2001:db8::1"`, end(80, 80, "2001:db8::1/128"), true},
		{`"2001:db8::/64"`, end(80, 80, "2001:db8::/63"), false},
		{`"::/0"`, end(80, 80, "192.0.2.1/32"), false},
		{`"0.0.0.0/0"`, end(0, 0), false},
	} {
		var e Ends
		if err := json.Unmarshal([]byte(test.expected), &e); err != nil {
			t.Fatalf("%s: %v", test.expected, err)
		}
		if e.hold(test.end) != test.holds {
			t.Errorf("%s of %v: %t, want %t", test.expected, test.end, !test.holds, test.holds)
		}
	}
}

func TestEndsRefused(t *testing.T) {
	for _, text := range []string{
		`""`, `"x"`, `"192.0.2.1:"`, `"192.0.2.1:9-8"`, `"192.0.2.2-192.0.2.1"`, `"192.0.2.1-::1"`, `"[::1]80"`,
		`"[::1"`, `"192.0.2.1:65536"`, `7`, `[7]`, `"192.0.2.0/33"`,
	} {
		var e Ends
		if err := json.Unmarshal([]byte(text), &e); err == nil {
			t.Errorf("%s is read as %v", text, e)
		}
	}
}
