package model

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"weir/internal/fw/reason"
	"weir/internal/fw/state"
	"weir/pf/ast"
	"weir/pf/resolve"
)

// The box of these tests:
//
//	lan 2: 192.168.1.1/24, fd00:1::1/64      wan 3: 203.0.113.5/24, 2001:db8:5::5/64
//	192.168.1.0/24 --- lan [box] wan --- everything else; 198.18.0.0/15 is unreachable
const (
	loIndex, lanIndex, wanIndex = 1, 2, 3

	boxMAC  = "\x02\x00\x00\x00\x00\x01"
	hostMAC = "\x02\x00\x00\x00\x00\x99"
	nextMAC = "\x02\x00\x00\x00\x00\x77"
)

var (
	client  = addr("192.168.1.10")
	server  = addr("198.51.100.7")
	gateway = addr("203.0.113.5")
	inside  = addr("192.168.1.20")
	client6 = addr("fd00:1::10")
	server6 = addr("2001:db8:7::7")
)

func addr(s string) netip.Addr     { return netip.MustParseAddr(s) }
func prefix(s string) netip.Prefix { return netip.MustParsePrefix(s) }

func testBox() *Box {
	return &Box{
		Interfaces: []Interface{
			{Index: loIndex, Name: "lo", Loopback: true, Groups: []string{"lo"},
				Addresses: []netip.Prefix{prefix("127.0.0.1/8"), prefix("::1/128")}},
			{Index: lanIndex, Name: "lan", MAC: [6]byte([]byte(boxMAC)), XDPTarget: true, Static4: true, Static6: true,
				Addresses: []netip.Prefix{prefix("192.168.1.1/24"), prefix("fd00:1::1/64"), prefix("fe80::1/64")}},
			{Index: wanIndex, Name: "wan", MAC: [6]byte([]byte(boxMAC)), XDPTarget: true, Groups: []string{"egress"},
				Addresses: []netip.Prefix{prefix("203.0.113.5/24"), prefix("2001:db8:5::5/64"), prefix("fe80::1/64")}},
		},
		Route: testRoute,
	}
}

func testRoute(dst netip.Addr) Route {
	r := Route{Interface: wanIndex, MTU: 1500, Neighbour: true, Dst: [6]byte([]byte(nextMAC)), Src: [6]byte([]byte(boxMAC))}
	switch {
	case prefix("198.18.0.0/15").Contains(dst):
		return Route{Kind: RouteNone}
	case prefix("192.168.1.0/24").Contains(dst), prefix("fd00:1::/64").Contains(dst):
		r.Interface = lanIndex
	case dst == addr("203.0.113.99"):
		r.Neighbour = false
	}
	return r
}

// world is a model with the helpers of a test.
type world struct {
	*Model
	t *testing.T
}

func newWorld(t *testing.T, rules ...*resolve.Rule) *world {
	t.Helper()
	set := &resolve.Ruleset{Rules: rules, Options: resolve.Options{
		MaxStates: 100, ImplicitPass: true,
		Timeouts: resolve.Timeouts{
			TCPFirst: 120, TCPOpening: 30, TCPEstablished: 86400, TCPClosing: 900, TCPFinWait: 45, TCPClosed: 90,
			UDPFirst: 60, UDPSingle: 30, UDPMultiple: 60, ICMPFirst: 20, ICMPError: 10,
			OtherFirst: 60, OtherSingle: 30, OtherMultiple: 60, Frag: 60,
		},
	}}
	for i, r := range rules {
		r.Nr = i
		if r.Interface.Name == "" {
			r.Interface.Any = true
		}
	}
	return &world{New(testBox(), set, 0), t}
}

func pass() *resolve.Rule  { return &resolve.Rule{Action: ast.Pass} }
func block() *resolve.Rule { return &resolve.Rule{Action: ast.Block, State: resolve.NoState} }

func natTo(a string) *resolve.Rule {
	return &resolve.Rule{Action: ast.Match, Direction: ast.Out, Interface: resolve.Interface{Name: "wan"},
		State: resolve.NoState, Nat: &resolve.Translation{Addrs: pool(a)}}
}

func rdrTo(to, a string, port uint16) *resolve.Rule {
	return &resolve.Rule{Action: ast.Match, Direction: ast.In, To: resolve.Endpoint{Addr: host(to)},
		State: resolve.NoState, Rdr: &resolve.Translation{Addrs: pool(a), PortLow: port}}
}

func pool(a string) []resolve.Address { return []resolve.Address{host(a)} }

func host(a string) resolve.Address {
	p, err := netip.ParsePrefix(a)
	if err != nil {
		p = netip.PrefixFrom(addr(a), addr(a).BitLen())
	}
	return resolve.Address{Kind: resolve.PrefixAddress, Prefix: p}
}

// frame builds an Ethernet frame to the box from layers, the IP layer first, with right
// sums and lengths.
func frame(t *testing.T, ls ...gopacket.SerializableLayer) []byte {
	t.Helper()
	eth := &layers.Ethernet{DstMAC: []byte(boxMAC), SrcMAC: []byte(hostMAC), EthernetType: layers.EthernetTypeIPv4}
	for i, l := range ls {
		switch l := l.(type) {
		case *layers.IPv6:
			if i == 0 {
				eth.EthernetType = layers.EthernetTypeIPv6
			}
			setNetwork(t, ls[i+1:], l)
		case *layers.IPv4:
			setNetwork(t, ls[i+1:], l)
		}
	}
	b := gopacket.NewSerializeBuffer()
	err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true},
		append([]gopacket.SerializableLayer{eth}, ls...)...)
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func setNetwork(t *testing.T, ls []gopacket.SerializableLayer, ip gopacket.NetworkLayer) {
	t.Helper()
	for _, l := range ls {
		if l, ok := l.(interface {
			SetNetworkLayerForChecksum(gopacket.NetworkLayer) error
		}); ok {
			if err := l.SetNetworkLayerForChecksum(ip); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// ip returns an IP layer; proto follows it.
func ip(src, dst netip.Addr, proto layers.IPProtocol) gopacket.SerializableLayer {
	if src.Is4() {
		return &layers.IPv4{Version: 4, TTL: 64, SrcIP: src.AsSlice(), DstIP: dst.AsSlice(), Protocol: proto}
	}
	return &layers.IPv6{Version: 6, HopLimit: 64, SrcIP: src.AsSlice(), DstIP: dst.AsSlice(), NextHeader: proto}
}

func udp(t *testing.T, src netip.Addr, sport uint16, dst netip.Addr, dport uint16, data string) []byte {
	t.Helper()
	return frame(t, ip(src, dst, layers.IPProtocolUDP),
		&layers.UDP{SrcPort: layers.UDPPort(sport), DstPort: layers.UDPPort(dport)}, gopacket.Payload(data))
}

func echo(t *testing.T, src, dst netip.Addr, kind uint8, id uint16) []byte {
	t.Helper()
	if src.Is4() {
		return frame(t, ip(src, dst, layers.IPProtocolICMPv4),
			&layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(kind, 0), Id: id, Seq: 1}, gopacket.Payload("ping"))
	}
	return frame(t, ip(src, dst, layers.IPProtocolICMPv6),
		&layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(kind, 0)},
		&layers.ICMPv6Echo{Identifier: id, SeqNumber: 1}, gopacket.Payload("ping"))
}

// in shows a frame at an interface's ingress and expects a verdict and a reason.
func (w *world) in(index uint32, b []byte, v Verdict, r reason.Reason) []byte {
	w.t.Helper()
	return w.handle(&Frame{Hook: XDP, Interface: index, Bytes: b}, v, r).Frame
}

// own shows a frame of the box itself at an interface's egress.
func (w *world) own(index uint32, b []byte, v Verdict, r reason.Reason) []byte {
	w.t.Helper()
	return w.handle(&Frame{Hook: TCXEgress, Interface: index, Bytes: b}, v, r).Frame
}

func (w *world) handle(f *Frame, v Verdict, r reason.Reason) Outcome {
	w.t.Helper()
	o := w.Handle(f, nil)
	if o.Verdict != v || o.Reason != r {
		w.t.Fatalf("verdict %d (%s), want %d (%s)", o.Verdict, o.Reason, v, r)
	}
	if v != Drop {
		w.checkSums(o.Frame)
	}
	return o
}

// checkSums expects every sum of a frame to be right, by gopacket.
func (w *world) checkSums(b []byte) {
	w.t.Helper()
	p := gopacket.NewPacket(b, layers.LayerTypeEthernet, gopacket.Default)
	for _, l := range p.Layers() {
		if l, ok := l.(interface {
			SetNetworkLayerForChecksum(gopacket.NetworkLayer) error
		}); ok {
			if err := l.SetNetworkLayerForChecksum(p.NetworkLayer()); err != nil {
				w.t.Fatal(err)
			}
		}
	}
	if err, bad := p.VerifyChecksums(); err != nil || len(bad) > 0 {
		w.t.Fatalf("checksums: %v %+v\n%v", err, bad, p)
	}
}

// ends expects the addresses and ports of a frame.
func (w *world) ends(b []byte, src netip.Addr, sport uint16, dst netip.Addr, dport uint16) {
	w.t.Helper()
	p, why := parse(&Frame{Hook: TCXEgress, Interface: wanIndex, Bytes: b}, w.box.byIndex(wanIndex), w.box, nil)
	if why != nil {
		w.t.Fatalf("the frame that goes on does not parse: %s", *why)
	}
	want := state.Tuple{Src: src, SPort: sport, Dst: dst, DPort: dport, Proto: p.tuple.Proto}
	if diff := cmp.Diff(want, p.tuple, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
		w.t.Fatalf("tuple (-want +got):\n%s", diff)
	}
}

// only returns the one live state.
func (w *world) only() state.State {
	w.t.Helper()
	states := w.States()
	if len(states) != 1 {
		w.t.Fatalf("%d states, want 1: %+v", len(states), states)
	}
	return states[0]
}

func (w *world) phase(want state.Phase) {
	w.t.Helper()
	if got := w.only().Phase; got != want {
		w.t.Fatalf("phase %s, want %s", got, want)
	}
}
