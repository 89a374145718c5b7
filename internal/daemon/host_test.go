package daemon

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"weir/internal/api"
	"weir/internal/names"
	"weir/pf/resolve"
)

// anybody is a DNS in which every name is a host.
type anybody struct{ asked []string }

func (a *anybody) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	a.asked = append(a.asked, host)
	return []netip.Addr{netip.MustParseAddr("203.0.113.66")}, nil
}

func machineWith(interfaces ...string) *machine {
	m := &machine{host: &resolve.Host{}}
	for _, name := range interfaces {
		m.host.Interfaces = append(m.host.Interfaces, resolve.HostInterface{
			Name: name, Addresses: []netip.Prefix{netip.MustParsePrefix("192.0.2.1/24")},
		})
	}
	return m
}

// textsOf are the rules of a source on a machine.
func textsOf(s *Source, m *machine) ([]string, error) {
	rules, err := s.compile(m)
	if err != nil {
		return nil, err
	}
	var texts []string
	for _, r := range rules.texts {
		texts = append(texts, r.Text)
	}
	return texts, nil
}

// A name that was an interface's at the load does not become a host's when the
// interface goes; hosts that were looked up stay where they were.
func TestLoadedRulesAskNobody(t *testing.T) {
	dns := &anybody{}
	s := Source{Name: "a.conf", Text: "pass from dmz0 to db.example.invalid\n", hosts: names.Asking(dns)}
	with, without := machineWith("dmz0"), machineWith()
	s.lookUp(t.Context(), with)
	rules, err := textsOf(&s, with)
	if want := "pass inet from 192.0.2.1 to 203.0.113.66 flags S/SA"; err != nil || !slices.Equal(rules, []string{want}) {
		t.Fatalf("%q, %v; want %s", rules, err, want)
	}
	for _, s := range []*Source{&s, restored(&api.Source{Name: s.Name, Text: s.Text, Hosts: s.hosts.Known()})} {
		if rules, err := textsOf(s, without); err == nil || !strings.Contains(err.Error(), "dmz0") {
			t.Errorf("without dmz0: %q, %v", rules, err)
		}
		s.lookUp(t.Context(), with)
		if rules, err := textsOf(s, with); err != nil || len(rules) != 1 {
			t.Errorf("with dmz0 again: %q, %v", rules, err)
		}
	}
	if !slices.Equal(dns.asked, []string{"db.example.invalid"}) {
		t.Errorf("asked for %q", dns.asked)
	}
}

// Rules that were written down ask nobody, whoever loads them.
func TestRestoredAsksNobody(t *testing.T) {
	s := restored(&api.Source{Name: "a.conf", Text: "pass from localhost\n"})
	s.lookUp(t.Context(), machineWith())
	if rules, err := textsOf(s, machineWith()); err == nil || !strings.Contains(err.Error(), "has not been looked up") {
		t.Errorf("%q, %v", rules, err)
	}
}
