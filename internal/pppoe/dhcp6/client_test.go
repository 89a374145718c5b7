package dhcp6_test

import (
	"bytes"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/insomniacslk/dhcp/dhcpv6"
	"github.com/insomniacslk/dhcp/iana"

	"weir/internal/pppoe/dhcp6"
)

var (
	duid = []byte{0, 3, 0, 1, 2, 0x77, 0x65, 0, 0, 1}
	iaid = [4]byte{1, 2, 3, 4}
	t0   = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
)

func prefix(text string) netip.Prefix { return netip.MustParsePrefix(text) }

// zeros are random numbers in the middle of their range: nothing is jittered.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 0
	}
	if len(b) == 4 {
		b[0] = 0x80
	}
	return len(b), nil
}

// bench is a client and its time.
type bench struct {
	*testing.T
	*dhcp6.Client
	now   time.Time
	sent  []*dhcpv6.Message
	notes []string
	lease *dhcp6.Lease // the last that was reported
}

func newBench(t *testing.T, config dhcp6.Config) *bench {
	config.DUID, config.IAID, config.Random = duid, iaid, zeros{}
	return &bench{T: t, Client: dhcp6.New(config), now: t0}
}

func (b *bench) take() {
	b.Helper()
	messages, events := b.Take()
	for _, text := range messages {
		m, err := dhcpv6.MessageFromBytes(text)
		if err != nil {
			b.Fatal(err)
		}
		b.sent = append(b.sent, m)
	}
	for _, e := range events {
		if e.Kind == dhcp6.Changed {
			b.lease = &e.Lease
		} else {
			b.notes = append(b.notes, e.Text)
		}
	}
}

// up begins in a new session.
func (b *bench) up() { b.Up(false, b.now); b.take() }

// pass lets time pass.
func (b *bench) pass(d time.Duration) {
	b.Helper()
	for end := b.now.Add(d); ; {
		next := b.Next()
		if next.IsZero() || next.After(end) {
			b.now = end
			return
		}
		b.now = next
		b.Tick(b.now)
		b.take()
	}
}

// last is the last message, which has to be of a kind.
func (b *bench) last(kind dhcpv6.MessageType) *dhcpv6.Message {
	b.Helper()
	if len(b.sent) == 0 || b.sent[len(b.sent)-1].MessageType != kind {
		b.Fatalf("the last message is no %s: %v\n%s", kind, b.sent, strings.Join(b.notes, "\n"))
	}
	return b.sent[len(b.sent)-1]
}

// count returns how many messages of a kind were sent.
func (b *bench) count(kind dhcpv6.MessageType) (n int) {
	for _, m := range b.sent {
		if m.MessageType == kind {
			n++
		}
	}
	return n
}

// A grant is what a server says.
type grant struct {
	server           byte
	prefixes         []netip.Prefix
	preferred, valid time.Duration
	t1, t2           time.Duration
	preference       uint8
	status, ofIA     iana.StatusCode
	ofPrefix         iana.StatusCode
	noIA             bool
	otherIAID        bool
	more             []dhcpv6.Option
}

// answer has a server answer the last message.
func (b *bench) answer(kind dhcpv6.MessageType, g grant) {
	b.Helper()
	m := &dhcpv6.Message{MessageType: kind, TransactionID: b.sent[len(b.sent)-1].TransactionID}
	m.AddOption(&dhcpv6.OptionGeneric{OptionCode: dhcpv6.OptionClientID, OptionData: duid})
	m.AddOption(&dhcpv6.OptionGeneric{OptionCode: dhcpv6.OptionServerID, OptionData: []byte{0, 2, 0, 0, 0, 9, g.server}})
	m.AddOption(dhcpv6.OptDNS(net.ParseIP("2001:db8::53")))
	if g.preference != 0 {
		m.AddOption(dhcpv6.OptPreference(g.preference))
	}
	pd := &dhcpv6.OptIAPD{IaId: iaid, T1: g.t1, T2: g.t2}
	if g.otherIAID {
		pd.IaId = [4]byte{9}
	}
	status := func(code iana.StatusCode) *dhcpv6.OptStatusCode {
		return &dhcpv6.OptStatusCode{StatusCode: code, StatusMessage: "says the server"}
	}
	for _, p := range g.prefixes {
		o := &dhcpv6.OptIAPrefix{
			PreferredLifetime: g.preferred, ValidLifetime: g.valid,
			Prefix: &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), 128)},
		}
		if g.ofPrefix != 0 {
			o.Options.Add(status(g.ofPrefix))
		}
		pd.Options.Add(o)
	}
	if g.ofIA != 0 {
		pd.Options.Add(status(g.ofIA))
	}
	if g.status != 0 {
		m.AddOption(status(g.status))
	}
	if !g.noIA {
		m.AddOption(pd)
	}
	for _, o := range g.more {
		m.AddOption(o)
	}
	b.Receive(m.ToBytes(), b.now)
	b.take()
}

// good is what a server usually says.
var good = grant{prefixes: []netip.Prefix{prefix("2001:db8:100::/56")}, preferred: time.Hour, valid: 2 * time.Hour, t1: 30 * time.Minute, t2: 48 * time.Minute}

// bind has the client get a lease.
func (b *bench) bind(g grant) {
	b.Helper()
	b.up()
	b.last(dhcpv6.MessageTypeSolicit)
	b.answer(dhcpv6.MessageTypeAdvertise, g)
	b.pass(time.Second)
	b.last(dhcpv6.MessageTypeRequest)
	b.answer(dhcpv6.MessageTypeReply, g)
}

// has compares the prefixes that the client has.
func (b *bench) has(want ...string) {
	b.Helper()
	var got []string
	lease := b.Lease()
	for _, p := range lease.Prefixes {
		got = append(got, p.Prefix.String())
	}
	if b.lease != nil {
		if diff := cmp.Diff(lease.Prefixes, b.lease.Prefixes, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
			b.Errorf("the lease is not the one that was reported: %s", diff)
		}
	}
	if !slices.Equal(got, want) {
		b.Errorf("prefixes %q, want %q\n%s", got, want, strings.Join(b.notes, "\n"))
	}
}

// hint is the prefix that a message asks for.
func hint(m *dhcpv6.Message) string {
	pd := m.Options.OneIAPD()
	if pd == nil || len(pd.Options.Prefixes()) == 0 {
		return ""
	}
	return pd.Options.Prefixes()[0].Prefix.String()
}

// A lease comes in four messages; the request has what was offered, and no address is asked for.
func TestLease(t *testing.T) {
	b := newBench(t, dhcp6.Config{})
	b.bind(good)
	b.has("2001:db8:100::/56")
	if len(b.sent) != 2 || hint(b.sent[0]) != "" || hint(b.sent[1]) != "2001:db8:100::/56" {
		t.Errorf("messages: %v", b.sent)
	}
	for _, m := range b.sent {
		if m.GetOneOption(dhcpv6.OptionIANA) != nil || m.GetOneOption(dhcpv6.OptionRapidCommit) != nil || !bytes.Equal(m.GetOneOption(dhcpv6.OptionClientID).ToBytes(), duid) {
			t.Errorf("options of %s", m.Summary())
		}
	}
	want := dhcp6.Lease{
		Prefixes: []dhcp6.Prefix{{prefix("2001:db8:100::/56"), t0.Add(time.Hour + time.Second), t0.Add(2*time.Hour + time.Second)}},
		DNS:      []netip.Addr{netip.MustParseAddr("2001:db8::53")}, Server: []byte{0, 2, 0, 0, 0, 9, 0},
		Renew: t0.Add(30*time.Minute + time.Second), Rebind: t0.Add(48*time.Minute + time.Second),
	}
	if diff := cmp.Diff(want, b.Lease(), cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }), cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
		t.Error(diff)
	}
}

// Without an answer a Solicit is sent again, ever less often, and for ever.
func TestNobodyAnswers(t *testing.T) {
	b := newBench(t, dhcp6.Config{Length: 56, Before: prefix("2001:db8:7::/56")})
	b.up()
	var times []time.Duration
	for range 14 {
		before := b.now
		b.pass(b.Next().Sub(b.now))
		times = append(times, b.now.Sub(before).Round(time.Second))
	}
	want := []time.Duration{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 3600, 3600}
	for i := range want {
		if times[i] != want[i]*time.Second {
			t.Fatalf("times between Solicits: %v", times)
		}
	}
	var wishes []string
	for _, m := range b.sent[:5] {
		wishes = append(wishes, hint(m))
	}
	if want := []string{"2001:db8:7::/56", "2001:db8:7::/56", "2001:db8:7::/56", "", ""}; !slices.Equal(wishes, want) {
		t.Errorf("wishes %q, want %q", wishes, want)
	}
	b.answer(dhcpv6.MessageTypeAdvertise, good)
	b.last(dhcpv6.MessageTypeRequest)
}

// What is asked for is the length of the configuration, and an earlier prefix if it has it.
func TestWish(t *testing.T) {
	for _, test := range []struct {
		name   string
		config dhcp6.Config
		want   string
	}{
		{"nothing", dhcp6.Config{}, ""},
		{"a length", dhcp6.Config{Length: 60}, "::/60"},
		{"what there was", dhcp6.Config{Before: prefix("2001:db8::/56")}, "2001:db8::/56"},
		{"another length than before", dhcp6.Config{Before: prefix("2001:db8::/56"), Length: 60}, "::/60"},
	} {
		b := newBench(t, test.config)
		b.up()
		if got := hint(b.last(dhcpv6.MessageTypeSolicit)); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

// Of several servers the one with the highest preference is asked first; the next follows if it
// refuses after all.
func TestOffers(t *testing.T) {
	b := newBench(t, dhcp6.Config{})
	b.up()
	for server := range byte(3) {
		g := good
		g.server, g.preference = server, []uint8{1, 9, 3}[server]
		b.answer(dhcpv6.MessageTypeAdvertise, g)
	}
	b.pass(time.Second)
	for _, want := range []byte{1, 2} {
		if server := b.last(dhcpv6.MessageTypeRequest).GetOneOption(dhcpv6.OptionServerID).ToBytes(); server[6] != want {
			t.Errorf("server %d is asked, want %d", server[6], want)
		}
		b.answer(dhcpv6.MessageTypeReply, grant{ofIA: iana.StatusNoBinding})
	}
	b.answer(dhcpv6.MessageTypeReply, good)
	b.has("2001:db8:100::/56")
}

// Servers refuse in many ways. None brings a prefix, none ends the search, and after a refusal of
// the Request there is a pause.
func TestRefusals(t *testing.T) {
	at := func(change func(*grant)) grant { g := good; change(&g); return g }
	for name, g := range map[string]grant{
		"of the message":        {status: iana.StatusNoPrefixAvail},
		"of the IA":             {ofIA: iana.StatusNoPrefixAvail},
		"of the prefix":         at(func(g *grant) { g.ofPrefix = iana.StatusNoPrefixAvail }),
		"an empty IA":           {},
		"no IA":                 {noIA: true},
		"another's IA":          at(func(g *grant) { g.otherIAID = true }),
		"a prefix too small":    at(func(g *grant) { g.prefixes = []netip.Prefix{prefix("2001:db8::/65")} }),
		"times in disorder":     at(func(g *grant) { g.t1, g.t2 = 2*time.Hour, time.Hour }),
		"lifetimes in disorder": at(func(g *grant) { g.preferred, g.valid = 2*time.Hour, time.Hour }),
		"a lifetime of 0":       at(func(g *grant) { g.preferred, g.valid = 0, 0 }),
		"a link-local prefix":   at(func(g *grant) { g.prefixes = []netip.Prefix{prefix("fe80::/56")} }),
		"multicast":             at(func(g *grant) { g.prefixes = []netip.Prefix{prefix("ff00::/56")} }),
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, dhcp6.Config{Length: 56})
			b.up()
			b.answer(dhcpv6.MessageTypeAdvertise, g)
			b.pass(time.Second)
			if m := b.last(dhcpv6.MessageTypeSolicit); hint(m) != "" {
				t.Errorf("the next Solicit asks for %s", hint(m))
			}
			b.answer(dhcpv6.MessageTypeAdvertise, good)
			b.last(dhcpv6.MessageTypeRequest)
			before := b.now
			b.answer(dhcpv6.MessageTypeReply, g)
			b.has()
			b.pass(3 * time.Second)
			if b.last(dhcpv6.MessageTypeSolicit); len(b.sent) < 4 || b.now.Sub(before) < 2*time.Second {
				t.Errorf("after a refusal: %v", b.sent)
			}
			b.answer(dhcpv6.MessageTypeAdvertise, good)
			b.pass(time.Second)
			b.answer(dhcpv6.MessageTypeReply, good)
			b.has("2001:db8:100::/56")
		})
	}
}

// After a refusal the next Solicit has no wish, and the one after that has it again: the server may have minded
// it, or have had none free for a moment.
func TestWishAgain(t *testing.T) {
	wishes := func(b *bench) (all []string) {
		for _, m := range b.sent {
			if m.MessageType == dhcpv6.MessageTypeSolicit {
				all = append(all, hint(m))
			}
		}
		return all
	}
	b := newBench(t, dhcp6.Config{Length: 56})
	b.up()
	for range 3 { // each is answered by two servers
		for server := range byte(2) {
			b.answer(dhcpv6.MessageTypeAdvertise, grant{server: server, status: iana.StatusNoPrefixAvail})
		}
		b.pass(b.Next().Sub(b.now))
	}
	b.answer(dhcpv6.MessageTypeAdvertise, grant{status: iana.StatusNoPrefixAvail})
	b.pass(b.Next().Sub(b.now))
	if got, want := wishes(b), []string{"::/56", "", "::/56", "", "::/56"}; !slices.Equal(got, want) {
		t.Errorf("after refused Solicits: %q, want %q", got, want)
	}
	b = newBench(t, dhcp6.Config{Length: 56})
	b.up()
	for range 3 {
		b.answer(dhcpv6.MessageTypeAdvertise, good)
		b.pass(time.Second)
		b.answer(dhcpv6.MessageTypeReply, grant{ofIA: iana.StatusNoPrefixAvail})
		b.pass(b.Next().Sub(b.now))
	}
	if got, want := wishes(b), []string{"::/56", "", "::/56", ""}; !slices.Equal(got, want) {
		t.Errorf("after refused Requests: %q, want %q", got, want)
	}
	for code, want := range map[iana.StatusCode]string{iana.StatusNoBinding: "2001:db8:100::/56", iana.StatusNoPrefixAvail: ""} {
		b = newBench(t, dhcp6.Config{Length: 56})
		b.bind(good)
		b.pass(30 * time.Minute)
		b.answer(dhcpv6.MessageTypeReply, grant{ofIA: code})
		b.pass(b.Next().Sub(b.now))
		if got := hint(b.last(dhcpv6.MessageTypeSolicit)); got != want {
			t.Errorf("after %s to a Renew: %q, want %q", code, got, want)
		}
	}
}

// A server that refuses each Request is asked ever less often.
func TestPause(t *testing.T) {
	b := newBench(t, dhcp6.Config{})
	b.up()
	for b.now.Before(t0.Add(time.Hour)) {
		switch b.sent[len(b.sent)-1].MessageType {
		case dhcpv6.MessageTypeSolicit:
			b.answer(dhcpv6.MessageTypeAdvertise, good)
		default:
			b.answer(dhcpv6.MessageTypeReply, grant{ofIA: iana.StatusNoPrefixAvail})
		}
		b.pass(time.Second)
	}
	if n := b.count(dhcpv6.MessageTypeRequest); n < 8 || n > 20 {
		t.Errorf("%d Requests in an hour", n)
	}
}

// A lease is renewed with its server, then with any, and ends if nobody answers.
func TestRenew(t *testing.T) {
	b := newBench(t, dhcp6.Config{})
	b.bind(good)
	b.pass(30 * time.Minute)
	m := b.last(dhcpv6.MessageTypeRenew)
	if m.GetOneOption(dhcpv6.OptionServerID) == nil || hint(m) != "2001:db8:100::/56" {
		t.Errorf("the Renew: %s", m.Summary())
	}
	b.answer(dhcpv6.MessageTypeReply, good)
	if n := b.count(dhcpv6.MessageTypeRenew); n != 1 || !b.Lease().Renew.Equal(b.now.Add(30*time.Minute)) {
		t.Errorf("after %d Renews the next is at %v", n, b.Lease().Renew)
	}
	b.pass(48 * time.Minute)
	if m := b.last(dhcpv6.MessageTypeRebind); m.GetOneOption(dhcpv6.OptionServerID) != nil {
		t.Errorf("the Rebind: %s", m.Summary())
	}
	if n := b.count(dhcpv6.MessageTypeRenew); n != 8 { // after 10, 20, 40 … 600 s within 18 minutes
		t.Errorf("%d Renews", n)
	}
	other := good
	other.server = 7
	b.answer(dhcpv6.MessageTypeReply, other)
	b.has("2001:db8:100::/56")
	b.pass(2*time.Hour - time.Second)
	b.has("2001:db8:100::/56")
	b.pass(time.Second)
	b.has()
	b.last(dhcpv6.MessageTypeSolicit)
}

// What a server may say to a Renew.
func TestRenewAnswers(t *testing.T) {
	at := func(change func(*grant)) grant { g := good; change(&g); return g }
	for _, test := range []struct {
		name  string
		reply grant
		now   []string // what there is then
		next  dhcpv6.MessageType
	}{
		{"another prefix beside it", at(func(g *grant) { g.prefixes = []netip.Prefix{prefix("2001:db8:200::/56")} }), []string{"2001:db8:100::/56", "2001:db8:200::/56"}, dhcpv6.MessageTypeRenew},
		{"no such binding", grant{ofIA: iana.StatusNoBinding}, []string{"2001:db8:100::/56"}, dhcpv6.MessageTypeSolicit},
		{"none available", grant{status: iana.StatusNoPrefixAvail}, []string{"2001:db8:100::/56"}, dhcpv6.MessageTypeSolicit},
		{"none available, says the prefix", at(func(g *grant) { g.ofPrefix, g.preferred, g.valid = iana.StatusNoPrefixAvail, 0, 0 }), nil, dhcpv6.MessageTypeSolicit},
		{"it is taken away", at(func(g *grant) { g.preferred, g.valid = 0, 0 }), nil, dhcpv6.MessageTypeSolicit},
		{"it is deprecated", at(func(g *grant) { g.preferred = 0 }), []string{"2001:db8:100::/56"}, dhcpv6.MessageTypeRenew},
		{"nothing of it", grant{}, []string{"2001:db8:100::/56"}, dhcpv6.MessageTypeRenew},
		{"no IA", grant{noIA: true}, []string{"2001:db8:100::/56"}, dhcpv6.MessageTypeRenew},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t, dhcp6.Config{})
			b.bind(good)
			b.pass(30 * time.Minute)
			b.answer(dhcpv6.MessageTypeReply, test.reply)
			b.has(test.now...)
			sent := len(b.sent)
			b.pass(b.Next().Sub(b.now))
			if len(b.sent) == sent {
				b.pass(b.Next().Sub(b.now))
			}
			b.last(test.next)
		})
	}
}

// A lease that is lost is replaced; what was before goes when the new one comes, not sooner.
func TestReplace(t *testing.T) {
	b := newBench(t, dhcp6.Config{})
	b.bind(good)
	b.Down()
	b.pass(5 * time.Minute)
	b.has("2001:db8:100::/56")
	b.up()
	if got := hint(b.last(dhcpv6.MessageTypeSolicit)); got != "2001:db8:100::/56" {
		t.Errorf("the next session asks for %q", got)
	}
	g := good
	g.prefixes = []netip.Prefix{prefix("2001:db8:200::/56")}
	b.answer(dhcpv6.MessageTypeAdvertise, g)
	b.has("2001:db8:100::/56")
	b.pass(time.Second)
	b.answer(dhcpv6.MessageTypeReply, g)
	b.has("2001:db8:200::/56")
}

// While the link is down, nothing is sent, and the lease ends in time.
func TestDown(t *testing.T) {
	b := newBench(t, dhcp6.Config{})
	b.bind(good)
	b.Down()
	sent := len(b.sent)
	b.pass(2 * time.Hour)
	b.has()
	if len(b.sent) != sent {
		t.Errorf("%d messages into a link that is down", len(b.sent)-sent)
	}
}

// Another process goes on with a lease, and says nothing before it has to.
func TestResume(t *testing.T) {
	first := newBench(t, dhcp6.Config{})
	first.bind(good)
	lease := first.Lease()
	b := newBench(t, dhcp6.Config{Lease: &lease})
	b.now = t0.Add(10 * time.Minute)
	b.Up(true, b.now)
	b.take()
	b.has("2001:db8:100::/56")
	if len(b.sent) != 0 {
		t.Errorf("sent %v", b.sent)
	}
	b.pass(25 * time.Minute)
	b.last(dhcpv6.MessageTypeRenew)
	late := newBench(t, dhcp6.Config{Lease: &lease})
	late.now = t0.Add(3 * time.Hour)
	late.Up(true, late.now)
	late.take()
	late.has()
	late.last(dhcpv6.MessageTypeSolicit)
}

// Messages for others, late ones and a Reconfigure change nothing.
func TestNotOurs(t *testing.T) {
	b := newBench(t, dhcp6.Config{})
	b.up()
	m := &dhcpv6.Message{MessageType: dhcpv6.MessageTypeAdvertise, TransactionID: dhcpv6.TransactionID{1, 2, 3}}
	b.Receive(m.ToBytes(), b.now)
	b.answer(dhcpv6.MessageTypeReply, good) // without Rapid Commit
	b.pass(time.Second)
	b.last(dhcpv6.MessageTypeSolicit)
	b.has()
	b.answer(dhcpv6.MessageTypeAdvertise, good)
	b.answer(dhcpv6.MessageTypeReply, good)
	sent := len(b.sent)
	b.answer(dhcpv6.MessageTypeReply, good)
	b.answer(dhcpv6.MessageTypeReconfigure, grant{more: []dhcpv6.Option{&dhcpv6.OptionGeneric{OptionCode: dhcpv6.OptionReconfMessage, OptionData: []byte{5}}}})
	if len(b.sent) != sent || !strings.Contains(strings.Join(b.notes, "\n"), "not authenticated") {
		t.Errorf("messages %v, notes %q", b.sent[sent:], b.notes)
	}
}
