package doctor

import (
	"fmt"
	"slices"
	"strings"

	"weir/internal/units"
)

func forwardingChecks() []Check {
	return []Check{
		{ID: "FWD-1", Title: "forwarding is off", Reads: []string{"sysctls", "interfaces", "snmp"}, Worst: Critical, needs: []need{noSysctls}, run: forwardingOff},
		{ID: "FWD-2", Title: "another firewall drops forwarded packets", Reads: []string{"chains"}, Worst: Warning, run: foreignDrop},
		{ID: "FWD-3", Title: "another program translates addresses too", Reads: []string{"chains", "weir"}, Worst: Warning, needs: []need{(*view).noWeir}, run: secondNAT},
		{ID: "IPSEC-1", Title: "IPsec policies send packets through the stack", Reads: []string{"ipsec_policies", "weir"}, Worst: Notice, needs: []need{(*view).noWeir, noPolicies}, run: ipsecPolicies},
		{ID: "MARK-1", Title: "a policy routing rule compares weir's bits of the mark", Reads: []string{"mark_rules", "weir"}, Worst: Warning, needs: []need{(*view).noWeir, noMarkRules}, run: markRules},
		{ID: "RA-1", Title: "the WAN ignores router advertisements", Reads: []string{"sysctls", "routes"}, Worst: Warning, needs: []need{noRoutesOrSysctls}, run: advertisements},
		{ID: "RPF-1", Title: "strict source checks drop what comes", Reads: []string{"sysctls", "routes", "snmp"}, Worst: Warning, run: reversePath},
	}
}

func foreignDrop(v *view) (o outcome) {
	others := v.beyondDocker()
	if v.Weir == nil && len(others) == 0 {
		v.noWeir(&o) // a policy of drop alone may be the start of an admin's own filter
		return o
	}
	if v.Chains == nil {
		o.lacks(v, "chains")
		return o
	}
	for _, c := range v.Chains {
		if c.Hook != "forward" || c.Policy != "drop" || v.Weir == nil && !strings.HasSuffix(c.Name, dockersChain) {
			continue
		}
		if v.Weir == nil {
			dropped := slices.DeleteFunc(slices.Clone(others), c.accepted)
			if len(dropped) > 0 {
				o.add(v.dockerDrops(c.Name, dropped))
			}
			continue
		}
		if judged := v.judged(); len(judged) > 0 && !slices.ContainsFunc(judged, func(name string) bool { return !c.accepted(name) }) {
			continue
		}
		o.add(Finding{
			Severity: Warning, core: -1, Subject: c.Name,
			Says:     fmt.Sprintf("%s drops forwarded packets by default%s", c.Name, owner(c.Name, v.Services)),
			Evidence: []string{"chain " + c.Name + ": hook forward, policy drop"},
			Remedies: []Remedy{v.accept(c.Name)},
			Expect:   "packets that weir hands to the stack arrive",
		})
	}
	return o
}

// dockersChain ends the names of the chains whose policy Docker changes.
const dockersChain = " filter FORWARD"

// accepted reports whether rules of the chain accept what comes in by an interface.
func (c *Chain) accepted(name string) bool {
	return slices.ContainsFunc(c.Accepts, func(pattern string) bool {
		prefix, wild := strings.CutSuffix(pattern, "*")
		return pattern == name || wild && strings.HasPrefix(name, prefix)
	})
}

// beyondDocker returns the bridges that are not Docker's own, of a box on which Docker runs
// and switched forwarding on: of machines and containers of others. Without weir, who has a
// filter of their own knows its policy; Docker changes it unasked.
func (v *view) beyondDocker() (names []string) {
	on, _ := v.routes("ipv4")
	if !on || !slices.Contains(v.Services, "dockerd") {
		return nil
	}
	for i := range v.Interfaces {
		d := &v.Interfaces[i]
		if d.Up && d.Kind == "bridge" && !dockersOwn(d.Name) && v.filtersBridge(d) {
			names = append(names, d.Name)
		}
	}
	return names
}

// dockersOwn reports whether Docker makes interfaces of this name.
func dockersOwn(name string) bool {
	return name == "docker0" || name == "docker_gwbridge" || strings.HasPrefix(name, "br-") || strings.HasPrefix(name, "veth")
}

// filtersBridge reports whether packets of a bridge's machines go through the forward chain:
// they are routed to another network, or the bridge hands its own packets to it
// (br_netfilter). A bridge over the only card, which carries the box's own address, does
// neither.
func (v *view) filtersBridge(bridge *Interface) bool {
	ports, cards := 0, 0
	routed := false
	for i := range v.Interfaces {
		d := &v.Interfaces[i]
		switch {
		case !d.Up || d.Kind == "loopback" || d.Name == bridge.Name:
		case d.Master == bridge.Name:
			ports++
			if d.Kind == "physical" {
				cards++
			}
		case d.Master == "" && !dockersOwn(d.Name) && len(d.Addresses) > 0:
			routed = true
		}
	}
	handed, _ := v.number("net.bridge.bridge-nf-call-iptables")
	return cards == 0 || routed || ports > 1 && handed == 1
}

func (v *view) dockerDrops(chain string, bridges []string) Finding {
	f := Finding{
		Severity: Warning, core: -1, Subject: chain,
		Says:     fmt.Sprintf("%s drops forwarded packets by default, which Docker may have set, also those of %s", chain, join(bridges)),
		Evidence: []string{"chain " + chain + ": hook forward, policy drop", "dockerd runs here; other bridges: " + join(bridges)},
		Remedies: []Remedy{{
			Command: eachInterface("iptables -I DOCKER-USER -i %s -j ACCEPT && iptables -I DOCKER-USER -o %[1]s -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT", bridges),
			Text:    "let what comes from these bridges pass, with its replies, unless rules do already (iptables -S FORWARD). It then reaches Docker's containers, too: leave that out with ! -o docker0 where it must not",
		}},
		Expect: "machines and containers on these bridges reach others again",
	}
	if handed, _ := v.number("net.bridge.bridge-nf-call-iptables"); handed == 1 && v.bridgesCard(bridges) {
		f.Evidence = append(f.Evidence, "net.bridge.bridge-nf-call-iptables = 1: what is bridged goes through the chain, too")
		f.Remedies = append(f.Remedies, Remedy{Command: "sysctl -w net.bridge.bridge-nf-call-iptables=0",
			Text: "or, where machines on the bridge reach their network by it and nothing of theirs is routed here: leave what is bridged alone. Kubernetes, and rules of Docker between containers of one network, need it at 1"})
	}
	if forwarded, known := v.forwarded(); known && forwarded >= few {
		f.Severity = Notice // something lets them pass
		f.Evidence = append(f.Evidence, fmt.Sprintf("Ip.ForwDatagrams: %s", v.rate(forwarded)))
	}
	return f
}

// bridgesCard reports whether one of the bridges has a card: its machines are in the card's
// network, and reach it without being routed.
func (v *view) bridgesCard(bridges []string) bool {
	return slices.ContainsFunc(v.Interfaces, func(d Interface) bool {
		return d.Up && d.Kind == "physical" && slices.Contains(bridges, d.Master)
	})
}

// forwarded returns how many packets the kernel forwarded, if that was counted.
func (v *view) forwarded() (n uint64, known bool) {
	if !v.sampled {
		return 0, false
	}
	for _, name := range []string{"Ip.ForwDatagrams", "Ip6.OutForwDatagrams"} {
		if now, ok := v.After.SNMP[name]; ok {
			n, known = n+Grown(now, v.Before.SNMP[name]), true
		}
	}
	return n, known
}

// accept makes another filter's chain accept what weir has passed at its ingress. Docker
// has a chain for others' rules, DOCKER-USER, and keeps the rules in it.
func (v *view) accept(chain string) Remedy {
	judged := v.judged()
	words := strings.Fields(chain)
	const why = "weir has already filtered what comes in by these interfaces; with two filters, the stricter wins. Or remove the other firewall"
	switch {
	case len(judged) == 0:
		return Remedy{Command: "weir interfaces", Text: "see which interfaces weir filters, and make the other firewall accept what comes in by them; or remove it"}
	case slices.Contains(v.Services, "dockerd") && strings.HasSuffix(chain, dockersChain):
		return Remedy{Command: eachInterface("iptables -I DOCKER-USER -i %s -j ACCEPT", judged), Text: why}
	case words[0] == "nftables" && len(words) == 4:
		return Remedy{Command: fmt.Sprintf(`nft 'insert rule %s %s %s iifname { "%s" } accept'`, words[1], words[2], words[3], strings.Join(judged, `", "`)), Text: why}
	}
	return Remedy{Command: eachInterface(words[0]+" -I FORWARD -i %s -j ACCEPT", judged), Text: why}
}

// judged returns the interfaces that weir filters.
func (v *view) judged() (names []string) {
	for _, n := range v.Weir.Interfaces {
		if n.Hook != "" && n.Hook != "none" {
			names = append(names, n.Name)
		}
	}
	return names
}

// eachInterface repeats a command for each interface.
func eachInterface(command string, names []string) string {
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = fmt.Sprintf(command, name)
	}
	return strings.Join(all, " && ")
}

// owner names the service that makes such chains, if it runs. firewalld has its own
// table; the others share iptables' table.
func owner(chain string, services []string) string {
	var owners []string
	for _, s := range services {
		switch {
		case strings.Contains(chain, "firewalld"):
			if s == "firewalld" {
				owners = append(owners, s)
			}
		case s == "docker" || s == "dockerd", s == "ufw" && strings.Contains(strings.ToLower(chain), "filter forward"):
			owners = append(owners, s)
		}
	}
	switch len(owners) {
	case 0:
		return ""
	case 1:
		return ", and " + owners[0] + " runs here"
	}
	return ", and " + join(owners) + " run here"
}

func secondNAT(v *view) (o outcome) {
	if v.Chains == nil {
		o.lacks(v, "chains")
		return o
	}
	for _, c := range v.Chains {
		if !c.NAT {
			continue
		}
		o.add(Finding{
			Severity: Warning, core: -1, Subject: c.Name,
			Says:     fmt.Sprintf("%s translates addresses beside weir: packets that go through the stack may be translated twice", c.Name),
			Evidence: []string{"chain " + c.Name + ": hook " + c.Hook + ", with masquerade or snat"},
			Remedies: []Remedy{{Command: listNAT(c.Name), Text: "find the rule and its handle or number, and translate in one place only: remove it there, or in the program that made it, or exclude those addresses from weir's nat-to"}},
			Expect:   "replies come back, and ports stay as weir chose them",
		})
	}
	return o
}

// listNAT returns the command that lists a chain. The chain's name begins with the
// program's name.
func listNAT(chain string) string {
	program, name, _ := strings.Cut(chain, " ")
	if program == "nftables" {
		return "nft -a list chain " + name
	}
	return program + " -t nat -nvL --line-numbers"
}

// advertisements checks accept_ra. If forwarding is on, the kernel accepts router
// advertisements only with accept_ra = 2 (ip-sysctl.rst). Otherwise a default route
// learned from them expires.
func advertisements(v *view) (o outcome) {
	o.absent = "no default route was learned from router advertisements"
	for _, r := range v.Routes {
		if r.Origin != "ra" {
			continue
		}
		o.absent = ""
		key := "net.ipv6.conf." + sysctlName(r.Interface) + "."
		accept, known := v.number(key + "accept_ra")
		forwards, knows := v.number(key + "forwarding")
		if !known || !knows {
			o.lacks(v, "sysctls."+key+"accept_ra and forwarding")
			continue
		}
		if forwards == 0 || accept != 1 {
			continue
		}
		o.add(Finding{
			Severity: Warning, Subject: r.Interface, core: -1,
			Says:     fmt.Sprintf("the default route of IPv6 on %s was learnt from router advertisements, which the interface ignores while it forwards: the route will expire", r.Interface),
			Evidence: []string{key + "accept_ra = 1, forwarding = 1"},
			Remedies: []Remedy{{Command: fmt.Sprintf("sysctl -w %saccept_ra=2", key), Text: "accept them although it forwards"}},
			Expect:   "IPv6 keeps working after the advertised lifetime (30 minutes by default)",
		})
	}
	return o
}

// sysctlName returns an interface's name as sysctl(8) writes it, with slashes for dots.
func sysctlName(device string) string { return strings.ReplaceAll(device, ".", "/") }

// filtered counts what the source checks drop on any interface (IPReversePathFilter).
func (v *view) filtered(o *outcome) {
	dropped, received := v.counted("TcpExt.IPReversePathFilter"), v.received()
	share := float64(dropped) / float64(max(1, dropped, received))
	if dropped < fewLost || share < lossLimits {
		return
	}
	f := Finding{
		Severity: Notice, core: -1, weight: share,
		Says:     fmt.Sprintf("strict source checks (rp_filter) drop %s, %s of what comes", v.rate(dropped), percent(share)),
		Evidence: []string{fmt.Sprintf("TcpExt.IPReversePathFilter: %s in %s", units.Thousands(int(dropped)), seconds(v.Seconds))},
		Expect:   "packets whose replies leave by another interface are accepted",
	}
	if share >= held { // a stray host in a network brings a few
		f.Severity = Warning
	}
	all, _ := v.number("net.ipv4.conf.all.rp_filter")
	for i := range v.Interfaces {
		d := &v.Interfaces[i]
		key := "net.ipv4.conf." + sysctlName(d.Name) + ".rp_filter"
		if own, known := v.number(key); d.Up && known && max(own, all) == 1 {
			f.Evidence = append(f.Evidence, fmt.Sprintf("%s = %d, net.ipv4.conf.all.rp_filter = %d", key, own, all))
			f.Remedies = append(f.Remedies, Remedy{Command: "sysctl -w " + key + "=2", Text: "if " + d.Name + " is where they come in: loose, the source must be reachable by any interface"})
		}
	}
	f.Remedies = append(f.Remedies, Remedy{Command: "sysctl -w net.ipv4.conf.all.log_martians=1 && dmesg -w", Text: "see which sources, and where they come in; if the route back to them is wrong or missing (ip route get …), mend the route instead"})
	o.add(f)
}

func reversePath(v *view) (o outcome) {
	v.filtered(&o)
	if v.Routes == nil {
		o.lacks(v, "routes")
		return o
	}
	ways := map[string]bool{}
	for _, r := range v.Routes {
		if r.Family == "inet" {
			ways[r.Interface] = true
		}
	}
	if len(ways) < 2 {
		if v.After == nil || v.After.SNMP == nil {
			o.absent = "there are fewer than two IPv4 default routes"
		}
		return o
	}
	all, knownAll := v.number("net.ipv4.conf.all.rp_filter")
	for _, name := range sortedKeys(ways) {
		key := "net.ipv4.conf." + sysctlName(name) + ".rp_filter"
		own, known := v.number(key)
		if !known || !knownAll {
			o.lacks(v, "sysctls."+key)
			continue
		}
		if max(own, all) != 1 { // the larger of the two applies (ip-sysctl.rst)
			continue
		}
		o.add(Finding{
			Severity: Warning, Subject: name, core: -1,
			Says:     fmt.Sprintf("%s is one of %d uplinks, and drops packets whose replies would leave by another one (rp_filter strict)", name, len(ways)),
			Evidence: []string{fmt.Sprintf("%s = %d, net.ipv4.conf.all.rp_filter = %d", key, own, all)},
			Remedies: []Remedy{{Command: "sysctl -w " + key + "=2", Text: "loose: the source must be reachable by any interface; weir's own sanity checks stay"}},
			Expect:   "replies that arrive on the other uplink are accepted",
		})
	}
	return o
}
