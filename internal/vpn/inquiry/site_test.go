package inquiry

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"weir/internal/vpn/ipsec"
	"weir/internal/vpn/keeper"
)

// Each thing that is wrong with a tunnel of IPsec is named: also both up, and no traffic.
func TestJudgeSite(t *testing.T) {
	now := time.Unix(1000, 0)
	network := netip.MustParsePrefix("10.2.0.0/16")
	good := func() *SiteFacts {
		all := func() []netip.Prefix { return []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")} }
		child := ipsec.Child{State: "INSTALLED", Age: 60, Received: 300, Sent: 300, From: all(), To: all()}
		state := ipsec.State{SAs: []ipsec.IKE{{State: "ESTABLISHED", Remote: "192.0.2.7:500", RemoteID: "branch", LocalID: "hq", Age: 60, Children: []ipsec.Child{child}}}}
		return &SiteFacts{
			Now: now,
			Tunnel: keeper.Status{Interface: "ipsec0", Engine: "charon", Why: "strongSwan 5.9.8", MTU: 1400, Site: &keeper.Site{
				State: state, Peer: "192.0.2.7", DstID: "branch", From: all(), Networks: []netip.Prefix{network}, Routes: []netip.Prefix{network},
			}},
			Routes: []Route{{network, "ipsec0"}},
			Probes: []Probe{{To: netip.MustParseAddr("10.2.0.1"), From: netip.MustParseAddr("10.9.0.1"), Sent: 3, Answered: 3, RTT: time.Millisecond, Out: 300, In: 300, Largest: 1400}},
		}
	}
	for _, f := range JudgeSite(good()) {
		if !f.OK {
			t.Errorf("nothing is wrong, and it says %+v", f)
		}
	}
	site := func(f *SiteFacts) *keeper.Site { return f.Tunnel.Site }
	narrow := good() // a peer that insists on its networks
	narrow.Tunnel.Site.SAs[0].Children[0].From[0] = netip.MustParsePrefix("10.9.0.0/24")
	if said := JudgeSite(narrow)[2]; !said.OK || !strings.HasSuffix(said.Answer, ", from 10.9.0.0/24 only") {
		t.Errorf("%+v", said)
	}
	child := func(f *SiteFacts) *ipsec.Child { return &site(f).SAs[0].Children[0] }
	failed := func(f *SiteFacts, age time.Duration) {
		site(f).Error, site(f).ErrorTime = "the peer refuses us", now.Add(-age)
	}
	unanswered := func(f *SiteFacts) *Probe {
		p := &f.Probes[0]
		p.Answered, p.RTT, p.Largest = 0, 0, 0
		return p
	}
	for _, c := range []struct {
		spoil            func(f *SiteFacts)
		question, answer string
	}{
		{func(f *SiteFacts) { f.Tunnel.Problem = "no charon listens" }, "tunnel", "no charon"},
		{func(f *SiteFacts) { f.Tunnel.Engine = "" }, "tunnel", "not been asked"},
		{func(f *SiteFacts) { site(f).SAs = nil; failed(f, time.Minute) }, "IKE", "refuses us"},
		{func(f *SiteFacts) { site(f).SAs = nil; failed(f, time.Hour) }, "IKE", "nothing is known to be wrong"},
		{func(f *SiteFacts) { site(f).SAs = nil; site(f).Passive = true }, "IKE", "has to begin"},
		{func(f *SiteFacts) { site(f).SAs[0].State = "CONNECTING" }, "IKE", "being made"},
		{func(f *SiteFacts) { site(f).SAs[0].Children = nil }, "keys", "the peer has removed them"},
		{func(f *SiteFacts) { site(f).SAs[0].Children = nil; failed(f, time.Second) }, "keys", "refuses us"},
		{func(f *SiteFacts) { site(f).SAs[0].Children = nil; failed(f, 2*time.Minute) }, "keys", "the peer has removed them"}, // that was before
		{func(f *SiteFacts) { site(f).SAs = nil }, "keys", "do not know each other"},
		{func(f *SiteFacts) {
			site(f).From[0], child(f).From[0] = netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("10.1.7.0/24")
		}, "keys", "agreed to packets from 10.1.7.0/24 only; nothing goes from 10.1.0.0/16"},
		{func(f *SiteFacts) { unanswered(f).Out = 0; child(f).From[0] = netip.MustParsePrefix("172.16.0.0/16") }, "probe", "packets from 172.16.0.0/16 only, and ours come from 10.9.0.1"},
		{func(f *SiteFacts) { child(f).To[0] = netip.MustParsePrefix("10.2.7.0/24") }, "keys", "agreed to 10.2.7.0/24 only; nothing goes to 10.2.0.0/16"},
		{func(f *SiteFacts) { f.Routes[0].Through = "eth1" }, "routes", "through eth1"},
		{func(f *SiteFacts) { f.Routes[0].Through = "" }, "routes", "no route leads"},
		{func(f *SiteFacts) { f.Probes = nil }, "probe", "--to"},
		{func(f *SiteFacts) { unanswered(f); site(f).SAs = nil }, "probe", "there are no keys"},
		{func(f *SiteFacts) { unanswered(f); child(f).To[0] = netip.MustParsePrefix("10.2.7.0/24") }, "probe", "the tunnel is for 10.2.7.0/24"},
		{func(f *SiteFacts) { unanswered(f).Out = 0 }, "probe", "rules here block it"},
		{func(f *SiteFacts) { unanswered(f).In = 0; child(f).Received = 0 }, "probe", "ESP (IP protocol 50) may be blocked"},
		{func(f *SiteFacts) { unanswered(f).In = 0; child(f).Received = 0; child(f).Encap = true }, "probe", "nothing came back. The other end"},
		{func(f *SiteFacts) { unanswered(f).In = 0 }, "probe", "nothing came back. The other end"},
		{func(f *SiteFacts) { unanswered(f) }, "probe", "does not answer"},
		{func(f *SiteFacts) { f.Probes[0].Largest = 1372 }, "MTU", "set mtu 1372"},
	} {
		f := good()
		c.spoil(f)
		found := false
		for _, said := range JudgeSite(f) {
			if !said.OK && said.Question == c.question {
				found = strings.Contains(said.Answer, c.answer)
			}
		}
		if !found {
			t.Errorf("no answer to %s has %q: %+v", c.question, c.answer, JudgeSite(f))
		}
	}
}
