package model

import (
	"testing"

	"github.com/gopacket/gopacket/layers"

	"weir/internal/fw/reason"
	"weir/internal/fw/state"
	"weir/pf/resolve"
)

func TestSourceTranslation(t *testing.T) {
	w := newWorld(t, natTo("203.0.113.5"), pass())
	b := w.in(lanIndex, udp(t, client, 4000, server, 53, "q"), Redirect, reason.Rule)
	w.ends(b, gateway, 50001, server, 53)
	b = w.in(wanIndex, udp(t, server, 53, gateway, 50001, "a"), Redirect, reason.State)
	w.ends(b, server, 53, client, 4000)
	// the next connection to the same destination gets the next port
	b = w.in(lanIndex, udp(t, inside, 4000, server, 53, "q"), Redirect, reason.Rule)
	w.ends(b, gateway, 50002, server, 53)
	// another destination may share the port
	b = w.in(lanIndex, udp(t, inside, 4000, server, 54, "q"), Redirect, reason.Rule)
	w.ends(b, gateway, 50001, server, 54)
	w.in(wanIndex, udp(t, server, 55, gateway, 50001, "stranger"), Up, reason.Local)
}

func TestSourceTranslation6(t *testing.T) {
	w := newWorld(t, natTo("2001:db8:5::5"), pass())
	b := w.in(lanIndex, udp(t, client6, 4000, server6, 53, "q"), Redirect, reason.Rule)
	w.ends(b, addr("2001:db8:5::5"), 50001, server6, 53)
	b = w.in(wanIndex, udp(t, server6, 53, addr("2001:db8:5::5"), 50001, "a"), Redirect, reason.State)
	w.ends(b, server6, 53, client6, 4000)
	// the rule's family is not the packet's: it does not match
	b = w.in(lanIndex, udp(t, client, 4000, server, 53, "q"), Redirect, reason.Rule)
	w.ends(b, client, 4000, server, 53)
}

func TestPing(t *testing.T) {
	w := newWorld(t, natTo("203.0.113.5"), natTo("2001:db8:5::5"), pass())
	b := w.in(lanIndex, echo(t, client, server, 8, 7), Redirect, reason.Rule)
	w.ends(b, gateway, 50001, server, 8)
	b = w.in(wanIndex, echo(t, server, gateway, 0, 50001), Redirect, reason.State)
	w.ends(b, server, 8, client, 7)
	b = w.in(lanIndex, echo(t, client6, server6, 128, 7), Redirect, reason.Rule)
	w.ends(b, addr("2001:db8:5::5"), 50001, server6, 128)
	b = w.in(wanIndex, echo(t, server6, addr("2001:db8:5::5"), 129, 50001), Redirect, reason.State)
	w.ends(b, server6, 128, client6, 7)
}

// Other protocols have an address only.
func TestProtocolWithoutPorts(t *testing.T) {
	w := newWorld(t, natTo("203.0.113.5"), pass())
	gre := func(src, dst string) []byte { return frame(t, ip(addr(src), addr(dst), layers.IPProtocolGRE)) }
	b := w.in(lanIndex, gre("192.168.1.10", "198.51.100.7"), Redirect, reason.Rule)
	w.ends(b, gateway, 0, server, 0)
	w.in(lanIndex, gre("192.168.1.20", "198.51.100.7"), Drop, reason.TupleTaken)
	b = w.in(wanIndex, gre("198.51.100.7", "203.0.113.5"), Redirect, reason.State)
	w.ends(b, server, 0, client, 0)
}

func TestPortRange(t *testing.T) {
	nat := natTo("203.0.113.5")
	nat.Nat.PortLow, nat.Nat.PortHigh = 1000, 1001
	w := newWorld(t, nat, pass())
	for _, port := range []uint16{1000, 1001} {
		b := w.in(lanIndex, udp(t, client, 3000+port, server, 53, "q"), Redirect, reason.Rule)
		w.ends(b, gateway, port, server, 53)
	}
	w.in(lanIndex, udp(t, client, 9, server, 53, "q"), Drop, reason.NATPorts)
	w.SetClock(60 * state.TicksPerSecond) // the owners have expired and yield
	b := w.in(lanIndex, udp(t, client, 9, server, 53, "q"), Redirect, reason.Rule)
	w.ends(b, gateway, 1000, server, 53)
	if len(w.States()) != 2 {
		t.Errorf("states %+v", w.States())
	}
}

func TestStaticPort(t *testing.T) {
	nat := natTo("203.0.113.5")
	nat.Nat.StaticPort = true
	w := newWorld(t, nat, pass())
	b := w.in(lanIndex, udp(t, client, 500, server, 500, "ike"), Redirect, reason.Rule)
	w.ends(b, gateway, 500, server, 500)
	w.in(lanIndex, udp(t, inside, 500, server, 500, "ike"), Drop, reason.TupleTaken)
}

func TestNoAddress(t *testing.T) {
	nat := natTo("203.0.113.5")
	nat.Nat.Addrs = []resolve.Address{{Kind: resolve.InterfaceAddress, Interface: "wan"}}
	w := newWorld(t, nat, pass())
	b := w.in(lanIndex, udp(t, client6, 4000, server6, 53, "q"), Redirect, reason.Rule)
	w.ends(b, addr("2001:db8:5::5"), 50001, server6, 53)
	w.box.Interfaces[2].Addresses = w.box.Interfaces[2].Addresses[2:] // link-local only
	w.in(lanIndex, udp(t, client6, 4001, server6, 53, "q"), Drop, reason.NATAddress)
}

// The box's own connection loses its port to a translated one and gets another.
func TestOwnCollision(t *testing.T) {
	nat := natTo("203.0.113.5")
	nat.From.Addr = host("192.168.1.0/24")
	w := newWorld(t, nat, pass())
	w.in(lanIndex, udp(t, client, 4000, server, 53, "q"), Redirect, reason.Rule)
	b := w.own(wanIndex, udp(t, gateway, 50001, server, 53, "q"), Out, reason.Rule)
	w.ends(b, gateway, 50002, server, 53)
	b = w.in(wanIndex, udp(t, server, 53, gateway, 50002, "a"), Up, reason.Local)
	w.ends(b, server, 53, gateway, 50001)
}

// Packets leave by the interface they came in by, with both ends translated.
func TestHairpin(t *testing.T) {
	nat := natTo("192.168.1.1")
	nat.Interface.Name, nat.To.Addr = "lan", host("192.168.1.20")
	w := newWorld(t, rdrTo("203.0.113.5", "192.168.1.20", 8080), nat, pass())
	b := w.in(lanIndex, udp(t, client, 4000, gateway, 80, "q"), Redirect, reason.Rule)
	w.ends(b, addr("192.168.1.1"), 50001, inside, 8080)
	b = w.in(lanIndex, udp(t, inside, 8080, addr("192.168.1.1"), 50001, "a"), Redirect, reason.State)
	w.ends(b, gateway, 80, client, 4000)
}

func TestRedirectToTheBox(t *testing.T) {
	w := newWorld(t, rdrTo("198.51.100.7", "192.168.1.1", 3128), pass())
	b := w.in(lanIndex, udp(t, client, 4000, server, 80, "q"), Up, reason.Local)
	w.ends(b, client, 4000, addr("192.168.1.1"), 3128)
	b = w.own(lanIndex, udp(t, addr("192.168.1.1"), 3128, client, 4000, "a"), Out, reason.State)
	w.ends(b, server, 80, client, 4000)
}

func TestStateLimit(t *testing.T) {
	w := newWorld(t, pass())
	w.rules.Options.MaxStates = 1
	w.in(lanIndex, udp(t, client, 4000, server, 53, "q"), Redirect, reason.Rule)
	w.in(lanIndex, udp(t, client, 4001, server, 53, "q"), Drop, reason.StateLimit)
}

// What goes up to be forwarded has only its destination translated; TCX egress translates
// the source.
func TestHandedOff(t *testing.T) {
	w := newWorld(t, rdrTo("203.0.113.5", "192.168.1.20", 8080), natTo("203.0.113.5"), pass())
	packet := ip(client, addr("203.0.113.99"), layers.IPProtocolUDP).(*layers.IPv4)
	b := frame(t, packet, &layers.UDP{SrcPort: 4000, DstPort: 53})
	o := w.handle(&Frame{Interface: lanIndex, Bytes: b}, Up, reason.UpNeighbour)
	w.ends(o.Frame, client, 4000, addr("203.0.113.99"), 53)
	if v := w.marks().Of(o.Mark); v != MarkCame {
		t.Errorf("mark %#x", o.Mark)
	}
	w.handle(&Frame{Hook: TCXEgress, Interface: wanIndex, From: lanIndex, Bytes: o.Frame}, Drop, reason.Guard)
	o = w.handle(&Frame{Hook: TCXEgress, Interface: wanIndex, From: lanIndex, Mark: o.Mark, Bytes: o.Frame}, Out, reason.Marked)
	w.ends(o.Frame, gateway, 50001, addr("203.0.113.99"), 53)
	packet.TTL = 1
	packet.DstIP = server.AsSlice()
	w.in(lanIndex, frame(t, packet, &layers.UDP{SrcPort: 4000, DstPort: 53}), Up, reason.UpTTL)
	w.in(lanIndex, udp(t, client, 4000, server, 53, string(make([]byte, 1480))), Up, reason.UpMTU)
}
