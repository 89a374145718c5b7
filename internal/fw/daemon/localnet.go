package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"slices"

	"weir/internal/host/netif"
	"weir/pf/resolve"
)

// routeLocalnet has the stack take what comes in by an interface for 127.0.0.0/8, and send from there. Without
// it a redirect to a program at 127.0.0.1 ends in the stack. weir's programs drop what comes from outside
// for such an address (martian-destination), so only redirects get there.
const routeLocalnet = "net/ipv4/conf/%s/route_localnet"

var loopback4 = netip.MustParsePrefix("127.0.0.0/8")

// redirectsToLoopback reports whether rules redirect to addresses of 127.0.0.0/8.
func (c *compiled) redirectsToLoopback() bool {
	redirects := func(r *resolve.Rule) bool { return r.Rdr != nil && slices.ContainsFunc(r.Rdr.Addrs, isLoopback4) }
	return slices.ContainsFunc(c.lists, redirects) || slices.ContainsFunc(c.rules, redirects)
}

func isLoopback4(a resolve.Address) bool {
	if a.Kind == resolve.InterfaceAddress {
		return a.Interface == "lo" || a.Interface == "lo0"
	}
	return a.Kind == resolve.PrefixAddress && loopback4.Overlaps(a.Prefix) && a.Prefix.Bits() >= loopback4.Bits()
}

// localnets returns the names, by index, of the interfaces that need routeLocalnet: those where weir drops what
// was not redirected. set skip lets everything pass.
func (b *box) localnets(m *machine) map[int]string {
	names := make(map[int]string)
	if !b.disabled.IsZero() || !b.rules.redirectsToLoopback() {
		return names
	}
	for _, l := range m.hooked(b.hooks) {
		if l.Kind != netif.Loopback && !b.rules.skips(&l, m.host) {
			names[l.Index] = l.Name
		}
	}
	return names
}

// localnetOn sets routeLocalnet for interfaces, and first records what it was.
func (f *Found) localnetOn(names map[int]string) error {
	for index, name := range names {
		if err := f.sysctl(routeLocalnet, index, name, "1"); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("receive for 127.0.0.0/8 on %s: %w", name, err)
		}
	}
	return nil
}

// localnetOff restores routeLocalnet, except for the interfaces of keep. names are those that exist.
func (f *Found) localnetOff(names, keep map[int]string) error {
	ends := func(s FoundSysctl) bool { return s.Format == routeLocalnet && keep[s.Index] == "" }
	for _, s := range f.Sysctls {
		if !ends(s) || names[s.Index] == "" {
			continue
		}
		if err := netif.SetSysctl(sysctlPath(s.Format, names[s.Index]), s.Value); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("restore route_localnet of %s: %w", names[s.Index], err)
		}
	}
	if !slices.ContainsFunc(f.Sysctls, ends) {
		return nil
	}
	return f.note(func(f *Found) { f.Sysctls = slices.DeleteFunc(slices.Clone(f.Sysctls), ends) })
}
