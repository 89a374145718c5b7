package htb_test

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"weir/internal/fw/htb"
	"weir/internal/fw/shaper"
	"weir/internal/host/netif"
	"weir/internal/testenv"
)

// inNamespace moves the test to a network namespace of its own, with the device wan0.
func inNamespace(t *testing.T) htb.Device {
	t.Helper()
	testenv.NeedRoot(t)
	testenv.NeedProgram(t, "tc")
	runtime.LockOSThread() // the thread ends with the test, and its namespace with it
	ns, err := netns.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ns.Close() })
	veth := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "wan0"}, PeerName: "modem0"}
	if err := netlink.LinkAdd(veth); err != nil {
		t.Fatal(err)
	}
	link, err := netlink.LinkByName("wan0")
	if err != nil {
		t.Fatal(err)
	}
	return htb.Device{Index: link.Attrs().Index, Name: "wan0"}
}

func tc(t *testing.T, args string) string {
	t.Helper()
	out, err := exec.Command("tc", strings.Fields(args)...).CombinedOutput()
	if err != nil {
		t.Fatalf("tc %s: %v\n%s", args, err, out)
	}
	return string(out)
}

// line is a tree of three queues, of which the last is the default.
func line(rate uint64) *htb.Plan {
	s := &shaper.Shaper{Classes: []shaper.Class{class(-1, 1, most(rate), above(1, 3)), class(0, 3), class(0, 1), class(0, 1)}}
	s.Classes[3].Default = true
	return htb.PlanOf(s, 1500, false)
}

func set(t *testing.T, d htb.Device, p *htb.Plan) {
	t.Helper()
	if _, err := htb.Set(d, p); err != nil {
		t.Fatal(err)
	}
}

func TestSetAndRemove(t *testing.T) {
	d := inNamespace(t)
	before := tc(t, "qdisc show")
	set(t, d, line(6_250_000))
	if text := tc(t, "class show dev wan0"); !strings.Contains(text, "7766:2 parent 7766:1") || !strings.Contains(text, "rate 30Mbit overhead 24 ceil 50Mbit") {
		t.Errorf("the classes are\n%s", text)
	}
	if text := tc(t, "qdisc show dev wan0"); !strings.Contains(text, "default 0x4") || !strings.Contains(text, "parent 7766:4") {
		t.Errorf("the qdiscs are\n%s", text)
	}
	classes, err := htb.Classes(d.Index)
	if err != nil || len(classes) != 4 {
		t.Errorf("%d classes are read: %v", len(classes), err)
	}
	if err := htb.RemoveAll(); err != nil {
		t.Fatal(err)
	}
	if after := tc(t, "qdisc show"); after != before {
		t.Errorf("before:\n%safter:\n%s", before, after)
	}
	if err := htb.Remove(d.Index); err != nil {
		t.Errorf("removed again: %v", err)
	}
}

// Other rates change the same classes; another tree replaces them.
func TestSetChangesInPlace(t *testing.T) {
	d := inNamespace(t)
	set(t, d, line(6_250_000))
	queue := strings.Fields(tc(t, "qdisc show dev wan0 parent 7766:4"))[2] // its handle, drawn by the kernel
	set(t, d, line(1_250_000))
	if text := tc(t, "class show dev wan0"); !strings.Contains(text, "ceil 10Mbit") || strings.Contains(text, "50Mbit") {
		t.Errorf("the classes are\n%s", text)
	}
	if now := strings.Fields(tc(t, "qdisc show dev wan0 parent 7766:4"))[2]; now != queue {
		t.Errorf("the queue %s is %s after a change of rates: packets in it are lost", queue, now)
	}
	set(t, d, htb.PlanOf(&shaper.Shaper{Classes: []shaper.Class{class(-1, 1, most(1_250_000))}}, 1500, false))
	if text := tc(t, "class show dev wan0"); strings.Contains(text, "7766:2 ") || !strings.Contains(text, "7766:1 ") {
		t.Errorf("the classes are\n%s", text)
	}
}

// What the administrator has set is named and stays as it is.
func TestForeignQdiscStays(t *testing.T) {
	for _, command := range []string{
		"qdisc add dev wan0 root handle 5: tbf rate 10mbit burst 5k latency 50ms",
		"qdisc add dev wan0 root handle 5: htb",
		"qdisc replace dev wan0 root handle 5: bfifo limit 100000",
		"qdisc add dev wan0 root handle 7765: tbf rate 1mbit burst 5k latency 50ms", // weir's handle, but not weir's
		"qdisc add dev wan0 root handle 7765: tbf rate 100gbit burst 100k latency 50ms",
		"qdisc add dev wan0 root handle 7765: htb",
	} {
		d := inNamespace(t)
		tc(t, command)
		before := tc(t, "qdisc show dev wan0")
		var foreign *htb.ForeignError
		_, err := htb.Set(d, line(6_250_000))
		name := strings.Join(strings.Fields(before)[1:3], " ") // kind and handle
		if !errors.As(err, &foreign) || foreign.Qdisc != name {
			t.Errorf("after tc %s: %v", command, err)
		}
		if err := htb.RemoveAll(); err != nil {
			t.Error(err)
		}
		if after := tc(t, "qdisc show dev wan0"); after != before {
			t.Errorf("before:\n%safter:\n%s", before, after)
		}
	}
}

// What comes in waits at a device of weir's own, which is found again. It is no interface of the box.
func TestWaitingDevice(t *testing.T) {
	d := inNamespace(t)
	before := tc(t, "qdisc show")
	waits, err := htb.AddWaiting(d)
	if err != nil {
		t.Fatal(err)
	}
	again, err := htb.AddWaiting(d)
	if err != nil || again != waits {
		t.Errorf("asked again it is %+v, was %+v: %v", again, waits, err)
	}
	set(t, waits, line(6_250_000))
	if text := tc(t, "class show dev "+waits.Name); !strings.Contains(text, "7766:2 parent 7766:1") {
		t.Errorf("the classes are\n%s", text)
	}
	links, err := netif.Links()
	if err != nil || slices.ContainsFunc(links, func(l netif.Link) bool { return l.Index == waits.Index }) {
		t.Errorf("the interfaces are %+v (%v)", links, err)
	}
	if all, err := htb.WaitingDevices(); err != nil || len(all) != 1 || all[0].Device != waits || all[0].In != d.Index {
		t.Errorf("weir's devices are %+v (%v)", all, err)
	}
	if err := htb.RemoveAll(); err != nil {
		t.Fatal(err)
	}
	if after := tc(t, "qdisc show"); after != before {
		t.Errorf("before:\n%safter:\n%s", before, after)
	}
}

// What an administrator has set up for what comes in is named and stays as it is.
func TestForeignIngressStays(t *testing.T) {
	for _, command := range []string{"qdisc add dev wan0 ingress", "qdisc add dev wan0 clsact"} {
		d := inNamespace(t)
		tc(t, command)
		has, err := htb.Read()
		if err != nil {
			t.Fatal(err)
		}
		var foreign *htb.ForeignError
		kind := command[strings.LastIndex(command, " ")+1:]
		if err := has.ForeignIn(d); !errors.As(err, &foreign) || foreign.Qdisc != kind+" ffff:" || !strings.Contains(err.Error(), "tc qdisc del dev wan0 "+kind) {
			t.Errorf("after tc %s: %v", command, err)
		}
	}
	d := inNamespace(t)
	name := fmt.Sprintf("%s%d", netif.WaitingPrefix, d.Index)
	if err := netlink.LinkAdd(&netlink.Ifb{LinkAttrs: netlink.LinkAttrs{Name: name}}); err != nil {
		t.Fatal(err)
	}
	has, err := htb.Read()
	if err != nil {
		t.Fatal(err)
	}
	if err := has.ForeignIn(d); err == nil || !strings.Contains(err.Error(), name) {
		t.Errorf("beside somebody's %s: %v", name, err)
	}
	if _, err := htb.AddWaiting(d); err == nil {
		t.Errorf("weir takes somebody's %s", name)
	}
	if err := htb.RemoveAll(); err != nil {
		t.Fatal(err)
	}
	if _, err := netlink.LinkByName(name); err != nil {
		t.Errorf("weir has removed somebody's %s: %v", name, err)
	}
}
