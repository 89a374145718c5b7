package nic

import (
	"errors"
	"io/fs"
	"runtime"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weir/internal/testenv"
)

// TestVeth uses a veth of four queues in a namespace of its own. Its settings are set,
// read back and restored. Those it lacks are reported as missing.
func TestVeth(t *testing.T) {
	testenv.NeedRoot(t)
	runtime.LockOSThread() // the thread ends with the test, in its namespace
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Fatal(err)
	}
	attributes := netlink.NewLinkAttrs()
	attributes.Name, attributes.NumRxQueues, attributes.NumTxQueues = "a.1", 4, 4
	veth := &netlink.Veth{LinkAttrs: attributes, PeerName: "b", PeerNumRxQueues: 4, PeerNumTxQueues: 4}
	if err := netlink.LinkAdd(veth); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, other string }{
		{"queues", "rx 2 tx 1"}, {"queues", "rx 4 tx 4"}, {"gro", "on"}, {"gro", "off"},
	} {
		found, err := Get("a.1", c.name)
		if err != nil {
			t.Fatal(err)
		}
		for _, value := range []string{c.other, found} {
			if err := Set("a.1", c.name, value); err != nil {
				t.Fatal(err)
			}
			if now, err := Get("a.1", c.name); err != nil || now != value {
				t.Errorf("%s was set to %s and is %s, %v", c.name, value, now, err)
			}
		}
	}
	if most, err := Get("a.1", "queues-max"); err != nil || most != "rx 4 tx 4" {
		t.Errorf("queues-max: %s, %v", most, err)
	}
	for _, name := range []string{"rings", "pause", "eee", "adaptive-rx", "hash-udp4", "lro", "nonsense"} {
		if got, err := Get("a.1", name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if _, err := Get("c", "queues"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of no device: %v", err)
	}
	if got := PermanentAddress("a.1"); got != "" {
		t.Errorf("a veth has the permanent address %s", got)
	}
	for value, name := range map[string]string{"combined": "queues", "blue 4": "queues", "rx x": "queues", "maybe": "gro", "on ": "gro"} {
		if err := Set("a.1", name, value); err == nil {
			t.Errorf("%s took %q", name, value)
		}
	}
	if err := Set("a.1", "queues-max", "rx 1 tx 1"); err == nil {
		t.Error("a limit was set")
	}
}

// TestLink reads an RTL8125 that can do 2,500 Mbit/s and offers 1,000 to a port that offers
// 2,500. Its masks have four words.
func TestLink(t *testing.T) {
	s := &linkSettings{speed: 1000, duplex: duplexFull, autoneg: 1, words: 4}
	s.masks[0], s.masks[1] = 0x2f, 1<<(47-32)
	s.masks[4] = 0x2f
	s.masks[8], s.masks[9] = 0x2f, 1<<(47-32)
	want := Link{Mbit: 1000, MaxMbit: 2500, Duplex: "full", AdvertisedMbit: 1000, PartnerMbit: 2500, CommonMbit: 1000, ReachMbit: 2500, Autoneg: true}
	if got := *s.state(); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	// A port of 100, 1,000 and 10,000 Mbit/s, and a card of up to 5,000.
	s = &linkSettings{speed: 1000, duplex: duplexFull, autoneg: 1, words: 2}
	for mask := range 2 {
		s.masks[2*mask], s.masks[2*mask+1] = 0x2f, 1<<(47-32)|1<<(48-32)
	}
	s.masks[4] = 1<<3 | 1<<5 | 1<<12
	want = Link{Mbit: 1000, MaxMbit: 5000, Duplex: "full", AdvertisedMbit: 5000, PartnerMbit: 10000, CommonMbit: 1000, ReachMbit: 1000, Autoneg: true}
	if got := *s.state(); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	want = Link{Mbit: 10, MaxMbit: 10, Duplex: "half"}
	if got := *(&linkSettings{speed: 10, words: 1, masks: [3 * 127]uint32{0x3}}).state(); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := *(&linkSettings{speed: speedUnknown, duplex: 0xff, words: 2}).state(); got != (Link{}) {
		t.Errorf("nothing known: %+v", got)
	}
}

// TestTable converts tables of queues to text and back.
func TestTable(t *testing.T) {
	for _, c := range []struct {
		queues []uint32
		text   string
	}{
		{[]uint32{0, 0, 0, 0}, "equal 1"}, {[]uint32{0, 1, 0, 1}, "equal 2"}, {[]uint32{0, 1, 2, 0}, "equal 3"},
		{[]uint32{1, 0, 1, 0}, "1,0,1,0"}, {[]uint32{0, 0, 1, 1}, "0,0,1,1"},
	} {
		if got := tableText(c.queues); got != c.text {
			t.Errorf("%v is %q, want %q", c.queues, got, c.text)
		}
		back := make([]uint32, len(c.queues))
		if err := fillTable(back, c.text); err != nil || tableText(back) != c.text {
			t.Errorf("%q is %v, %v", c.text, back, err)
		}
	}
	for _, text := range []string{"", "equal 0", "equal x", "0,1", "0,1,2,x"} {
		if err := fillTable(make([]uint32, 4), text); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}
