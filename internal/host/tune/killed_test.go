package tune_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/host/tune"
	"weir/internal/host/tune/db"
	"weir/internal/killpoint"
)

// childRoot and childVerb are environment variables by which this test runs itself as a
// program that applies or reverts in the named tree.
const childRoot, childVerb = "WEIR_TUNE_TEST_ROOT", "WEIR_TUNE_TEST_VERB"

func TestMain(m *testing.M) {
	if root := os.Getenv(childRoot); root != "" {
		if err := child(&tune.Host{Root: root}, os.Getenv(childVerb)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func child(h *tune.Host, verb string) error {
	if verb == "revert" {
		_, err := h.Revert(false)
		return err
	}
	d, err := db.Load()
	if err != nil {
		return err
	}
	p, err := h.Plan(d, tune.Inputs{Role: db.Forwarder})
	if err != nil {
		return err
	}
	return h.Apply(p)
}

// dies runs a child that dies at step n, and reports whether it got that far.
func dies(t *testing.T, root, verb string, n int) bool {
	t.Helper()
	list := filepath.Join(t.TempDir(), "steps")
	if err := os.WriteFile(list, fmt.Appendln(nil, n), 0o600); err != nil {
		t.Fatal(err)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), childRoot+"="+root, childVerb+"="+verb, killpoint.Variable+"="+list)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if s, ok := exit.Sys().(syscall.WaitStatus); ok && s.Signal() == syscall.SIGKILL {
			return true
		}
	}
	if err != nil {
		t.Fatalf("%s, to die at step %d: %v\n%s", verb, n, err, out)
	}
	return false
}

// TestKilled checks that, whenever apply dies, revert puts every byte back, and whenever
// revert dies, the next revert does. It does so on a host without notable cards, and on
// one whose card gets other queues and is kept by a .link file and a unit.
func TestKilled(t *testing.T) { killed(t, nil) }

func TestKilledWithCards(t *testing.T) {
	files := map[string]string{
		"run/udev/control": "", "run/udev/data/n2": "E:ID_NET_LINK_FILE=/usr/lib/systemd/network/99-default.link\n", "run/systemd/system/x": "",
		"usr/lib/systemd/network/99-default.link": "[Link]\nNamePolicy=keep\n", "sys/class/net/eth0/ifindex": "2\n",
		"sys/class/net/eth0/address": "02:00:00:00:00:01\n", "sys/class/net/eth0/addr_assign_type": "0\n",
		"sys/class/net/eth1/operstate": "down\n", "sys/devices/system/cpu/online": "0-1\n",
		"proc/interrupts":               "CPU0\n 40: 1 PCI-MSI eth0-0\n 41: 1 PCI-MSI eth0-1\n",
		"proc/irq/40/smp_affinity_list": "0-1\n", "proc/irq/41/smp_affinity_list": "0-1\n",
		"ethtool/eth0/queues": "combined 1\n", "ethtool/eth0/queues-max": "combined 2\n",
		"proc/sys/net/ipv4/ip_early_demux": "0\n", "proc/net/softnet_stat": "0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n",
	}
	killed(t, files)
}

func killed(t *testing.T, more map[string]string) {
	for _, verb := range []string{"apply", "revert"} {
		n := 1
		for ; ; n++ {
			h, files := tree(t, more)
			before := files()
			if verb == "revert" {
				apply(t, h, tune.Inputs{Role: db.Forwarder})
			}
			if !dies(t, h.Root, verb, n) {
				break
			}
			if _, err := h.Revert(false); err != nil {
				t.Errorf("%s died at step %d: revert: %v", verb, n, err)
			}
			if diff := cmp.Diff(before, files()); diff != "" {
				t.Errorf("%s died at step %d, reverted (-before +after):\n%s", verb, n, diff)
			}
		}
		t.Logf("%s: %d steps", verb, n-1)
		if n < 5 {
			t.Errorf("%s: %d steps; they are not counted", verb, n-1)
		}
	}
}
