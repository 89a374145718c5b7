package resolve_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"weir/pf/printer"
	"weir/pf/resolve"
)

// named returns a machine with names of its own: ssh has another port, and pf's carp is
// another protocol.
func named() *resolve.Host {
	return &resolve.Host{
		Services: []resolve.Service{
			{Names: []string{"ssh"}, Port: 2222, Protocol: "tcp"},
			{Names: []string{"both"}, Port: 7000, Protocol: "udp"}, {Names: []string{"both"}, Port: 7001, Protocol: "tcp"},
			{Names: []string{"game", "play"}, Port: 7002, Protocol: "udp"},
		},
		Protocols: []resolve.Protocol{{Names: []string{"carp", "own"}, Number: 200}, {Names: []string{"mine"}, Number: 201}},
		Lookup: func(name string) ([]netip.Addr, error) {
			switch name {
			case "www.example.net":
				return []netip.Addr{netip.MustParseAddr("192.0.2.7")}, nil
			case "slow.example.net":
				return nil, errors.New("no answer within 5s")
			}
			return nil, nil
		},
	}
}

func TestNames(t *testing.T) {
	for _, test := range []struct{ rule, want, byName string }{
		{"pass proto tcp to port ssh", "pass proto tcp from any to any port = 2222 flags S/SA", "port = ssh"},
		{"pass proto tcp to port 22", "pass proto tcp from any to any port = 22 flags S/SA", "port = 22"},
		{"pass proto tcp to port { both, http }", "pass proto tcp from any to any port = 7001 flags S/SA", "port = both"},
		{"pass proto udp to port 514", "pass proto udp from any to any port = 514", "port = syslog"},
		{"pass proto tcp to port 514", "pass proto tcp from any to any port = 514 flags S/SA", "port = shell"},
		{"pass proto { tcp udp } to port 7002", "pass proto tcp from any to any port = 7002 flags S/SA", "port = afs3-prserver"},
		{"pass proto udp to port play", "pass proto udp from any to any port = 7002", "port = game"},
		{"pass proto udp from port 1:7 to port 53 >< 60", "pass proto udp from any port 1:7 to any port 53 >< 60", "port tcpmux:echo to any port domain >< 60"},
		{"pass proto tcp to port 520", "pass proto tcp from any to any port = 520 flags S/SA", "port = router"},
		{"pass proto carp", "pass proto carp all", ""},
		{"pass proto 112", "pass proto 112 all", ""},
		{"pass proto 201", "pass proto mine all", ""},
		{"pass from www.example.net", "pass inet from 192.0.2.7 to any flags S/SA", ""},
	} {
		rules, list := resolve.Load("in", []byte(test.rule+"\n"), named())
		if rules == nil {
			t.Fatalf("%s:\n%s", test.rule, render(t, &list))
		}
		if got, _, _ := strings.Cut(text(t, rules), "\n"); got != test.want {
			t.Errorf("%s: %s, want %s", test.rule, got, test.want)
		}
		resolve.NamePorts(rules.Source, named())
		byName := text(t, rules)
		if !strings.Contains(byName, test.byName) {
			t.Errorf("%s: by name: %s, want %s", test.rule, byName, test.byName)
		}
		again, list := resolve.Load("in", []byte(byName), named())
		if again == nil {
			t.Fatalf("%s\n%s", byName, render(t, &list))
		}
		if got, _, _ := strings.Cut(text(t, again), "\n"); got != test.want {
			t.Errorf("%s does not mean %s but %s", byName, test.want, got)
		}
	}
}

func TestLookupFails(t *testing.T) {
	_, list := resolve.Load("in", []byte("pass from slow.example.net\n"), named())
	if got := render(t, &list); !strings.Contains(got, "looking it up as a host failed: no answer within 5s") {
		t.Error(got)
	}
}

func text(t *testing.T, rules *resolve.Ruleset) string {
	t.Helper()
	var b strings.Builder
	if err := printer.Fprint(&b, rules.Source); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
