package daemon

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/host/netif"
	"weir/pf/resolve"
)

// A group of groups contains the interfaces of its member groups, for rules and for set
// skip.
func TestGroupsOfGroups(t *testing.T) {
	m := &machine{
		host: &resolve.Host{Interfaces: []resolve.HostInterface{
			{Name: "eth0", Groups: []string{"eth"}}, {Name: "wg0", Groups: []string{"wg"}}, {Name: "wg1", Groups: []string{"wg"}},
		}},
		links: []netif.Link{{Name: "eth0", Index: 1}, {Name: "wg0", Index: 2}, {Name: "wg1", Index: 3}},
	}
	c, err := (&Source{Text: "set interface-group inside { trusted }\nset interface-group trusted { wg }\nset skip on inside\npass on inside"}).compile(m)
	if err != nil {
		t.Fatal(err)
	}
	var groups [][]string
	var skipped []bool
	for i, n := range m.snapshot(c.options.Groups).Interfaces {
		groups = append(groups, n.Groups)
		skipped = append(skipped, c.skips(&m.links[i], m.host))
	}
	if diff := cmp.Diff([][]string{{"eth", "rdomain 0"}, {"wg", "trusted", "inside", "rdomain 0"}, {"wg", "trusted", "inside", "rdomain 0"}}, groups); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]bool{false, true, true}, skipped); diff != "" {
		t.Errorf("skipped (-want +got):\n%s", diff)
	}
}
