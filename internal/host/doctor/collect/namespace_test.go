package collect

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"weir/internal/host/doctor"
	"weir/internal/testenv"
)

// TestNamespace checks how the machine's first network namespace is told from others. A
// container's process 1 is its own, and shares its namespace.
func TestNamespace(t *testing.T) {
	const host, other = "net:[4026531840]", "net:[4026532200]"
	for _, c := range []struct {
		name       string
		sysctls    []string // below /proc/sys/net/core
		own, first string   // the links of this thread and of process 1; "": not readable
		kernel     bool     // the kernel's threads are seen
		is, told   bool
	}{
		{"the machine", []string{"netdev_budget", "somaxconn"}, host, host, true, false, true},
		{"--netns", []string{"somaxconn"}, other, host, true, true, true},
		{"a container", []string{"somaxconn"}, other, other, false, true, true},
		{"a container with the machine's network", []string{"netdev_budget", "somaxconn"}, host, host, false, false, true},
		{"process 1 is not readable", []string{"somaxconn"}, other, "", true, true, true},
		{"no sysctls", nil, host, host, true, false, true},
		{"no sysctls, --netns", nil, other, host, true, true, true},
		{"no sysctls, process 1 is not readable", nil, host, "", true, true, false},
		{"no sysctls, a container", nil, host, host, false, true, false},
	} {
		r := &reader{proc: t.TempDir(), snapshot: &doctor.Snapshot{Unreadable: map[string]string{}}}
		write := func(text string, parts ...string) {
			file := r.procFile(parts...)
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range c.sysctls {
			write("300\n", "sys", "net", "core", name)
		}
		if c.kernel {
			write("kthreadd\n", "2", "comm")
		}
		for process, link := range map[string]string{"thread-self": c.own, "1": c.first} {
			if link == "" {
				continue
			}
			if err := os.MkdirAll(r.procFile(process, "ns"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(link, r.procFile(process, "ns", "net")); err != nil {
				t.Fatal(err)
			}
		}
		r.namespace()
		why := r.snapshot.Unreadable["host.network_namespace"]
		if r.snapshot.Host.Namespace != c.is || (why == "") != c.told {
			t.Errorf("%s: another namespace: %t; not told: %q", c.name, r.snapshot.Host.Namespace, why)
		}
	}
}

// TestRealNamespace checks the same with a namespace of the kernel's.
func TestRealNamespace(t *testing.T) {
	testenv.NeedRoot(t)
	r := &reader{proc: "/proc", snapshot: &doctor.Snapshot{Unreadable: map[string]string{}}}
	runtime.LockOSThread() // the thread ends with the test, in its namespace
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Fatal(err)
	}
	if r.namespace(); !r.snapshot.Host.Namespace || len(r.snapshot.Unreadable) > 0 {
		t.Errorf("a new namespace counts as the machine's first; %v", r.snapshot.Unreadable)
	}
}

// TestExternal checks that a tunnel whose far ends come with each packet is told from others.
func TestExternal(t *testing.T) {
	testenv.NeedRoot(t)
	runtime.LockOSThread() // the thread ends with the test, in its namespace
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Fatal(err)
	}
	want, queues := map[string]bool{"vx0": true, "vx1": false}, map[string]int{"vx0": 77, "vx1": 1000}
	for _, of := range []string{"vx0 txqueuelen 77 type vxlan external dstport 4789", "vx1 type vxlan id 7 dstport 4790"} {
		if said, err := exec.Command("ip", append([]string{"link", "add"}, strings.Fields(of)...)...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %s", of, said)
		}
	}
	d, err := openDevices()
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	r := &reader{proc: "/proc", sys: t.TempDir(), net: t.TempDir(), devices: d, snapshot: &doctor.Snapshot{Unreadable: map[string]string{}}}
	if err := r.interfaces(); err != nil {
		t.Fatal(err)
	}
	for i := range r.snapshot.Interfaces {
		n := &r.snapshot.Interfaces[i]
		if external, asked := want[n.Name]; asked && n.External != external {
			t.Errorf("%s is external: %t", n.Name, n.External)
		}
		if packets, asked := queues[n.Name]; asked && (n.TxQueueLen == nil || *n.TxQueueLen != packets) {
			t.Errorf("%s: a queue of %v packets; want %d", n.Name, n.TxQueueLen, packets)
		}
		delete(want, n.Name)
	}
	if len(want) > 0 {
		t.Errorf("not read: %v", want)
	}
}
