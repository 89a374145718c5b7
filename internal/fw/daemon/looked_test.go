package daemon

import (
	"net/netip"
	"testing"

	"weir/internal/host/hostdb"
	"weir/pf/resolve"
	"weir/pf/source"
)

// What a source was resolved to when its names were looked up is taken once, for the same machine,
// and only if nothing was asked and the source has no anchors.
func TestResolvedOnce(t *testing.T) {
	host := func(name string) *machine {
		return &machine{host: &resolve.Host{Interfaces: []resolve.HostInterface{{Name: name, Addresses: []netip.Prefix{netip.MustParsePrefix("192.0.2.1/24")}}}}}
	}
	anchors := source.Beside{Anchors: source.Anchors{{Path: "a", Text: "pass\n"}}}
	for _, test := range []struct {
		name, text    string
		before, after source.Beside
		machine       string
		want          bool
	}{
		{name: "the same machine", text: "block\n", machine: "a0", want: true},
		{name: "another machine", text: "block\n", machine: "b0"},
		{name: "a host", text: "block from www.example.org\n", machine: "a0"},
		{name: "a fault", text: "blok\n", machine: "a0"},
		{name: "anchors since", text: "anchor a\n", after: anchors, machine: "a0"},
		{name: "anchors before", text: "anchor a\n", before: anchors, machine: "a0"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := Source{Name: "test.conf", Text: test.text, Beside: test.before, hosts: hostdb.Asking(nil)}
			s.hosts.Remember(map[string][]netip.Addr{"www.example.org": {netip.MustParseAddr("192.0.2.80")}})
			s.lookUp(t.Context(), host("a0"))
			s.Beside = test.after
			other := s
			rules, _, ok := s.take(host(test.machine))
			if ok != test.want || ok && len(rules.Rules) != 1 {
				t.Errorf("taken: %t, want %t", ok, test.want)
			}
			other.Beside = source.Beside{}
			if _, _, ok := other.take(host("a0")); ok {
				t.Error("it was taken twice")
			}
		})
	}
}
