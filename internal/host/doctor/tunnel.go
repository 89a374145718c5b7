package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"weir/internal/units"
)

// userSpace lists the kinds of interfaces whose packets a program carries.
var userSpace = map[string]bool{"tun": true, "tap": true}

// guest reports whether a device is the host's end of a guest's card: a tap that a bridge, or
// Open vSwitch, forwards to.
func (d *Interface) guest() bool { return userSpace[d.Kind] && d.Master != "" }

// tunnelKinds names the kinds of interfaces that put packets into other packets.
var tunnelKinds = map[string]string{
	"wireguard": "WireGuard", "ipsec": "IPsec", "xfrm": "IPsec", "vti": "IPsec", "vxlan": "VXLAN", "geneve": "Geneve",
	"gre": "GRE", "gretap": "GRE", "ip6gre": "GRE", "ipip": "IPIP", "sit": "SIT", "ip6tnl": "an IPv6 tunnel",
	"tun": "a program's tunnel", "tap": "a program's tunnel",
}

// tunnelled is a tunnel with its traffic.
type tunnelled struct {
	Tunnel
	link    Link
	counted bool
	share   float64    // its share of the packets that the cards receive; 0: unknown
	work    *VPNTunnel // of a tunnel of weir vpn run with workers; nil: it is another
}

// name returns what to call the tunnel.
func (t *tunnelled) name() string {
	kind := cmp.Or(tunnelKinds[t.Kind], t.Kind)
	switch {
	case t.Interface == "":
		return kind
	case t.work != nil:
		return "weir's tunnel " + t.Interface
	case userSpace[t.Kind]:
		return "the program of " + t.Interface
	}
	return fmt.Sprintf("%s (%s)", kind, t.Interface)
}

// tunnelsInUse returns all tunnels: those read, and interfaces of such kinds.
func (v *view) tunnelsInUse() (all []*tunnelled) {
	for _, t := range v.Tunnels {
		if d := v.device(t.Interface); t.Interface == "" || d == nil || d.Up && !d.guest() {
			all = append(all, &tunnelled{Tunnel: t})
		}
	}
	for i := range v.Interfaces {
		d := &v.Interfaces[i]
		known := slices.ContainsFunc(all, func(t *tunnelled) bool { return t.Interface == d.Name })
		if tunnelKinds[d.Kind] != "" && d.Up && !known && !d.guest() {
			all = append(all, &tunnelled{Tunnel: Tunnel{Kind: d.Kind, Interface: d.Name}})
		}
	}
	for _, t := range all {
		if count := v.vpnOf(t.Interface); count != nil && len(count.Workers) > 0 {
			work := v.tunnelWork(count)
			t.work = &work
		}
		t.link, t.counted = v.link(t.Interface)
		if received := v.received(); t.counted && received > 0 {
			t.share = min(1, float64(max(t.link.RxPackets, t.link.TxPackets))/float64(received))
		}
	}
	return all
}

// A tunnel with a good part of all packets is what fills a core; a program with less may
// do so too, for each of its packets costs two system calls.
const (
	mostTunnelled = 0.4
	someTunnelled = 0.15
	// someTunnelTime is the share of a core's time above which a worker is what fills it.
	someTunnelTime = 0.3
)

func oneTunnel(v *view) (o outcome) {
	all := v.tunnelsInUse()
	if len(all) == 0 {
		o.absent = "there is no tunnel"
		return o
	}
	for _, t := range all {
		switch c := v.carrier(t); {
		case c == nil:
		case t.work != nil:
			o.add(v.weirTunnel(t, c))
		case userSpace[t.Kind]:
			o.add(v.programTunnel(t, c))
		default:
			o.add(v.kernelTunnel(t, c))
		}
	}
	return o
}

// carrier returns the core that a tunnel keeps at work, or fills, while others have room;
// nil: none.
func (v *view) carrier(t *tunnelled) *core {
	if v.meanBusy() >= exhausted || len(v.cores) < 2 {
		return nil
	}
	if t.work != nil {
		return v.busiestOf(func(c *core) bool { w := t.work.most(c.ID); return w != nil && *w.Time >= someTunnelTime })
	}
	if userSpace[t.Kind] {
		if !t.counted || t.share < someTunnelled {
			return nil
		}
		return v.busiestOf(func(c *core) bool { return !c.forwards() && c.user >= 0.3 })
	}
	if t.counted && t.share < mostTunnelled || t.Flows > len(v.cores)/2 {
		return nil
	}
	served := v.largestCores()
	if len(served) == 0 && (t.Flows == 0 || !t.counted && t.Interface != "") {
		return nil // the queues' packets are even, or not counted: nothing says that they are few flows
	}
	return v.busiestOf(func(c *core) bool {
		return (c.forwards() || c.inKernel()) && (len(served) == 0 || slices.Contains(served, c.ID) || t.Flows == 1)
	})
}

// busiestOf returns the busiest core at work that is wanted.
func (v *view) busiestOf(wanted func(*core) bool) (most *core) {
	for _, c := range v.cores {
		if c.busy >= working && wanted(c) && (most == nil || c.busy > most.busy) {
			most = c
		}
	}
	return most
}

// largestCores returns the cores that serve the queues with most of their cards' packets.
func (v *view) largestCores() (ids []int) {
	for _, n := range v.nics {
		if q := n.largest(); q != nil && q.share >= 0.5 && len(q.cores) > 0 {
			ids = append(ids, q.cores[0])
		}
	}
	return ids
}

// line describes the tunnel's traffic.
func (t *tunnelled) line(v *view) string {
	parts := []string{cmp.Or(tunnelKinds[t.Kind], t.Kind)}
	if t.work != nil {
		parts[0] = "weir's"
	}
	if t.Flows > 0 {
		parts = append(parts, plural(t.Flows, "pair")+" of far ends")
	}
	if t.counted {
		parts = append(parts, fmt.Sprintf("receives %s and sends %s packets/s", units.Short(float64(t.link.RxPackets)/v.Seconds), units.Short(float64(t.link.TxPackets)/v.Seconds)))
		if t.share > 0 {
			parts = append(parts, percent(t.share)+" of what the cards receive")
		}
		if lost := t.link.RxDropped + t.link.TxDropped; lost > 0 {
			parts = append(parts, fmt.Sprintf("drops %s", v.rate(lost)))
		}
	}
	return cmp.Or(t.Interface, "tunnel") + ": " + strings.Join(parts, ", ")
}

func (v *view) kernelTunnel(t *tunnelled, c *core) Finding {
	flow := "its outer packets are one flow"
	if t.Flows != 1 {
		flow = "its outer packets are few flows"
	}
	f := Finding{
		Severity: v.severeTime(c), Subject: cmp.Or(t.Interface, t.Kind), core: c.ID, weight: max(t.share, 0.5), bites: true,
		Says:     fmt.Sprintf("%s: %s, so that one core receives and decrypts them all; %s", c.fills(t.name(), "fills"), flow, v.room([]*core{c})),
		Evidence: []string{t.line(v), c.line()},
		Expect:   "each further tunnel can use a further core; larger packets cost less for each byte",
	}
	switch t.Kind {
	case "wireguard":
		f.Remedies = []Remedy{
			{Command: fmt.Sprintf("echo 1 > /sys/class/net/%s/threaded", t.Interface), Text: "decrypted packets then leave in a thread of their own for each peer, on another core than the one that receives (threaded NAPI)"},
			{Text: "use more tunnels between the two ends, each with a port of its own, and spread the routes over them; or weir's wide tunnel, which does this inside one"},
			{Command: "ethtool -K " + v.someCard() + " rx-udp-gro-forwarding on", Text: "merge the outer packets of a flow, so that each costs less (GRO); and use the largest MTU that the path carries"},
		}
	case "ipsec", "xfrm", "vti":
		f.Remedies = []Remedy{
			{Command: "ip -s xfrm state", Text: "see the associations and what each carries; then use more SAs with flows of their own: an SA for each core (per-CPU SAs, Linux 6.13; strongSwan's per_cpu_sas), or more tunnels with UDP encapsulation and other ports"},
			{Text: "or a cheaper cipher (AES-GCM with AES-NI), or a card that decrypts (offload)"},
		}
	default:
		f.Says = fmt.Sprintf("%s: %s to the cards, which one core takes; %s", c.fills(t.name(), "fills"), flow, v.room([]*core{c}))
		f.Remedies = []Remedy{
			{Command: "ip -s -d link show dev " + t.Interface, Text: "see its ends and its packets; one flow stays on one core: use more connections inside (VXLAN and Geneve then use other ports outside), a larger MTU, or GRO"},
		}
		for _, n := range v.nics {
			f.Remedies = append(f.Remedies, n.hashPorts()...)
		}
	}
	return f
}

func (v *view) programTunnel(t *tunnelled, c *core) Finding {
	return Finding{
		Severity: v.severeTime(c), Subject: t.Interface, core: c.ID, weight: t.share, bites: true,
		Says:     fmt.Sprintf("%s: it has one thread, and each packet crosses into it and back; %s", c.fills(t.name(), "fills"), v.room([]*core{c})),
		Evidence: []string{t.line(v), c.line()},
		Remedies: []Remedy{
			{Command: "top -1 -H", Text: "see the program; then let the kernel carry the tunnel: WireGuard, or OpenVPN's data channel offload (DCO)"},
			{Text: "or run several instances with a tunnel each, on cores that receive nothing; no queue, mask or ring makes one thread faster"},
		},
		Expect: "the tunnel uses more than one core, without system calls for each packet",
	}
}

// most returns the worker that takes the most of a core's time; nil: none does.
func (t *VPNTunnel) most(cpu int) (most *WorkerPlace) {
	for i := range t.Workers {
		if w := &t.Workers[i]; w.CPU == cpu && w.Time != nil && (most == nil || *w.Time > *most.Time) {
			most = w
		}
	}
	return most
}

// weirTunnel is the finding for a tunnel of weir vpn run whose worker fills a core.
func (v *view) weirTunnel(t *tunnelled, c *core) Finding {
	w := t.work.most(c.ID)
	f := Finding{
		Severity: v.severeTime(c), Subject: t.Interface, core: c.ID, weight: max(t.share, *w.Time), bites: true,
		Says:     fmt.Sprintf("%s; %s", c.fills(fmt.Sprintf("worker %d of %s", w.Number, t.name()), "fills"), v.room([]*core{c})),
		Evidence: []string{t.line(v), fmt.Sprintf("worker %d sends %s and receives %s, and takes %s of %s", w.Number, bitRate(w.Sends), bitRate(w.Takes), percent(*w.Time), c.name()), c.line()},
		Expect:   "the tunnel uses more than one core",
	}
	to := v.idlest(c)
	if to != nil && (c.network() >= partOfFull || *w.Time < busy) {
		f.Says = fmt.Sprintf("worker %d of %s and other work share %s, which is %s; %s", w.Number, t.name(), c.name(), c.fullness(), v.room([]*core{c}))
		f.Remedies = []Remedy{{Command: fmt.Sprintf("weir vpn affinity set %s:%d=%d", t.Interface, w.Number, to.ID), Text: "the worker runs elsewhere at once, and loses no packet; weir vpn affinity shows who shares which core"}}
		f.Expect = "the worker has a core of its own"
		return f
	}
	f.Remedies = []Remedy{{Command: "weir vpn affinity", Text: "see the workers: what one connection sends stays with one of them, so more connections inside use more cores; larger packets cost less for each byte"}}
	return f
}

// tunnelLines describes each tunnel that carries packets, with the core that its card's
// largest queue comes to.
func (v *view) tunnelLines() (lines []string) {
	for _, t := range v.tunnelsInUse() {
		if t.counted && t.link.RxPackets+t.link.TxPackets == 0 {
			continue
		}
		text := t.line(v)
		if c := v.carrier(t); c != nil {
			text += ", on " + c.name()
		} else if ids := v.largestCores(); len(ids) > 0 && t.share >= mostTunnelled && !userSpace[t.Kind] {
			text += fmt.Sprintf(", on cpu%d", ids[0])
		}
		lines = append(lines, text)
	}
	return lines
}
