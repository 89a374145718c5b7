package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"weir/internal/host/netif"
	"weir/internal/testenv"
)

// up builds a lab for a test and removes it afterwards.
func up(t *testing.T, opts Options) *Lab {
	t.Helper()
	testenv.NeedRoot(t)
	opts.Name = "weir-test-lab"
	t.Cleanup(func() {
		if _, err := Remove(opts.Name, opts.Topology); err != nil {
			t.Error(err)
		}
	})
	l, err := Up(context.Background(), opts)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func run(t *testing.T, l *Lab, host string, argv ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	out, err := l.Run(ctx, host, argv[0], argv[1:]...)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// TestUp crosses the firewall's host with the kernel's own forwarding.
//
//	lan 192.168.1.10 – lan0 [fw] wan0 – 203.0.113.1 wan
func TestUp(t *testing.T) {
	testenv.NeedProgram(t, "ping")
	for _, offloads := range []Offloads{OffloadsOn, OffloadsOff} {
		t.Run("offloads "+offloads.String(), func(t *testing.T) {
			l := up(t, Options{Offloads: offloads})
			run(t, l, LAN, "ping", "-c1", "-W2", "192.168.1.1")
			run(t, l, LAN, "ping", "-c1", "-W2", "fd00:1::1")
			if _, err := l.Run(context.Background(), LAN, "ping", "-c1", "-W1", "203.0.113.1"); err == nil {
				t.Error("the firewall's host forwards before anyone told it to")
			}
			err := l.Do(FW, func() error {
				return errors.Join(netif.SetSysctl("net/ipv4/conf/all/forwarding", "1"), netif.SetSysctl("net/ipv6/conf/all/forwarding", "1"))
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := l.AddRoute(WAN, "eth0", l.topology.Wires[0][1].Addresses[0].Masked(), l.Addr(FW, "wan0", false)); err != nil {
				t.Fatal(err)
			}
			if err := l.AddRoute(WAN, "eth0", l.topology.Wires[0][1].Addresses[1].Masked(), l.Addr(FW, "wan0", true)); err != nil {
				t.Fatal(err)
			}
			run(t, l, LAN, "ping", "-c1", "-W2", "203.0.113.1")
			run(t, l, LAN, "ping", "-c1", "-W2", "2001:db8:113::1")
		})
	}
}

func TestUpTwiceAndHalf(t *testing.T) {
	opts := Options{Queues: 2}
	l := up(t, opts)
	before := run(t, l, FW, "ip", "-j", "link")
	if up(t, opts); run(t, l, FW, "ip", "-j", "link") != before {
		t.Error("a second Up made the devices anew")
	}
	run(t, l, FW, "ip", "link", "del", "lan0")
	if err := exec.Command("ip", "netns", "del", l.Namespace(WAN)).Run(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(l.name, Topology{}); !errors.Is(err, ErrNotUp) {
		t.Errorf("opening half a lab: %v, want %v", err, ErrNotUp)
	}
	up(t, opts)
	run(t, l, FW, "ping", "-c1", "-W2", "192.168.1.10")
	run(t, l, FW, "ping", "-c1", "-W2", "203.0.113.1")
}

func TestRemove(t *testing.T) {
	l := up(t, Options{})
	if err := os.WriteFile("/run/netns/"+l.Namespace("stray"), nil, 0o444); err != nil {
		t.Fatal(err)
	}
	l.topology.Hosts = append(l.topology.Hosts, Host{Name: "stray"})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir("/run/netns")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range left {
		if strings.HasPrefix(e.Name(), l.name+"-") {
			t.Errorf("%s is left", e.Name())
		}
	}
	if found, err := Remove(l.name, l.topology); found || err != nil {
		t.Errorf("removing what is gone: %v, %v; want false and no error", found, err)
	}
}

// TestRemoveRest checks that a host that cannot be removed does not keep the others.
func TestRemoveRest(t *testing.T) {
	l := up(t, Options{})
	name := "/run/netns/" + l.Namespace("stray")
	if err := os.MkdirAll(name+"/full", 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(name) })
	l.topology.Hosts = append([]Host{{Name: "stray"}}, l.topology.Hosts...)
	if err := l.Close(); err == nil || !strings.Contains(err.Error(), name) {
		t.Errorf("removing a folder that is not empty: %v", err)
	}
	for _, host := range []string{LAN, FW, WAN} {
		if _, err := os.Lstat("/run/netns/" + l.Namespace(host)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is left: %v", l.Namespace(host), err)
		}
	}
}

func TestOffloads(t *testing.T) {
	testenv.NeedProgram(t, "ethtool")
	l := up(t, Options{Offloads: OffloadsOff})
	for _, c := range []struct{ host, device, feature, want string }{
		{LAN, "eth0", "tx-checksumming", "off"},
		{LAN, "eth0", "tcp-segmentation-offload", "off"},
		{LAN, "eth0", "generic-receive-offload", "on"},
		{WAN, "eth0", "generic-segmentation-offload", "off"},
		{FW, "lan0", "rx-checksumming", "off"},
		{FW, "lan0", "generic-receive-offload", "off"},
		{FW, "wan0", "tx-vlan-offload", "off"},
		{FW, "wan0", "rx-vlan-offload", "off"},
	} {
		out := run(t, l, c.host, "ethtool", "-k", c.device)
		if !strings.Contains(out, c.feature+": "+c.want) {
			t.Errorf("%s of %s in %s is not %s", c.feature, c.device, c.host, c.want)
		}
	}
	l = up(t, Options{Offloads: OffloadsOn})
	if out := run(t, l, LAN, "ethtool", "-k", "eth0"); !strings.Contains(out, "tcp-segmentation-offload: on") {
		t.Error("a second Up with offloads on leaves them off")
	}
}

func TestNeighbours(t *testing.T) {
	l := up(t, Options{Neighbours: true})
	var entries []struct {
		Dst    string
		Lladdr string
		State  []string
	}
	if err := json.Unmarshal([]byte(run(t, l, FW, "ip", "-j", "neigh", "show", "nud", "permanent")), &entries); err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, e := range entries {
		found[e.Dst] = e.Lladdr
	}
	for _, addr := range []string{"192.168.1.10", "fd00:1::10", "203.0.113.1", "2001:db8:113::1"} {
		if found[addr] == "" {
			t.Errorf("no permanent entry for %s", addr)
		}
	}
}

// TestExec starts the test binary again, which becomes a shell in the lab.
func TestExec(t *testing.T) {
	if argv := os.Getenv("LAB_TEST_EXEC"); argv != "" {
		l, err := Open("weir-test-lab", Topology{})
		if err == nil {
			err = l.Exec(FW, []string{"sh", "-c", argv})
		}
		t.Fatal(err)
	}
	up(t, Options{})
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestExec$")
	cmd.Env = append(os.Environ(), "LAB_TEST_EXEC=ls /sys/class/net; ls -d /sys/fs/bpf; exit 7")
	out, err := cmd.Output()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 7 {
		t.Fatalf("exit status: %v, want that of the program, 7\n%s", err, out)
	}
	for _, want := range []string{"lan0\n", "wan0\n", "/sys/fs/bpf\n"} {
		if !bytes.Contains(out, []byte(want)) {
			t.Errorf("the program does not see %q:\n%s", want, out)
		}
	}
	if bytes.Contains(out, []byte("eth0")) {
		t.Errorf("the program sees the machine's devices:\n%s", out)
	}
}

func TestNames(t *testing.T) {
	for _, name := range []string{"A", "../x", "1", "a b", strings.Repeat("a", 33)} {
		if _, err := newLab(name, Topology{}); err == nil {
			t.Errorf("the name %q is accepted", name)
		}
	}
	l, err := newLab("", Topology{})
	if err != nil {
		t.Fatal(err)
	}
	if got := l.Namespace(FW); got != "weir-fw" {
		t.Errorf("the firewall's namespace is %s", got)
	}
}
