package doctor

import "fmt"

func policyCount(n int) string {
	if n == 1 {
		return "1 IPsec policy"
	}
	return fmt.Sprintf("%d IPsec policies", n)
}

// ipsecPolicies finds IPsec policies that weir has to follow.
func ipsecPolicies(v *view) (o outcome) {
	p := v.Policies
	if p.Bare == 0 && !p.Blocks {
		o.absent = "there are no IPsec policies without an xfrm interface"
		return o
	}
	f := Finding{
		Severity: Notice, core: -1, Subject: "ip xfrm policy",
		Says:     fmt.Sprintf("%s without an xfrm interface: weir hands up what they select, and looks other packets up", policyCount(p.Bare)),
		Evidence: []string{fmt.Sprintf("%d policies of directions out and fwd without an interface, %d of xfrm interfaces", p.Bare, p.Bound)},
		Remedies: []Remedy{
			{Command: "weir info", Text: "see how many weir follows, and whether everything goes up because of them"},
			{Text: "use tunnels over xfrm interfaces (ikev2 in the rules): then only what is routed there goes through the stack"},
		},
		Expect: "what no tunnel carries is forwarded at full speed, and prefetched",
	}
	if p.Blocks {
		f.Says = "the default of IPsec policies is block: everything that is forwarded goes up, and the stack drops what no policy lets pass"
		f.Evidence = append(f.Evidence, "ip xfrm policy getdefault: block, for out or fwd")
	}
	o.add(f)
	return o
}
