package pcp

import (
	"context"
	"encoding/hex"
	"log/slog"
	"net/netip"
	"strings"
	"testing"

	"weir/internal/portmap/mapping"
)

// newServer returns a server with an address, whose mappings began 16 seconds ago.
func newServer() (*Server, *mapping.Table) {
	t := &mapping.Table{
		Limits: mapping.Limits{All: 10, Host: 3}, Allowed: mapping.DefaultPermissions().Allow,
		Own: func(_ mapping.Protocol, port uint16) bool { return port == 7000 },
	}
	lan, lan6 := netip.MustParsePrefix("192.168.1.0/24"), netip.MustParsePrefix("fd00:1::/64")
	return &Server{
		Change:   func(_ context.Context, do func(*mapping.Table) error) error { return do(t) },
		Clock:    func() (int64, uint32) { return 1000, 16 },
		External: func() netip.Addr { return netip.MustParseAddr("203.0.113.2") },
		Local:    func(a netip.Addr) bool { return lan.Contains(a) || lan6.Contains(a) },
		Connection: func(_ mapping.Protocol, host, peer netip.AddrPort) (netip.AddrPort, uint32, bool) {
			ok := host.Port() == 8090 && peer.Port() == 443
			return netip.MustParseAddrPort("203.0.113.2:60000"), 30, ok
		},
		Shortest: 120, Longest: 86400, Log: slog.New(slog.DiscardHandler),
	}, t
}

var client = netip.MustParseAddr("192.168.1.10")

func unhex(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// expect sends a request and compares the response, both as hexadecimal bytes. In the
// response ".." is any byte.
func expect(t *testing.T, s *Server, from netip.Addr, request, want string) {
	t.Helper()
	got := hex.EncodeToString(s.Answer(t.Context(), unhex(t, request), from))
	want = strings.ReplaceAll(want, " ", "")
	ok := len(got) == len(want)
	for i := 0; ok && i < len(want); i++ {
		ok = want[i] == '.' || want[i] == got[i]
	}
	if !ok {
		t.Errorf("%s\n is answered by %s\n         want %s", request, got, want)
	}
}

// The layouts of RFC 6886, 3.2 to 3.5.
func TestNATPMP(t *testing.T) {
	s, table := newServer()
	expect(t, s, client, "00 00", "00 80 0000 00000010 cb007102")
	expect(t, s, client, "00 02 0000 1f90 2328 00000e10", "00 82 0000 00000010 1f90 2328 00000e10") // TCP 8080 as 9000, an hour
	expect(t, s, client, "00 02 0000 1f90 2329 00000e10", "00 82 0000 00000010 1f90 2328 00000e10") // a renewal keeps the port
	expect(t, s, client, "00 01 0000 1f90 2328 ffffffff", "00 81 0000 00000010 1f90 2328 00015180") // UDP; a day is the longest
	expect(t, s, netip.MustParseAddr("192.168.1.11"), "00 01 0000 1f90 2328 00000e10", "00 81 0000 00000010 1f90 1f90 00000e10")
	expect(t, s, client, "00 02 0000 0016 08ae 00000e10", "00 82 0002 00000010 0016 0000 00000000") // not authorized: port 22
	expect(t, s, client, "00 02 0000 0000 08ae 00000e10", "00 82 0002 00000010 0000 0000 00000000") // all ports
	expect(t, s, client, "00 01 0000 1f91 0000 00000e10", "00 81 0000 00000010 1f91 1f91 00000e10")
	expect(t, s, client, "00 01 0000 1f92 0000 00000e10", "00 81 0004 00000010 1f92 0000 00000000") // the quota
	expect(t, s, client, "00 01 0000 0000 0000 00000000", "00 81 0000 00000010 0000 0000 00000000") // delete all of UDP
	if n := len(table.All()); n != 2 {
		t.Errorf("after all of UDP was deleted: %v", table.All())
	}
	expect(t, s, client, "00 02 0000 1f90 0000 00000000", "00 82 0000 00000010 1f90 0000 00000000")
	expect(t, s, client, "00 02 0000 1f90 0000 00000000", "00 82 0000 00000010 1f90 0000 00000000") // none is no error
	expect(t, s, client, "00 03", "00 83 0005 00000010")                                            // unknown opcode
	for _, none := range []string{"", "00", "00 80", "00 82 0000 00000010 1f90 2328 00000e10", "00 01 0000", "02 81 00 00"} {
		expect(t, s, client, none, "")
	}
	expect(t, s, netip.MustParseAddr("198.51.100.1"), "00 00", "") // not of the LAN
	s.External = func() netip.Addr { return netip.Addr{} }
	expect(t, s, client, "00 00", "00 80 0003 00000010 00000000")
	expect(t, s, client, "00 02 0000 1f90 2328 00000e10", "00 82 0003 00000010 1f90 0000 00000000")
}

const (
	v4client = "00000000 00000000 0000ffff c0a8010a"
	v4any    = "00000000 00000000 0000ffff 00000000"
	v4ours   = "00000000 00000000 0000ffff cb007102"
	nonce    = "0102030405060708090a0b0c"
	tcp      = "06 000000"
	none12   = "000000000000000000000000"
)

// head is that of a response: result, lifetime.
func head(result, lifetime string) string {
	return "02 81 00 " + result + lifetime + "00000010" + none12
}

// The layouts of RFC 6887, 7 and 11.
func TestMAP(t *testing.T) {
	s, table := newServer()
	request := "02 01 0000 00000e10" + v4client
	mapped := nonce + tcp + "1f90 2328" + v4ours
	expect(t, s, client, request+nonce+tcp+"1f90 2328"+v4any, head("00", "00000e10")+mapped)
	if m, ok := table.At(mapping.TCP, 9000); !ok || m.Leases[mapping.PCP].Ends != 1000+3600 {
		t.Errorf("the mapping is %+v", m)
	}
	// The shortest and the longest time.
	expect(t, s, client, "02 01 0000 00000001"+v4client+nonce+tcp+"1f90 0000"+v4any, head("00", "00000078")+mapped)
	expect(t, s, client, "02 01 0000 ffffffff"+v4client+nonce+tcp+"1f90 0000"+v4any, head("00", "00015180")+mapped)
	// Another nonce; a port that the box uses.
	other := "ff" + nonce[2:]
	for _, lifetime := range []string{"00000e10", "00000000"} {
		r := "02 01 0000 " + lifetime + v4client + other + tcp + "1f90 2328" + v4any
		expect(t, s, client, r, head("02", "00000708")+other+tcp+"1f90 2328"+v4any)
	}
	expect(t, s, client, request+nonce+tcp+"1f91 1b58"+v4any, head("00", "00000e10")+nonce+tcp+"1f91 1f91"+v4ours)
	// The end. It is a success, also if there is none.
	for range 2 {
		expect(t, s, client, "02 01 0000 00000000"+v4client+nonce+tcp+"1f90 0000"+v4any, head("00", "00000000")+nonce+tcp+"1f90 0000"+v4any)
	}
	expect(t, s, client, "02 01 0000 00000000"+v4client+nonce+"00 000000 0000 0000"+v4any, head("00", "00000000")+nonce+"00 000000 0000 0000"+v4any)
	if all := table.All(); len(all) != 0 {
		t.Errorf("mappings are left: %v", all)
	}
}

// What is refused, and how (RFC 6887, 7.4, 8.2, 11.3).
func TestMAPRefused(t *testing.T) {
	s, _ := newServer()
	request := "02 01 0000 00000e10" + v4client
	refused := func(result, lifetime, request, data string) {
		t.Helper()
		expect(t, s, client, request+data, head(result, lifetime)+data)
	}
	refused("09", "00000708", request, nonce+"84 000000 1f90 2328"+v4any) // SCTP
	refused("09", "00000708", request, nonce+"00 000000 0000 0000"+v4any) // all protocols
	refused("09", "00000708", request, nonce+tcp+"0000 0000"+v4any)       // all ports
	refused("03", "00000708", request, nonce+"00 000000 1f90 0000"+v4any) // a port without protocol
	refused("02", "00000708", request, nonce+tcp+"0016 08ae"+v4any)       // port 22
	refused("03", "00000708", request, nonce+tcp)                         // too short
	refused("0c", "00000708", "02 01 0000 00000e10 00000000 00000000 0000ffff c0a8010b", nonce+tcp+"1f90 2328"+v4any)
	refused("05", "00000708", request, nonce+tcp+"1f90 2328"+v4any+"04 00 0000")                                                // an option that nobody knows
	refused("05", "00000708", request, nonce+tcp+"1f90 2328"+v4any+"01 00 0010 00000000 00000000 0000ffff c0a8010b")            // THIRD_PARTY
	refused("06", "00000708", request, nonce+tcp+"1f90 2328"+v4any+"02 00 0004 00000000")                                       // PREFER_FAILURE has no data
	refused("06", "00000708", request, nonce+tcp+"1f90 2328"+v4any+"02 00 0000 02 00 0000")                                     // twice
	refused("06", "00000708", request, nonce+tcp+"1f90 2328"+v4any+"02 00 0008 00000000")                                       // longer than the message
	refused("06", "00000708", request, nonce+tcp+"1f90 2328"+v4any+"03 00 0014 00 5f 0000"+v4client)                            // a prefix of IPv4 below 96
	refused("0d", "00000708", request, nonce+tcp+"1f90 2328"+v4any+"03 00 0014 00 80 0000 20010db8 00000000 00000000 00000001") // a filter of another family
	refused("0b", "0000001e", request, nonce+tcp+"1f90 1b58"+v4any+"02 00 0000")                                                // PREFER_FAILURE, taken
	refused("0b", "0000001e", request, nonce+tcp+"1f90 2328 00000000 00000000 0000ffff cb007163"+"02 00 0000")                  // another address
	expect(t, s, client, "02 02 0000 00000e10"+v4client, "02 82 00 03 00000708 00000010"+none12)                                // PEER, too short
	expect(t, s, client, "02 03 0000 00000e10"+v4client, "02 83 00 04 00000708 00000010"+none12)                                // unknown opcode
	expect(t, s, client, "01 01 0000 00000e10"+v4client, "02 81 00 01 00000708 00000010"+none12)                                // version 1
	expect(t, s, client, "03 00", "02 80 00 01 00000708 00000010"+none12)                                                       // version 3
	expect(t, s, client, "02 00", "02 80 00 03 00000708 00000010"+none12)                                                       // too short
	expect(t, s, client, "02 00 0000 00000000"+v4client, "02 80 00 00 00000000 00000010"+none12)                                // ANNOUNCE
	s.External = func() netip.Addr { return netip.Addr{} }
	refused("07", "0000001e", request, nonce+tcp+"1f90 2328"+v4any)
}

// Options are repeated in the response if they were processed (RFC 6887, 8.2, 13).
func TestOptions(t *testing.T) {
	s, table := newServer()
	request := "02 01 0000 00000e10" + v4client
	data, mapped := nonce+tcp+"1f90 2328"+v4any, nonce+tcp+"1f90 2328"+v4ours
	filter := "03 00 0014 00 78 0035 00000000 00000000 0000ffff c6336401"
	expect(t, s, client, request+data+"80 00 0001 ff000000"+filter+"02 00 0000", head("00", "00000e10")+mapped+filter+"02 00 0000")
	sources := func(want ...string) {
		t.Helper()
		m, _ := table.At(mapping.TCP, 9000)
		var got []string
		for _, f := range m.Filters {
			got = append(got, netip.PrefixFrom(f.From.Addr(), f.From.Bits()).String())
		}
		if strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("filters %v, want %v", got, want)
		}
	}
	sources("198.51.100.0/24")
	expect(t, s, client, request+data, head("00", "00000e10")+mapped) // a renewal keeps them
	sources("198.51.100.0/24")
	second := "03 00 0014 00 80 0000 00000000 00000000 0000ffff 08080808"
	expect(t, s, client, request+data+second, head("00", "00000e10")+mapped+second)
	sources("198.51.100.0/24", "8.8.8.8/32")
	clear := "03 00 0014 00 00 0000" + v4any
	expect(t, s, client, request+data+clear+second, head("00", "00000e10")+mapped+clear+second)
	sources("8.8.8.8/32")
	expect(t, s, client, request+data+clear, head("00", "00000e10")+mapped+clear)
	sources()

	s.Others = true
	third := "01 00 0010 00000000 00000000 0000ffff c0a8010b"
	expect(t, s, client, request+nonce+tcp+"1f91 2329"+v4any+third, head("00", "00000e10")+nonce+tcp+"1f91 2329"+v4ours+third)
	if m, _ := table.At(mapping.TCP, 9001); m.Internal.String() != "192.168.1.11:8081" {
		t.Errorf("mapped for another: %+v", m)
	}
	self := "01 00 0010" + v4client
	expect(t, s, client, request+nonce+tcp+"1f91 2329"+v4any+self, head("03", "00000708")+nonce+tcp+"1f91 2329"+v4any+self)
	outside := "01 00 0010 00000000 00000000 0000ffff 08080808"
	expect(t, s, client, request+nonce+tcp+"1f91 2329"+v4any+outside, head("02", "00000708")+nonce+tcp+"1f91 2329"+v4any+outside)
}

// PEER tells how the other end of a connection sees the host (RFC 6887, 12).
func TestPEER(t *testing.T) {
	s, table := newServer()
	request, answer := "02 02 0000 00000e10"+v4client, func(result, lifetime string) string {
		return strings.Replace(head(result, lifetime), "02 81", "02 82", 1)
	}
	const peer, other = "01bb 0000 00000000 00000000 0000ffff c6336409", "01bb 0000 00000000 00000000 0000ffff c633640a"
	sources := func(want ...string) {
		t.Helper()
		m, _ := table.At(mapping.TCP, 9000)
		var got []string
		for _, f := range m.Filters {
			got = append(got, f.String())
		}
		if strings.Join(got, ", ") != strings.Join(want, ", ") {
			t.Errorf("filters %q, want %q", got, want)
		}
	}
	// a connection that exists: its port, for as long as it lives without packets
	expect(t, s, client, request+nonce+tcp+"1f9a 2328"+v4any+peer, answer("00", "0000001e")+nonce+tcp+"1f9a ea60"+v4ours+peer)
	if all := table.All(); len(all) != 0 {
		t.Errorf("a mapping was made for a connection: %v", all)
	}
	// none: the port that the next connection will have, open for this peer alone, then for another
	mapped := nonce + tcp + "1f90 2328"
	expect(t, s, client, request+mapped+v4any+peer, answer("00", "00000e10")+mapped+v4ours+peer)
	sources("198.51.100.9/32 port 443")
	expect(t, s, client, "02 02 0000 00000001"+v4client+nonce+tcp+"1f90 0000"+v4any+other, answer("00", "00000e10")+mapped+v4ours+other)
	sources("198.51.100.9/32 port 443", "198.51.100.10/32 port 443")
	// somebody else asks about it, and changes nothing
	strange := "ff" + nonce[2:]
	expect(t, s, client, "02 02 0000 ffffffff"+v4client+strange+tcp+"1f90 0000"+v4any+peer, answer("00", "00000e10")+strange+tcp+"1f90 2328"+v4ours+peer)
	// MAP opens it for all; PEER does not close it again
	expect(t, s, client, "02 01 0000 00000e10"+v4client+mapped+v4any, head("00", "00000e10")+mapped+v4ours)
	sources()
	expect(t, s, client, request+mapped+v4any+peer, answer("00", "00000e10")+mapped+v4ours+peer)
	sources()
	for _, refused := range []struct{ result, data string }{
		{"03", nonce + tcp + "0000 2328" + v4any + peer},
		{"03", nonce + tcp + "1f91 2328" + v4any + "0000 0000" + peer[9:]},
		{"03", nonce + tcp + "1f91 2328" + v4any + "01bb 0000" + "20010db8 00000000 00000000 00000001"},
		{"09", nonce + "84 000000 1f91 2328" + v4any + peer},
		{"05", nonce + tcp + "1f91 2328" + v4any + peer + "02 00 0000"},
	} {
		expect(t, s, client, request+refused.data, answer(refused.result, "00000708")+refused.data)
	}
}

// A port of an IPv6 host is opened, not translated.
func TestMAP6(t *testing.T) {
	s, table := newServer()
	host := netip.MustParseAddr("fd00:1::10")
	address := "fd000001 00000000 00000000 00000010"
	zero := "00000000 00000000 00000000 00000000"
	expect(t, s, host, "02 01 0000 00000e10"+address+nonce+tcp+"1f90 2328"+zero, head("00", "00000e10")+nonce+tcp+"1f90 1f90"+address)
	if all := table.All(); len(all) != 1 || all[0].External != 8080 || all[0].Internal != netip.AddrPortFrom(host, 8080) {
		t.Errorf("mapped %+v", all)
	}
	data := nonce + tcp + "1f91 2328" + zero + "02 00 0000"
	expect(t, s, host, "02 01 0000 00000e10"+address+data, head("0b", "0000001e")+data)
	expect(t, s, host, "00 00", "") // NAT-PMP is IPv4
}

// Whatever arrives, nothing panics, no answer is too long, and none is one that a server
// would answer.
func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{"00 00", "00 02 0000 1f90 2328 00000e10", "02 01 0000 00000e10" + v4client + nonce + tcp + "1f90 2328" + v4any + "03 00 0014 00 78 0035" + v4client + "02 00 0000 80 00 0001 ff000000", "02 02 0000 00000e10" + v4client + nonce + tcp + "1f90 2328" + v4any + "01bb 0000" + v4ours} {
		f.Add(unhex(f, seed))
	}
	f.Fuzz(func(t *testing.T, request []byte) {
		s, table := newServer()
		s.Others = true
		b := s.Answer(t.Context(), request, client)
		if len(b) > MostBytes || len(b) > 0 && (b[1]&response == 0 || len(b)%4 != 0) {
			t.Errorf("%x is answered by %x", request, b)
		}
		for _, m := range table.All() {
			if !s.Local(m.Internal.Addr()) {
				t.Errorf("%x has mapped %+v", request, m)
			}
		}
	})
}
