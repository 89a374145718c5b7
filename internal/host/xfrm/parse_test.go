package xfrm

import (
	"encoding/binary"
	"testing"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// A policy that a network card carries out is told apart. No card that the tests can have takes one.
func TestOffloaded(t *testing.T) {
	m := make([]byte, nl.SizeofXfrmUserpolicyInfo)
	binary.NativeEndian.PutUint16(m[atFamily:], unix.AF_INET)
	m[atDirection] = byte(Out)
	templates := nl.NewRtAttr(nl.XFRMA_TMPL, make([]byte, templateBytes)).Serialize()
	device := make([]byte, 8) // struct xfrm_user_offload
	binary.NativeEndian.PutUint32(device, 5)
	device[4] = 1 << 2    // XFRM_OFFLOAD_PACKET
	const offloadDev = 28 // XFRMA_OFFLOAD_DEV of linux/xfrm.h
	for _, c := range []struct {
		attributes []byte
		want       bool
	}{
		{templates, false},
		{append(nl.NewRtAttr(offloadDev, device).Serialize(), templates...), true},
	} {
		p, err := parse(append(m[:len(m):len(m)], c.attributes...))
		if err != nil {
			t.Fatal(err)
		}
		if p.Offloaded != c.want || p.Required != 1 || p.Direction != Out {
			t.Errorf("offloaded is to be %t: %+v", c.want, p)
		}
	}
}
