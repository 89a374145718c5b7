package inquiry

import (
	"fmt"
	"net/netip"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/lab"
	"weir/internal/testenv"
)

// The first addresses of a tunnel's own network are the router's, and the route to the others counts.
func TestThrough(t *testing.T) {
	testenv.NeedRoot(t)
	topology := lab.Topology{Hosts: []lab.Host{{Name: "a"}, {Name: "b"}}, Wires: []lab.Wire{{{Host: "a", Device: "wg0", MAC: "02:77:65:00:00:01"}, {Host: "b", Device: "eth0", MAC: "02:77:65:00:00:02"}}}}
	name := fmt.Sprintf("through-%d", os.Getpid())
	l, err := lab.Up(t.Context(), lab.Options{Name: name, Topology: topology, Queues: 1})
	t.Cleanup(func() {
		if _, err := lab.Remove(name, topology); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, words := range [][]string{
		{"sysctl", "-qw", "net.ipv6.conf.all.forwarding=1"}, {"ip", "link", "set", "lo", "up"},
		{"ip", "address", "add", "fd09::1/64", "dev", "wg0", "nodad"}, {"ip", "address", "add", "10.9.0.1/24", "dev", "wg0"},
		{"ip", "route", "add", "blackhole", "10.4.0.0/16"}, {"ip", "route", "add", "10.2.0.0/16", "dev", "wg0"},
	} {
		if out, err := l.Run(t.Context(), "a", words[0], words[1:]...); err != nil {
			t.Fatalf("%v: %v %s", words, err, out)
		}
	}
	want := []Route{
		{netip.MustParsePrefix("fd09::/64"), "wg0"}, {netip.MustParsePrefix("10.9.0.0/24"), "wg0"}, {netip.MustParsePrefix("10.2.0.0/16"), "wg0"},
		{netip.MustParsePrefix("10.4.0.0/16"), ""}, {netip.MustParsePrefix("10.5.0.0/16"), ""}, {netip.MustParsePrefix("10.9.0.1/32"), "lo"},
	}
	var networks []netip.Prefix
	for _, r := range want {
		networks = append(networks, r.Network)
	}
	var got []Route
	if err := l.Do("a", func() error { got = Through(networks); return nil }); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
		t.Error(diff)
	}
}
