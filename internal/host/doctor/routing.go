package doctor

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// routes reports whether an interface forwards packets of a family, "ipv4" or "ipv6".
// known is false if no sysctl says so.
func (v *view) routes(family string) (on, known bool) {
	for name, value := range v.Sysctls {
		device, isConf := strings.CutPrefix(name, "net."+family+".conf.")
		device, isSwitch := strings.CutSuffix(device, ".forwarding")
		if name != "net."+family+".ip_forward" && (!isConf || !isSwitch || device == "lo" || device == "default") {
			continue
		}
		known = true
		on = on || strings.TrimSpace(value) == "1"
	}
	return on, known
}

// forwardingOff checks each family by itself. weir's programs also ask the kernel for the
// route, and the kernel returns none for an interface that does not forward.
func forwardingOff(v *view) (o outcome) {
	names := v.routed()
	if len(names) < 2 {
		o.absent = "fewer than two routing interfaces are up: not a router"
		return o
	}
	for _, family := range []struct{ name, key, setting string }{
		{"IPv4", "ipv4", "net.ipv4.ip_forward"}, {"IPv6", "ipv6", "net.ipv6.conf.all.forwarding"},
	} {
		wanted := v.isWanted(family.key)
		on, known := v.routes(family.key)
		switch {
		case !known && wanted:
			o.lacks(v, "sysctls."+family.setting)
		case wanted && !on:
			f := v.notForwarded(family.name, family.setting, names)
			v.refused(&f, map[string]string{"ipv4": "Ip.", "ipv6": "Ip6."}[family.key])
			o.add(f)
		}
	}
	return o
}

func (v *view) notForwarded(family, setting string, names []string) Finding {
	f := Finding{
		Severity: Notice, core: -1,
		Says:     fmt.Sprintf("forwarding of %s is off: none of its packets pass from one interface to another", family),
		Evidence: []string{setting + " = 0, and no interface has forwarding on", "interfaces: " + strings.Join(names, ", ")},
		Remedies: []Remedy{
			{Command: "weir run", Text: "weir switches it on, behind its rules"},
			{Command: "sysctl -w " + setting + "=1", Text: "without weir, if this is a router: it forwards everything that no other filter drops"},
		},
		Expect: "the box routes " + family,
	}
	if v.Weir != nil { // weir switched forwarding on, and somebody switched it off
		f.Severity = Critical
		f.Says += ", although weir runs"
		f.Remedies = []Remedy{{Command: "sysctl -w " + setting + "=1", Text: "weir had switched it on: find what switched it off (UNDO-1 names the usual services)"}}
	}
	return f
}

// usedAsRouter is the share of received packets addressed to other hosts above which the
// box is meant to be a router.
const usedAsRouter = 0.05

// refused is critical if packets arrive for other hosts. While a box does not forward,
// the kernel counts them as InAddrErrors (ip_error, ip6_forward).
func (v *view) refused(f *Finding, prefix string) {
	if !v.sampled {
		return
	}
	counted := func(name string) uint64 { return Grown(v.After.SNMP[prefix+name], v.Before.SNMP[prefix+name]) }
	others, all := counted("InAddrErrors"), counted("InReceives")
	share := float64(others) / float64(max(1, all))
	if others < fewLost || share < usedAsRouter {
		return
	}
	f.Severity = Critical
	f.Says = fmt.Sprintf("%s, and %s of what it receives is for others, and dropped", f.Says, percent(min(1, share)))
	f.Evidence = append(f.Evidence, fmt.Sprintf("%sInAddrErrors: %s of %s", prefix, v.rate(others), v.rate(all)))
}

// isWanted reports whether the box should forward a family: two of its interfaces have an
// address beyond link-local. IPv4 is also wanted if no address was read, or if weir runs
// and IPv6 is not wanted.
func (v *view) isWanted(family string) bool {
	addressed, any := 0, false
	for i := range v.Interfaces {
		d := &v.Interfaces[i]
		any = any || d.Kind != "loopback" && len(d.Addresses) > 0
		if d.Up && d.Kind != "loopback" && slices.ContainsFunc(d.Addresses, func(p netip.Prefix) bool {
			return p.Addr().Is4() == (family == "ipv4") && !p.Addr().IsLinkLocalUnicast()
		}) {
			addressed++
		}
	}
	if !any {
		return family == "ipv4"
	}
	return addressed > 1 || family == "ipv4" && v.Weir != nil && !v.isWanted("ipv6")
}

// routed returns the interfaces between which a router forwards. Bridges and bonds count,
// but their ports do not. If only sysctls were read, it returns the interfaces that have
// some.
func (v *view) routed() (names []string) {
	for i := range v.Interfaces {
		switch d := &v.Interfaces[i]; {
		case !d.Up || d.Master != "":
		case d.Kind == "physical", d.Kind == "vlan", d.Kind == "ppp", d.Kind == "wireguard", (d.Kind == "bridge" || d.Kind == "bond") && v.hasPort(d.Name):
			names = append(names, d.Name)
		}
	}
	if v.Interfaces != nil {
		return names
	}
	for _, key := range sortedKeys(v.Sysctls) {
		name, isConf := strings.CutPrefix(key, "net.ipv4.conf.")
		name, isSwitch := strings.CutSuffix(name, ".forwarding")
		if isConf && isSwitch && name != "all" && name != "default" && name != "lo" {
			names = append(names, strings.ReplaceAll(name, "/", "."))
		}
	}
	return names
}

// hasPort reports whether a card is a port of a bridge or bond.
func (v *view) hasPort(master string) bool {
	return slices.ContainsFunc(v.nics, func(n *nic) bool { return n.Master == master })
}
