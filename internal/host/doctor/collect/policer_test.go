package collect

import (
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"weir/internal/host/doctor"
	"weir/internal/testenv"
)

// TestPolicers tells filters that police from those that block, as tc makes them, in a
// namespace of its own.
func TestPolicers(t *testing.T) {
	testenv.NeedRoot(t)
	runtime.LockOSThread() // never unlocked: the thread ends with the test
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		setup string // commands, separated by ";"
		want  int
	}{
		{"tc qdisc add dev d0 clsact; tc filter add dev d0 ingress matchall action police rate 10mbit burst 64k conform-exceed drop", 1},
		{"tc qdisc add dev d0 ingress; tc filter add dev d0 parent ffff: protocol ip u32 match u32 0 0 police rate 10mbit burst 10k drop flowid :1", 1},
		{"tc qdisc add dev d0 ingress; tc filter add dev d0 ingress protocol ip flower ip_proto udp action police rate 10mbit burst 10k", 1},
		{"tc qdisc add dev d0 clsact; tc filter add dev d0 ingress protocol ip flower ip_proto udp action drop", 0},
	} {
		missing := ""
		for command := range strings.SplitSeq("ip link add d0 type veth; ip link set d0 up; "+c.setup, "; ") {
			words := strings.Fields(command)
			out, err := exec.Command(words[0], words[1:]...).CombinedOutput()
			switch said := string(out); {
			case err == nil:
			case strings.Contains(said, "classifier not found") || strings.Contains(said, "load TC action module"):
				missing = command // of this kernel
			default:
				t.Fatalf("%s: %s: %v", command, out, err)
			}
		}
		d, err := openDevices()
		if err != nil {
			t.Fatal(err)
		}
		var counters doctor.Counters
		r := &reader{net: t.TempDir(), devices: d, snapshot: &doctor.Snapshot{Unreadable: map[string]string{}}}
		if err := d.count(r, &counters); err != nil {
			t.Fatal(err)
		}
		d.close()
		found := false
		for _, q := range counters.Qdiscs {
			if q.Parent == "ingress" {
				found = true
				if q.Policers == nil || *q.Policers != c.want && missing == "" {
					t.Errorf("%s: %+v; want %d", c.setup, q, c.want)
				}
			}
		}
		if !found {
			t.Errorf("%s: no discipline at ingress in %+v", c.setup, counters.Qdiscs)
		}
		if missing != "" {
			t.Logf("this kernel cannot %s", missing)
		}
		if out, err := exec.Command("ip", "link", "del", "d0").CombinedOutput(); err != nil {
			t.Fatalf("%s: %v", out, err)
		}
	}
}
