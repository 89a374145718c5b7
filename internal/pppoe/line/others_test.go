package line_test

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/pppoe/line"
)

// The next session has another address. Addresses and routes that others have added stay, in every table, and what had the address of before
// as its source has the new one. The session's address is the first one.
func TestRoutesOfOthers(t *testing.T) {
	l, ends := pair(t, 1492)
	home := ends[0]
	ip := func(words string) string {
		t.Helper()
		return run(t, l, "home", append([]string{"ip"}, strings.Fields(words)...)...)
	}
	ip("address add 203.0.113.9/32 dev ppp0")
	ip("address add 203.0.113.10/29 dev ppp0")
	ip("address add 203.0.113.11/29 dev ppp0") // goes with the one before, unless promote_secondaries says otherwise
	for _, route := range []string{
		"203.0.116.0/24 dev ppp0 src 203.0.113.10",
		"default dev ppp0 table 100",
		"203.0.113.0/24 via 198.51.100.2 dev ppp0 metric 7",
		"203.0.114.0/24 dev ppp0 src 198.51.100.1 mtu 1400",
		"default via 198.51.100.2 dev ppp0 table 1001 metric 9 onlink",
		"198.51.100.77 dev ppp0",
	} {
		ip("route add " + route)
	}
	next := line.Addresses{IPv4: netip.MustParseAddr("198.51.100.9"), PeerIPv4: netip.MustParseAddr("198.51.100.8")}
	set := func() {
		t.Helper()
		if err := l.Do("home", func() error { return setAddresses(home.Device, next) }); err != nil {
			t.Fatal(err)
		}
	}
	const want = `198.51.100.8 proto kernel scope link src 198.51.100.9
198.51.100.77 scope link
203.0.113.0/24 via 198.51.100.2 metric 7 onlink
203.0.113.8/29 proto kernel scope link src 203.0.113.10
203.0.114.0/24 scope link src 198.51.100.9 mtu 1400
203.0.116.0/24 scope link src 203.0.113.10
default table 100 scope link
default via 198.51.100.2 table 1001 metric 9 onlink
`
	routes := func() (text string) {
		for _, table := range []string{"main", "100", "1001"} {
			for line := range strings.Lines(ip("route show table " + table + " dev ppp0")) {
				line = strings.Join(strings.Fields(line), " ")
				if table != "main" {
					line = strings.Replace(line, "scope link", "table "+table+" scope link", 1)
					line = strings.Replace(line, "198.51.100.2 metric", "198.51.100.2 table "+table+" metric", 1)
				}
				text += line + "\n"
			}
		}
		return text
	}
	for _, a := range []line.Addresses{{}, next, next} { // IPv6 may come first; the last time nothing changes
		next = a
		set()
		if !a.IPv4.IsValid() {
			continue
		}
		if got := routes(); got != want {
			t.Errorf("with another address the routes are\n%s\nwant\n%s", got, want)
		}
	}
	addresses := func() (all []string) {
		for line := range strings.Lines(ip("-4 -o address show dev ppp0")) {
			all = append(all, strings.Fields(line)[3])
		}
		return all
	}
	others := []string{"203.0.113.9/32", "203.0.113.10/29", "203.0.113.11/29"}
	if got, want := addresses(), append([]string{"198.51.100.9"}, others...); !slices.Equal(got, want) {
		t.Errorf("the addresses are %v, want %v", got, want)
	}
	with := next
	for _, c := range []struct {
		a    line.Addresses
		want []string
	}{
		{line.Addresses{IPv4: netip.MustParseAddr("198.51.100.40")}, append([]string{"198.51.100.40/32"}, others...)}, // no peer
		{line.Addresses{IPv4: netip.MustParseAddr("198.51.100.41")}, append([]string{"198.51.100.41/32"}, others...)},
		{line.Addresses{}, append([]string{"198.51.100.41/32"}, others...)}, // it may come yet
		{line.Addresses{IPv4: netip.MustParseAddr("198.51.100.42"), PeerIPv4: netip.MustParseAddr("198.51.100.42")}, append([]string{"198.51.100.42/32"}, others...)},
		{line.Addresses{OnlyIPv6: true}, others},
		{with, append([]string{"198.51.100.9"}, others...)},
	} {
		next = c.a
		set()
		if got := addresses(); !slices.Equal(got, c.want) {
			t.Errorf("with %v the addresses are %v, want %v", c.a, got, c.want)
		}
	}
	lacks := func(route bool) (is bool) {
		t.Helper()
		err := l.Do("home", func() (err error) { is, err = home.Lacks(next, 0, route); return err })
		if err != nil {
			t.Fatal(err)
		}
		return is
	}
	if lacks(false) || !lacks(true) {
		t.Errorf("with its address and no default route of weir's, the device lacks something: %v and %v, want false and true", lacks(false), lacks(true))
	}
	if err := l.Do("home", func() error { return home.SetRoutes(next, 0) }); err != nil {
		t.Fatal(err)
	}
	if lacks(true) {
		t.Error("the device lacks something after all was set")
	}
	ip("-4 address flush dev ppp0")
	if !lacks(false) {
		t.Error("a device without its address lacks nothing")
	}
}

// Routes by several ways stay with the next session, also if packets have the address of before, and routes by nexthop objects. So do those
// by another interface whose packets have that address.
func TestRoutesOfOthersBySeveralWays(t *testing.T) {
	l, ends := pair(t, 1492)
	home := ends[0]
	ip := func(words string) string {
		t.Helper()
		return run(t, l, "home", append([]string{"ip"}, strings.Fields(words)...)...)
	}
	for _, words := range []string{
		"link add wan9 type veth peer name wan9-far", "link set wan9-far up", "link set wan9 up", "address add 192.0.2.1/24 dev wan9",
		"nexthop add id 11 via 198.51.100.2 dev ppp0", "nexthop add id 12 via 192.0.2.9 dev wan9", "nexthop add id 20 group 11/12",
		"route add 203.0.114.0/24 nhid 11",
		"route add 203.0.115.0/24 nhid 20 src 198.51.100.1 metric 5",
		"route add 203.0.116.0/24 nexthop via 198.51.100.2 dev ppp0 nexthop via 192.0.2.9 dev wan9",
		"route add 203.0.117.0/24 src 198.51.100.1 mtu 1400 nexthop via 198.51.100.2 dev ppp0 weight 3 nexthop via 192.0.2.9 dev wan9",
		"route add 203.0.118.0/24 table 100 nexthop via 198.51.100.2 dev ppp0 nexthop via 198.51.100.7 dev ppp0 onlink",
		"route add 203.0.119.0/24 nhid 11 src 198.51.100.1",
		"route add 203.0.120.0/24 via 192.0.2.8 dev wan9 src 198.51.100.1",
		"route add 203.0.121.0/24 via 192.0.2.8 dev wan9",
	} {
		ip(words)
	}
	const want = `192.0.2.0/24 dev wan9 proto kernel scope link src 192.0.2.1
198.51.100.8 dev ppp0 proto kernel scope link src 198.51.100.9
203.0.114.0/24 nhid 11 via 198.51.100.2 dev ppp0 onlink
203.0.115.0/24 nhid 20 src 198.51.100.9 metric 5 nexthop via 198.51.100.2 dev ppp0 weight 1 onlink nexthop via 192.0.2.9 dev wan9 weight 1
203.0.116.0/24 nexthop via 198.51.100.2 dev ppp0 weight 1 nexthop via 192.0.2.9 dev wan9 weight 1
203.0.117.0/24 src 198.51.100.9 mtu 1400 nexthop via 198.51.100.2 dev ppp0 weight 3 onlink nexthop via 192.0.2.9 dev wan9 weight 1
203.0.119.0/24 nhid 11 via 198.51.100.2 dev ppp0 src 198.51.100.9 onlink
203.0.120.0/24 via 192.0.2.8 dev wan9 src 198.51.100.9
203.0.121.0/24 via 192.0.2.8 dev wan9
203.0.118.0/24 nexthop via 198.51.100.2 dev ppp0 weight 1 onlink nexthop via 198.51.100.7 dev ppp0 weight 1 onlink
id 11 via 198.51.100.2 dev ppp0 scope link onlink
id 12 via 192.0.2.9 dev wan9 scope link
id 20 group 11/12
`
	is := func() string {
		return oneLine(ip("route") + ip("route show table 100") + ip("nexthop"))
	}
	var lost *line.Nexthops
	do := func(what func() error) {
		t.Helper()
		if err := l.Do("home", what); err != nil {
			t.Fatal(err)
		}
	}
	down := func() error {
		var err error
		lost, err = home.Nexthops(lost)
		return errors.Join(err, home.SetCarrier(false))
	}
	gone := func() { // the kernel removes them a little later
		t.Helper()
		got := ip("nexthop")
		for end := time.Now().Add(10 * time.Second); strings.Contains(got, "ppp0") && time.Now().Before(end); got = ip("nexthop") {
			time.Sleep(20 * time.Millisecond)
		}
		if strings.Contains(got, "ppp0") {
			t.Errorf("this kernel keeps nexthop objects without a carrier:\n%s", got)
		}
	}
	do(down)
	do(down) // once more, as there is none any more
	gone()
	next := line.Addresses{IPv4: netip.MustParseAddr("198.51.100.9"), PeerIPv4: netip.MustParseAddr("198.51.100.8")}
	do(func() error {
		return errors.Join(home.SetCarrier(true), lost.PutBack(home.Device), setAddresses(home.Device, next))
	})
	if got := is(); got != want {
		t.Errorf("with another address there is\n%s\nwant\n%s", got, want)
	}
	do(down)
	gone()
	ip("nexthop add id 11 via 192.0.2.7 dev wan9") // somebody wants another one
	ip("route add 203.0.114.0/24 via 192.0.2.7")
	do(func() error { return errors.Join(home.SetCarrier(true), lost.PutBack(home.Device)) })
	if got := is(); !strings.Contains(got, "203.0.114.0/24 via 192.0.2.7 dev wan9\n") || !strings.Contains(got, "id 11 via 192.0.2.7 dev wan9 ") || !strings.Contains(got, "id 20 group 12\n") {
		t.Errorf("what others have made meanwhile is\n%s", got)
	}
	if err := (*line.Nexthops)(nil).PutBack(home.Device); err != nil {
		t.Error(err)
	}
}

// oneLine joins the lines of a route, as ip prints several ways.
func oneLine(text string) (all string) {
	for line := range strings.Lines(strings.ReplaceAll(text, "\n\t", " ")) {
		all += strings.Join(strings.Fields(line), " ") + "\n"
	}
	return all
}

// setAddresses is SetAddresses, of which nothing may be lost.
func setAddresses(d line.Device, a line.Addresses) error {
	lost, err := d.SetAddresses(a)
	return errors.Join(lost, err)
}

// A label has no more room than a name. Then the addresses of earlier sessions go all the same.
func TestLongName(t *testing.T) {
	l, ends := pair(t, 1492)
	home := ends[0]
	home.Name = "ppp-of-provider"
	for _, words := range []string{"dev ppp0 down", "dev ppp0 name " + home.Name, "dev " + home.Name + " up"} {
		run(t, l, "home", append([]string{"ip", "link", "set"}, strings.Fields(words)...)...)
	}
	for _, address := range []string{"198.51.100.40", "198.51.100.41"} {
		next := line.Addresses{IPv4: netip.MustParseAddr(address)}
		if err := l.Do("home", func() error { return setAddresses(home.Device, next) }); err != nil {
			t.Fatal(err)
		}
		if got := run(t, l, "home", "ip", "-4", "-o", "address", "show", "dev", home.Name); strings.Count(got, "inet ") != 1 || !strings.Contains(got, address+"/32") {
			t.Errorf("the session has %s, the device %s", address, got)
		}
	}
}
