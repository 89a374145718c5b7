package mapping

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func newTable() *Table {
	return &Table{Limits: Limits{All: 10, Host: 4}, Allowed: DefaultPermissions().Allow, Own: func(p Protocol, port uint16) bool { return p == TCP && port == 7000 }}
}

func at(text string) netip.AddrPort { return netip.MustParseAddrPort(text) }

func add(t *testing.T, table *Table, r *Request, want uint16, fails error) Mapping {
	t.Helper()
	m, err := table.Add(r)
	if !errors.Is(err, fails) || err == nil && m.External != want {
		t.Fatalf("%+v: port %d, %v; want %d, %v", r, m.External, err, want, fails)
	}
	return m
}

func TestAdd(t *testing.T) {
	table := newTable()
	a, b := at("192.168.1.10:8080"), at("192.168.1.11:8080")
	add(t, table, &Request{By: PCP, Protocol: TCP, Internal: a, External: 9000, Lease: Lease{Ends: 100}}, 9000, nil)
	add(t, table, &Request{By: PCP, Protocol: TCP, Internal: a, External: 9001, Lease: Lease{Ends: 200}}, 9000, nil)                   // a renewal keeps its port
	add(t, table, &Request{By: PCP, Protocol: TCP, Internal: a, External: 9001, Exactly: true}, 0, ErrTaken)                           // unless that will not do
	add(t, table, &Request{By: PCP, Protocol: TCP, Internal: a, External: 9000, Lease: Lease{Nonce: [12]byte{1}}}, 0, ErrOthers)       // another client
	add(t, table, &Request{By: PCP, Protocol: TCP, Internal: b, External: 9000, Lease: Lease{Ends: 100}}, 8080, nil)                   // taken: its own port
	add(t, table, &Request{By: PCP, Protocol: UDP, Internal: b, External: 9000, Lease: Lease{Ends: 100}}, 8080, nil)                   // the other protocol's port is another host's
	add(t, table, &Request{By: PCP, Protocol: UDP, Internal: a, External: 9000, Lease: Lease{Ends: 100}}, 9000, nil)                   // its own
	add(t, table, &Request{By: UPnP, Protocol: TCP, Internal: b, External: 9000, Exactly: true}, 0, ErrTaken)                          // UPnP names the port
	add(t, table, &Request{By: UPnP, Protocol: TCP, Internal: a, External: 7000, Exactly: true}, 0, ErrTaken)                          // the box's own
	add(t, table, &Request{By: UPnP, Protocol: TCP, Internal: a, External: 443, Exactly: true}, 0, ErrNotAllowed)                      //
	add(t, table, &Request{By: UPnP, Protocol: TCP, Internal: at("192.168.1.10:22"), External: 2222, Exactly: true}, 0, ErrNotAllowed) //
	add(t, table, &Request{By: UPnP, Protocol: TCP, Internal: a, External: 9002, Exactly: true}, 9002, nil)                            // a second port for the same one
	add(t, table, &Request{By: UPnP, Protocol: TCP, Internal: a, External: 9000, Exactly: true}, 9000, nil)                            // a second lease of the first
	add(t, table, &Request{By: PCP, Protocol: UDP, Internal: at("192.168.1.10:1"), Lease: Lease{Ends: 1}}, 0, ErrNotAllowed)
	for port := uint16(1024); port < 1025; port++ {
		add(t, table, &Request{By: PCP, Protocol: UDP, Internal: netip.AddrPortFrom(a.Addr(), port), Lease: Lease{Ends: 1}}, port, nil)
	}
	add(t, table, &Request{By: PCP, Protocol: UDP, Internal: at("192.168.1.10:5000"), Lease: Lease{Ends: 1}}, 0, ErrQuota)
	if n := len(table.All()); n != 6 {
		t.Errorf("%d mappings: %v", n, table.All())
	}
}

// A mapping lives as long as one of its leases.
func TestLeases(t *testing.T) {
	table := newTable()
	a := at("192.168.1.10:8080")
	add(t, table, &Request{By: UPnP, Protocol: TCP, Internal: a, External: 9000, Exactly: true, Lease: Lease{Ends: 50}}, 9000, nil)
	add(t, table, &Request{By: PCP, Protocol: TCP, Internal: a, Lease: Lease{Ends: 100}}, 9000, nil)
	if next := table.NextEnd(); next != 50 {
		t.Errorf("the next lease ends at %d", next)
	}
	if gone := table.Expire(50); gone != nil || len(table.All()) != 1 {
		t.Errorf("gone with one lease: %v", gone)
	}
	had := table.Release(UPnP, func(*Mapping) bool { return true })
	if had != nil {
		t.Errorf("an expired lease was released: %v", had)
	}
	before := table.Clone()
	if had := table.Release(PCP, func(*Mapping) bool { return true }); len(had) != 1 || len(table.All()) != 0 || table.NextEnd() != 0 {
		t.Errorf("released %v, left %v", had, table.All())
	}
	if len(before.All()) != 1 || len(before.Expire(100)) != 1 {
		t.Error("a copy changes with the original")
	}
}

func TestRules(t *testing.T) {
	table := newTable()
	i := &Interfaces{WAN: "wan0", LAN: []string{"lan0"}}
	if rules := table.Rules(i); rules != "" {
		t.Errorf("an empty table has the rules\n%s", rules)
	}
	add(t, table, &Request{By: UPnP, Protocol: TCP, Internal: at("192.168.1.10:8080"), External: 9000, Exactly: true, Lease: Lease{Description: "x\npass quick"}}, 9000, nil)
	add(t, table, &Request{By: PCP, Protocol: UDP, Internal: at("[fd00:1::10]:5000"), Filters: []Filter{{From: netip.MustParsePrefix("2001:db8::/32"), Port: 53}}}, 5000, nil)
	const want = `pass in quick on wan0 inet proto tcp from any to (wan0:0) port 9000 tag portmap rdr-to 192.168.1.10 port 8080
match out on wan0 inet proto tcp from 192.168.1.10 port 8080 nat-to (wan0:0) port 9000
pass in quick on wan0 inet6 proto udp from 2001:db8::/32 port 53 to fd00:1::10 port 5000 tag portmap
pass out quick proto { tcp, udp } tagged portmap
`
	if got := table.Rules(i); got != want {
		t.Errorf("rules:\n%s", cmp.Diff(want, got))
	}
	i.Hairpin = true
	if got := table.Rules(i); !strings.Contains(got, "pass in quick on lan0 inet proto tcp from any to (wan0:0) port 9000 tag portmap-hairpin rdr-to 192.168.1.10 port 8080\n") ||
		!strings.Contains(got, "pass out quick on lan0 inet proto { tcp, udp } tagged portmap-hairpin nat-to (lan0:0)\n") {
		t.Errorf("with hairpin:\n%s", got)
	}
}

func TestRestore(t *testing.T) {
	good := Mapping{Protocol: TCP, External: 9000, Internal: at("192.168.1.10:8080"), Leases: [makers]*Lease{{Ends: 9}}}
	bad := []Mapping{good, good, good, good, good}
	bad[0].Protocol = 47
	bad[1].External = 0
	bad[2].Internal = at("[::ffff:192.168.1.10]:80")
	bad[3].Internal = at("192.168.1.10:80")
	bad[4].Internal = at("[fe80::1]:9000")
	table := newTable()
	if left := table.Restore(append(bad, good)); len(left) != len(bad) || len(table.All()) != 1 {
		t.Errorf("restored %v, left out %v", table.All(), left)
	}
}

func TestParsePermission(t *testing.T) {
	for line, want := range map[string]bool{
		"allow 1024-65535 192.168.0.0/24 1024-65535": true,
		"deny 0-65535 0.0.0.0/0 0-65535":             true,
		"allow 80 192.168.1.5 8080":                  true,
		"allow 80 fd00::5 80":                        true,
		"allow 80-79 192.168.1.5 8080":               false,
		"allow 65536 192.168.1.5 8080":               false,
		"allow -1 192.168.1.5 8080":                  false,
		"allow 80 192.168.1.5/24 8080":               false,
		"allow 80 host 8080":                         false,
		"permit 80 192.168.1.5 8080":                 false,
		"allow 80 192.168.1.5":                       false,
		"allow 80 ::ffff:192.168.1.5 8080":           false,
		"allow 80 fe80::1%eth0 8080":                 false,
		"":                                           false,
	} {
		if _, err := ParsePermission(line); (err == nil) != want {
			t.Errorf("%q: %v", line, err)
		}
	}
}

// The first line that matches decides; what none matches is denied.
func TestPermissions(t *testing.T) {
	var p Permissions
	for _, line := range []string{"deny 3389 192.168.1.0/24 0-65535", "allow 80 192.168.1.5 8080", "allow 1024-65535 10.0.0.0/8 1024-65535", "allow 3389 0.0.0.0/0 3389"} {
		one, err := ParsePermission(line)
		if err != nil {
			t.Fatal(err)
		}
		p = append(p, one)
	}
	for _, test := range []struct {
		port uint16
		to   string
		want bool
	}{{3389, "192.168.1.5:3389", false}, {3389, "192.168.2.5:3389", true}, {80, "192.168.1.5:8080", true}, {80, "192.168.1.6:8080", false}, {1024, "10.1.1.1:1024", true}, {1023, "10.1.1.1:1024", false}, {5000, "[fd00::1]:5000", false}} {
		if got := p.Allow(test.port, at(test.to)); got != test.want {
			t.Errorf("port %d to %s: %v", test.port, test.to, got)
		}
	}
	if !p.Name(netip.MustParseAddr("10.1.1.1")) || p.Name(netip.MustParseAddr("172.16.0.1")) {
		t.Error("a network that is named is served, and no other")
	}
}

// Whatever is asked in whatever order: no two mappings share a port, limits hold, and no
// lease is left without a mapping or the other way round.
func TestTableHolds(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		table := newTable()
		now := int64(0)
		hosts := []string{"192.168.1.10", "192.168.1.11", "fd00:1::10"}
		for range rapid.IntRange(1, 60).Draw(r, "steps") {
			now++
			by := Maker(rapid.IntRange(0, 1).Draw(r, "by"))
			host := netip.MustParseAddr(rapid.SampledFrom(hosts).Draw(r, "host"))
			internal := netip.AddrPortFrom(host, uint16(rapid.IntRange(1022, 1027).Draw(r, "internal")))
			switch rapid.IntRange(0, 5).Draw(r, "what") {
			case 0:
				table.Release(by, func(m *Mapping) bool { return m.Internal == internal })
			case 1:
				table.Expire(now)
			default:
				_, _ = table.Add(&Request{
					By: by, Protocol: rapid.SampledFrom([]Protocol{TCP, UDP}).Draw(r, "protocol"), Internal: internal,
					External: uint16(rapid.SampledFrom([]int{0, 1022, 1024, 1025, 1026, 7000}).Draw(r, "external")),
					Exactly:  rapid.Bool().Draw(r, "exactly"), Lease: Lease{Ends: now + int64(rapid.IntRange(1, 20).Draw(r, "time"))},
				})
			}
			check(r, table)
		}
	})
}

func check(r *rapid.T, table *Table) {
	ports, hosts, owners := map[key]bool{}, map[netip.Addr]int{}, map[uint16]netip.Addr{}
	for _, m := range table.All() {
		if ports[m.key()] || !m.valid() || !table.Allowed(m.External, m.Internal) || m.Leases == [makers]*Lease{} || m.Protocol == TCP && m.Internal.Addr().Is4() && m.External == 7000 {
			r.Fatalf("%+v", m)
		}
		ports[m.key()] = true
		hosts[m.Internal.Addr()]++
		if m.Internal.Addr().Is4() {
			if owner, ok := owners[m.External]; ok && owner != m.Internal.Addr() {
				r.Fatalf("port %d is of two hosts", m.External)
			}
			owners[m.External] = m.Internal.Addr()
		}
	}
	for host, n := range hosts {
		if n > table.Host {
			r.Fatalf("%s has %d mappings", host, n)
		}
	}
	if len(ports) > table.Limits.All {
		r.Fatalf("%d mappings", len(ports))
	}
}
