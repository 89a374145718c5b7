package pktrecord

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"weir/internal/fw/reason"
)

func serialize(t *testing.T, all ...gopacket.SerializableLayer) []byte {
	t.Helper()
	b := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, all...); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func ether(kind layers.EthernetType) *layers.Ethernet {
	return &layers.Ethernet{SrcMAC: net.HardwareAddr{2, 0, 0, 0, 0, 1}, DstMAC: net.HardwareAddr{2, 0, 0, 0, 0, 2}, EthernetType: kind}
}

func ip4(proto layers.IPProtocol) *layers.IPv4 {
	return &layers.IPv4{Version: 4, TTL: 64, Id: 9, Protocol: proto, SrcIP: net.IP{203, 0, 113, 9}, DstIP: net.IP{198, 51, 100, 1}}
}

func ip6(next layers.IPProtocol) *layers.IPv6 {
	return &layers.IPv6{Version: 6, HopLimit: 64, NextHeader: next, SrcIP: net.ParseIP("2001:db8::9"), DstIP: net.ParseIP("2001:db8::1")}
}

func syn(t *testing.T) []byte {
	ip, tcp := ip4(layers.IPProtocolTCP), &layers.TCP{SrcPort: 4242, DstPort: 22, Seq: 7, SYN: true, Window: 64240}
	tcp.SetNetworkLayerForChecksum(ip) //nolint:errcheck // an IPv4 layer is one
	return serialize(t, ether(layers.EthernetTypeIPv4), ip, tcp)
}

// The lines are those of tcpdump -n, if it has one.
func TestSummary(t *testing.T) {
	tcp6, udp6 := ip6(layers.IPProtocolTCP), ip6(layers.IPProtocolUDP)
	data := &layers.TCP{SrcPort: 22, DstPort: 4242, Seq: 100, Ack: 8, ACK: true, PSH: true, Window: 501}
	data.SetNetworkLayerForChecksum(tcp6) //nolint:errcheck // likewise
	datagram := &layers.UDP{SrcPort: 5353, DstPort: 53}
	datagram.SetNetworkLayerForChecksum(udp6) //nolint:errcheck // likewise
	later := ip4(layers.IPProtocolUDP)
	later.FragOffset = 185
	first := ip4(layers.IPProtocolUDP)
	first.Flags = layers.IPv4MoreFragments
	unreachable := append([]byte{3, 4, 0, 0, 0, 0, 0x05, 0x78}, syn(t)[14:14+28]...)
	whole := syn(t)
	bad := bytes.Clone(whole)
	bad[14] = 0x41 // ihl 1
	padded := append(bytes.Clone(whole), make([]byte, 6)...)
	cases := []struct {
		name  string
		frame []byte
		want  string
	}{
		{"syn", whole, "203.0.113.9.4242 > 198.51.100.1.22: Flags [S], seq 7, win 64240, length 0"},
		{"padded", padded, "203.0.113.9.4242 > 198.51.100.1.22: Flags [S], seq 7, win 64240, length 0"},
		{"ip6", serialize(t, ether(layers.EthernetTypeIPv6), tcp6, data, gopacket.Payload("0123456789")), "2001:db8::9.22 > 2001:db8::1.4242: Flags [P.], seq 100:110, ack 8, win 501, length 10"},
		{"udp6", serialize(t, ether(layers.EthernetTypeIPv6), udp6, datagram, gopacket.Payload("hello")), "2001:db8::9.5353 > 2001:db8::1.53: UDP, length 5"},
		{"hop-by-hop", serialize(t, ether(layers.EthernetTypeIPv6), ip6(0), gopacket.Payload([]byte{17, 0, 1, 4, 0, 0, 0, 0, 0, 7, 0, 8, 0, 8, 0, 0})), "2001:db8::9.7 > 2001:db8::1.8: UDP, length 0"},
		{"echo", serialize(t, ether(layers.EthernetTypeIPv4), ip4(layers.IPProtocolICMPv4), &layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(8, 0), Id: 5, Seq: 6}, gopacket.Payload("abcd")), "203.0.113.9 > 198.51.100.1: ICMP echo request, id 5, seq 6, length 12"},
		{"need to frag", serialize(t, ether(layers.EthernetTypeIPv4), ip4(layers.IPProtocolICMPv4), gopacket.Payload(unreachable)), "203.0.113.9 > 198.51.100.1: ICMP unreachable - need to frag (mtu 1400), length 36, about 203.0.113.9.4242 > 198.51.100.1.22: [|tcp]"},
		{"first fragment", serialize(t, ether(layers.EthernetTypeIPv4), first, gopacket.Payload([]byte{0, 7, 0, 8, 0, 24, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8})), "203.0.113.9.7 > 198.51.100.1.8: UDP, length 16 (frag 9@0+)"},
		{"later fragment", serialize(t, ether(layers.EthernetTypeIPv4), later, gopacket.Payload("12345678")), "203.0.113.9 > 198.51.100.1: udp (frag 9@1480), length 8"},
		{"esp", serialize(t, ether(layers.EthernetTypeIPv4), ip4(50), gopacket.Payload("12345678")), "203.0.113.9 > 198.51.100.1: ip-proto-50, length 8"},
		{"arp", serialize(t, ether(layers.EthernetTypeARP), &layers.ARP{AddrType: 1, Protocol: 0x800, HwAddressSize: 6, ProtAddressSize: 4, Operation: 1,
			SourceHwAddress: make([]byte, 6), SourceProtAddress: []byte{10, 0, 0, 2}, DstHwAddress: make([]byte, 6), DstProtAddress: []byte{10, 0, 0, 1}}), "ARP, Request who-has 10.0.0.1 tell 10.0.0.2, length 46"},
		{"vlan", serialize(t, ether(layers.EthernetTypeDot1Q), &layers.Dot1Q{VLANIdentifier: 7, Type: layers.EthernetTypeIPv4}, ip4(50)), "vlan 7, 203.0.113.9 > 198.51.100.1: ip-proto-50, length 0"},
		{"pppoe", serialize(t, ether(0x8864), gopacket.Payload("123456")), "ethertype 0x8864, length 46"},
		{"bad header", bad, "203.0.113.9 > 198.51.100.1: bad header: ihl 1, total length 40"},
		{"cut", whole[:40], "203.0.113.9.4242 > 198.51.100.1.22: [|tcp]"},
	}
	for _, c := range cases {
		if got := Summary(c.frame, false); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
	if got := Summary(whole[14:], true); got != cases[0].want {
		t.Errorf("without Ethernet header: %s", got)
	}
}

// Whatever the bytes are, the line is made without reading past their end.
func FuzzSummary(f *testing.F) {
	f.Add(make([]byte, 64), false)
	f.Add([]byte{0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6}, true)
	f.Fuzz(func(t *testing.T, frame []byte, bare bool) {
		if Summary(frame, bare) == "" {
			t.Error("an empty line")
		}
	})
}

func TestSummaryOfEveryPrefix(t *testing.T) {
	whole := syn(t)
	for n := range whole {
		exact := make([]byte, n)
		copy(exact, whole)
		if Summary(exact, false) == "" || Summary(exact, true) == "" {
			t.Errorf("%d bytes give no line", n)
		}
	}
}

var gatewayRule = Rule{Nr: 12, Text: "block drop in log on wan all", Action: "block", File: "/etc/weir/gateway.conf", Line: 34}

func TestLine(t *testing.T) {
	frame := syn(t)
	const packet = ": 203.0.113.9.4242 > 198.51.100.1.22: Flags [S], seq 7, win 64240, length 0"
	old := gatewayRule
	old.Old = true
	match := Rule{Nr: 3, Action: "match", File: "gateway.conf", Line: 4}
	cases := []struct {
		r    Record
		want string
	}{
		{Record{Kind: Log, Verdict: Drop, Reason: reason.Block, Rule: &gatewayRule}, "rule 12/(match) [gateway.conf:34]: block in on wan"},
		{Record{Kind: Log, Verdict: Drop, Reason: reason.Block, Rule: &old}, "old rule 12/(match) [gateway.conf:34]: block in on wan"},
		{Record{Kind: Log, Verdict: Pass, Reason: reason.Rule, Rule: &match}, "rule 3/(match) [gateway.conf:4]: match in on wan"},
		{Record{Kind: Before}, "as it came: in on wan"},
		{Record{Kind: After, Verdict: Drop, Reason: reason.Malformed}, "rule def/(malformed): block in on wan"},
		{Record{Kind: After, Verdict: Redirect, Reason: reason.Block, Peer: "wan", Rule: &gatewayRule}, "rule 12/(match) [gateway.conf:34]: block in on wan, answered"},
		{Record{Kind: After, Verdict: Drop, Reason: reason.Queue, Rule: &match, Queue: "bulk", QueueOn: "wan0", QueueWhy: "young"}, "rule 3/(queue) [gateway.conf:4]: block in on wan, queue: class bulk on wan0: young"},
		{Record{Kind: After, Verdict: Drop, Reason: reason.Queue, Rule: &match}, "rule 3/(queue) [gateway.conf:4]: block in on wan"},
		{Record{Kind: After, Verdict: Up, Reason: reason.Local}, "rule def/(local): pass in on wan, to the stack"},
		{Record{Kind: After, Verdict: Redirect, Reason: reason.State, Peer: "lan", Rule: &match}, "rule 3/(state) [gateway.conf:4]: pass in on wan, out on lan"},
	}
	for _, c := range cases {
		c.r.Time = time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.Local)
		c.r.Interface, c.r.Direction, c.r.Data = "wan", "in", frame
		if want := "03:04:05.678901 " + c.want + packet; c.r.Line() != want {
			t.Errorf("\n got %s\nwant %s", c.r.Line(), want)
		}
	}
}

// Another library reads the file back, with names, times and comments.
func TestWriter(t *testing.T) {
	frame, at := syn(t), time.Unix(1700000000, 123456789).UTC()
	all := []Record{
		{Time: at, Kind: Before, Interface: "lan", Direction: "in", Data: frame, Length: len(frame)},
		{Time: at, Kind: After, Interface: "lan", Direction: "in", Peer: "wan", Verdict: Redirect, Reason: reason.State, Rule: &gatewayRule, Data: frame[:30], Length: len(frame)},
		{Time: at, Kind: After, Interface: "tun0", Direction: "in", Verdict: Drop, Reason: reason.Short, L3: true, Data: frame[14:], Length: len(frame) - 14},
	}
	var file bytes.Buffer
	w, err := NewWriter(&file, &Form{Snap: 4096, Application: "weir 1", Interfaces: []string{"lan", "lo"}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		if err := w.Write(&all[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(3); err != nil {
		t.Fatal(err)
	}
	type packet struct {
		Interface, Comment string
		Bytes, Length      int
		Direction          pcapgo.NgEpbFlag
	}
	r, err := pcapgo.NewNgReader(&file, pcapgo.DefaultNgReaderOptions)
	if err != nil {
		t.Fatal(err)
	}
	var got []packet
	for {
		data, ci, o, err := r.ReadPacketDataWithOptions()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if !ci.Timestamp.Equal(at) {
			t.Errorf("packet at %v, want %v", ci.Timestamp, at)
		}
		i, err := r.Interface(ci.InterfaceIndex)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, packet{i.Name, o.Comments[0], len(data), ci.Length, o.Flags.Direction})
		if kind := binary.BigEndian.Uint16(data[12:]); kind != etherIP4 {
			t.Errorf("a frame of type %#x", kind)
		}
	}
	want := []packet{
		{"lan", "as it came: in on lan", len(frame), len(frame), pcapgo.NgEpbFlagDirectionInbound},
		{"wan", "rule 12/(state) [gateway.conf:34]: pass in on lan, out on wan", 30, len(frame), pcapgo.NgEpbFlagDirectionOutbound},
		{"tun0", "rule def/(short): block in on tun0", len(frame), len(frame), pcapgo.NgEpbFlagDirectionInbound},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("read again (-want +got):\n%s", diff)
	}
}
