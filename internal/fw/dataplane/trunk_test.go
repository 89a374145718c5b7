package dataplane

import (
	"bytes"
	"encoding/binary"
	"net"
	"slices"
	"testing"

	"weir/internal/fw/reason"
)

// A trunk is a device that carries the frames of lan0 and wan0 with tags, as XDP sees it.
// So the tests do not need a kernel with VLAN devices.
type trunk struct {
	device int
	layers map[int][]tag // of an interface, the outermost first
}

type tag struct{ etherType, id uint16 }

// bytes returns a tag as it follows a frame's MACs.
func (t tag) bytes() []byte {
	return binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, t.etherType), t.id)
}

func tagBytes(tags []tag) (all []byte) {
	for _, t := range tags {
		all = append(all, t.bytes()...)
	}
	return all
}

// withTags puts tags into a frame.
func withTags(frame []byte, tags ...tag) []byte {
	return slices.Concat(frame[:12], tagBytes(tags), frame[12:])
}

// carry says in what is told of an interface that the trunk carries it.
func (t *trunk) carry(ifindex int, i *Interface) {
	tags := t.layers[ifindex]
	if tags == nil {
		return
	}
	last := tags[len(tags)-1]
	i.Parent, i.Tag, i.TagType = t.device, last.id, last.etherType
	for other, outer := range t.layers {
		if len(tags) == 2 && len(outer) == 1 && outer[0] == tags[0] {
			i.Parent = other
		}
	}
	i.Flags &^= InterfaceTarget // XDP redirects to the trunk
}

// setTrunk gives lan0 and wan0 these tags. An interface without tags is an ordinary
// device.
func (h *harness) setTrunk(device int, lan, wan []tag) {
	h.tb.Helper()
	h.trunk = &trunk{device: device, layers: map[int][]tag{}}
	flags := InterfacePresent | InterfaceTarget | InterfaceXDP
	// a tag more than the kernel lets redirects have beyond the MTU
	check(h.tb, h.dp.SetInterface(device, Interface{MAC: mac(lan0MAC), MTU: 1504, Flags: flags}))
	var logical []int
	for ifindex, tags := range map[int][]tag{h.net.lan0: lan, h.net.wan0: wan} {
		if tags != nil {
			h.trunk.layers[ifindex] = tags
			logical = append(logical, ifindex)
		}
	}
	h.reset()
	if left := must(h.dp.SetLogicals(logical))(h.tb); left != nil {
		h.tb.Fatalf("no room for interfaces %d", left)
	}
}

// xdpTagged has a frame of a logical interface come in by the trunk, and takes the tags
// off that it must have afterwards.
func (h *harness) xdpTagged(ifindex int, frame []byte) result {
	h.tb.Helper()
	tags, device := h.trunk.layers[ifindex], h.trunk.device
	if tags == nil {
		device = ifindex
	}
	r := h.xdpOn(device, ifindex, withTags(frame, tags...))
	if at := h.counts(h.trunk.device); at != "" {
		h.tb.Errorf("counted at the trunk: %s", at)
	}
	if r.meta && r.believes != ifindex {
		h.tb.Errorf("handed up for interface %d, not %d", r.believes, ifindex)
	}
	switch {
	case r.verdict == drop:
		return r
	case r.verdict == redirect && r.reason != reason.Block.String():
		tags = h.trunk.layers[h.stationOf(r.frame)]
	}
	front := tagBytes(tags)
	if len(r.frame) < 14+len(front) || !bytes.Equal(r.frame[12:12+len(front)], front) {
		h.tb.Errorf("%s %s: leaves as %x, want tags %x behind the MACs", r.verdict, r.reason, r.frame, front)
		return r
	}
	r.frame = slices.Concat(r.frame[:12], r.frame[12+len(front):])
	return r
}

// stationOf is the interface behind which the station is that a frame goes to.
func (h *harness) stationOf(frame []byte) int {
	switch net.HardwareAddr(frame[:6]).String() {
	case lanHostMAC:
		return h.net.lan0
	case wanHostMAC:
		return h.net.wan0
	}
	return 0
}

// Whatever holds for packets of ordinary devices holds for VLAN devices under XDP, with
// any tags.
func TestTaggedPackets(t *testing.T) {
	h := newHarness(t, "pass", func(c *Config) { c.Room = 100 })
	device := addWire(t, "nic0", lan0MAC, lanHostMAC)
	h.enableXDP(device)
	ten, twenty, service := tag{Type8021Q, 10}, tag{Type8021Q, 20}, tag{Type8021AD, 0xa014}
	for _, on := range []struct {
		name     string
		lan, wan []tag
	}{
		{"VLAN to VLAN", []tag{ten}, []tag{twenty}},
		{"VLAN to device", []tag{service}, nil},
		{"device to VLAN", nil, []tag{twenty}},
		{"VLAN to VLAN in it", []tag{ten}, []tag{ten, twenty}},
		{"VLAN in a service tag to that", []tag{service, ten}, []tag{service}},
	} {
		for _, section := range []struct {
			name string
			run  func(*harness)
		}{
			{"parse", testParse},
			{"sanity", testSanity},
			{"implicit", testImplicit},
			{"forward", testForward},
			{"skip", testSkip},
			{"life", testStateLife},
			{"track", testTrack},
			{"errors", testICMPErrors},
			{"fragments", testFragments},
			{"rejects", testRejects},
		} {
			h.sub(on.name+"/"+section.name, func(h *harness) {
				h.setTrunk(device, on.lan, on.wan)
				section.run(h)
			})
		}
	}
}
