package doctor

import (
	"strings"
	"testing"
)

// TestFragmented checks that datagrams sent in fragments are a finding if they are a
// hundredth of what is received, and name the device whose MTU makes them.
func TestFragmented(t *testing.T) {
	for _, c := range []struct {
		name      string
		fragments uint64
		want      Severity
	}{{"none", 0, Notice}, {"a few", 4000, Notice}, {"an eighth", 62000, Warning}} {
		b := forwarding(4, 20)
		b.s.Interfaces = append(b.s.Interfaces, Interface{Name: "ds-wan6_4", Kind: "ip6tnl", Up: true, MTU: 1280})
		b.s.Before.SNMP = map[string]uint64{"Ip.InReceives": 0, "Ip.FragOKs": 0, "Ip.FragFails": 0}
		b.s.After.SNMP = map[string]uint64{"Ip.InReceives": 500000, "Ip.FragOKs": c.fragments, "Ip.FragFails": 0}
		r, err := Examine(b.s, nil)
		if err != nil {
			t.Fatal(err)
		}
		var found []Finding
		for _, f := range r.Findings {
			if f.Check == "PATH-1" {
				found = append(found, f)
			}
		}
		switch {
		case c.fragments == 0 && len(found) > 0:
			t.Errorf("%s: %s", c.name, found[0].Says)
		case c.fragments == 0:
		case len(found) != 1 || found[0].Severity != c.want:
			t.Errorf("%s: %d findings; want one of severity %s", c.name, len(found), c.want)
		case c.want == Warning && (r.Verdict.Check != "PATH-1" || !strings.Contains(found[0].Remedies[0].Command, "ds-wan6_4 mtu")):
			t.Errorf("%s: %s, with %v", c.name, r.Verdict.Sentence, found[0].Remedies)
		}
	}
}

// TestClamp checks that weir's own rules limit the MSS where weir forwards: nftables does not see these packets.
func TestClamp(t *testing.T) {
	for _, weir := range []bool{false, true} {
		b := forwarding(4, 20)
		want := "maxseg size set 1452"
		if weir {
			b.weir(0)
			b.s.After.Weir.Reasons["up-mtu"] = 900
			want = `r='match on ppp0 inet scrub (max-mss 1452)\nmatch on ppp0 inet6 scrub (max-mss 1432)' $F > $F.new && weir check $F.new && cp`
		} else {
			b.s.Before.SNMP, b.s.After.SNMP = map[string]uint64{"Ip.FragFails": 0, "Ip.InReceives": 0}, map[string]uint64{"Ip.FragFails": 900, "Ip.InReceives": 90000}
		}
		b.s.Interfaces = append(b.s.Interfaces, Interface{Name: "ppp0", Kind: "ppp", Parent: "eth0", Up: true, MTU: 1492})
		r, err := Examine(b.s, nil)
		if err != nil {
			t.Fatal(err)
		}
		found := ""
		for _, f := range r.Findings {
			if f.Check == "PATH-1" {
				found += f.Remedies[0].Command
			}
		}
		if !strings.Contains(found, want) {
			t.Errorf("with weir %v: %q", weir, found)
		}
	}
}
