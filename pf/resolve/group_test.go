package resolve_test

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/pf/resolve"
)

// A name that ends in a digit is an interface's, unless a group of that name is listed:
// eth10 is not in a group eth1.
func TestNumberedNames(t *testing.T) {
	host := func(groups ...string) *resolve.Host {
		return &resolve.Host{Interfaces: []resolve.HostInterface{{
			Name: "eth10", Groups: groups, Addresses: []netip.Prefix{prefix("192.0.2.1/24")},
		}}}
	}
	for _, test := range []struct {
		rule        string
		groups      []string
		out, faults string
	}{
		{"block from eth", nil, "block drop inet from 192.0.2.1 to any\n", ""},
		{"block from eth1", []string{"eth1"}, "block drop inet from 192.0.2.1 to any\n", ""},
		{"block from eth1", nil, "", `in:1:12: "eth1" is not an address, and no interface or host has that name; did you mean "eth10"?
    1 | block from eth1
      |            ^^^^
`},
		{"match out nat-to eth1", nil, "", `in:1:18: "eth1" is not an address, and no interface or host has that name; did you mean "eth10"?
    1 | match out nat-to eth1
      |                  ^^^^
`},
		{"antispoof for eth1", nil, "", `in:1:15: warning: there is no interface "eth1" yet; did you mean "eth10"?
    1 | antispoof for eth1
      |               ^^^^
`},
		{"block on eth1", nil, "block drop on eth1 all\n", `in:1:10: warning: there is no interface "eth1" yet; did you mean "eth10"?
    1 | block on eth1
      |          ^^^^
`},
	} {
		out, faults, _ := check(t, test.rule, host(test.groups...))
		if diff := cmp.Diff(test.out, out); diff != "" {
			t.Errorf("%s: out (-want +got):\n%s", test.rule, diff)
		}
		if diff := cmp.Diff(test.faults, faults); diff != "" {
			t.Errorf("%s: faults (-want +got):\n%s", test.rule, diff)
		}
	}
}

// egress is a group even if it is empty. An antispoof for it makes no rules then, and a
// warning says so.
func TestEmptyGroup(t *testing.T) {
	host := &resolve.Host{Interfaces: []resolve.HostInterface{{Name: "eth0", Addresses: []netip.Prefix{prefix("192.0.2.1/24")}}}}
	for rule, want := range map[string]string{
		"antispoof for egress": `in:1:15: warning: the group "egress" is empty now, so antispoof does nothing for it; write (egress) to follow its addresses
    1 | antispoof for egress
      |               ^^^^^^
`,
		"antispoof for (egress)": "",
	} {
		out, faults, ok := check(t, rule, host)
		if diff := cmp.Diff(want, faults); diff != "" {
			t.Errorf("%s: faults (-want +got):\n%s", rule, diff)
		}
		if !ok || (out == "") != (want != "") {
			t.Errorf("%s: accepted %v, printed %q", rule, ok, out)
		}
	}
}

// Where no interface is called lo0, files from BSD mean lo by it, and lo1 is another
// interface.
func TestLoopback(t *testing.T) {
	host := func(names ...string) *resolve.Host {
		h := &resolve.Host{}
		for _, name := range names {
			h.Interfaces = append(h.Interfaces, resolve.HostInterface{Name: name, Groups: []string{"lo"}, Addresses: []netip.Prefix{prefix("127.0.0.1/8")}})
		}
		return h
	}
	const rule = "pass on lo0 from lo0:network\n"
	for _, test := range []struct {
		host    *resolve.Host
		group   bool
		warning string
	}{
		{host("lo", "lo1"), true, ""},
		{host("lo", "lo0"), false, ""},
	} {
		rules, list := resolve.Load("in", []byte("set skip on lo0\n"+rule), test.host)
		if rules == nil || len(list.Items) > 0 {
			t.Fatalf("%v", list.Items)
		}
		want := resolve.Interface{Name: "lo0", Group: test.group}
		if got := rules.Rules[0].Interface; got != want {
			t.Errorf("on lo0 is %+v, want %+v", got, want)
		}
		host := test.host.WithGroups(rules.Options.Groups)
		for _, i := range host.Members("lo0") {
			if i.Name != "lo" {
				t.Errorf("%s is in the group lo0", i.Name)
			}
		}
		if got := len(host.Members("lo0")) == 1; got != test.group {
			t.Errorf("lo is in the group lo0: %v, want %v", got, test.group)
		}
	}
}
