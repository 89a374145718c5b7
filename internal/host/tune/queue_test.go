package tune_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/host/tune"
)

const (
	eth0First  = "eth0 (interrupt 40, eth0-TxRx-0)"
	eth0Second = "eth0 (interrupt 41, eth0-TxRx-1)"
)

// withQueues returns gateway with the kernel's directories of interrupt names, and the
// flags of cards that are up.
func withQueues() map[string]string {
	return with(map[string]string{
		"proc/irq/40/eth0-TxRx-0/.keep": "", "proc/irq/41/eth0-TxRx-1/.keep": "",
		"sys/class/net/eth0/flags": "0x1003\n", "ethtool/eth0/queues": "combined 2\n",
	})
}

func planOf(t *testing.T, h *tune.Host, again func() ([]tune.Change, error), changes ...tune.Change) *tune.Plan {
	t.Helper()
	p, err := h.PlanOf(changes, again)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func values(t *testing.T, h *tune.Host, keys ...string) (all []string) {
	t.Helper()
	for _, key := range keys {
		value, err := h.Read(key)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, value)
	}
	return all
}

// TestQueues checks that settings of single queues and interrupts are set, read back, and
// put back to the last byte.
func TestQueues(t *testing.T) {
	h, files := tree(t, withQueues())
	before := files()
	p := planOf(t, h, nil, tune.Change{Key: eth0Second, To: "0-2"}, tune.Change{Key: "eth0:1/rps", To: "1,3"}, tune.Change{Key: "eth1:3/xps", To: ""},
		tune.Change{Key: "eth0/queues", To: "4"}, tune.Change{Key: "eth0/threaded", To: "1"}, tune.Change{Key: "eth1 (interrupt 44, no such name)", To: "1"})
	if err := h.Apply(p); err != nil {
		t.Fatal(err)
	}
	got := values(t, h, eth0Second, "eth0:1/rps", "eth1:3/xps", "eth0/queues", "eth0/threaded", "nic.eth0.rps", "nic.eth0.queues", "eth1 (interrupt 44)")
	if diff := cmp.Diff([]string{"0-2", "1,3", "", "4", "1", "00 a 00 00", "combined 4", "1"}, got); diff != "" {
		t.Error(diff)
	}
	if _, err := h.Revert(true); err != nil {
		t.Fatal(err)
	}
	after := files()
	for _, name := range []string{"sys/class/net/eth0/queues/rx-1/rps_cpus", "sys/class/net/eth1/queues/tx-3/xps_cpus"} {
		after[name] = strings.Replace(after[name], "0\n", "00\n", 1) // another form of the same mask
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("after revert (-before +after):\n%s", diff)
	}
	for _, key := range []string{"eth0:9/rps", "eth0 (interrupt 99)", "eth9/queues", "eth0:0 (thread)"} {
		if _, err := h.Read(key); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", key, err)
		}
	}
}

// TestInterruptOfAnother checks that an interrupt is left alone if another device has its
// number now.
func TestInterruptOfAnother(t *testing.T) {
	h, _ := tree(t, withQueues())
	if err := h.Apply(planOf(t, h, nil, tune.Change{Key: eth0Second, To: "0-2"})); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(h.Root, "proc/irq/41")
	if err := os.Rename(filepath.Join(folder, "eth0-TxRx-1"), filepath.Join(folder, "nvme0q1")); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Revert(true); err != nil {
		t.Fatal(err)
	}
	if got := values(t, h, "eth0 (interrupt 41)"); got[0] != "0-2" {
		t.Errorf("another's interrupt was set to %s", got)
	}
}

// TestInterruptOfCardThatIsDown checks that settings that a card does not show while it
// is down stay in the journal until it is up again. It then has weir's values.
func TestInterruptOfCardThatIsDown(t *testing.T) {
	h, _ := tree(t, withQueues())
	if err := h.Apply(planOf(t, h, nil, tune.Change{Key: "eth0:0/rps", To: "1"}, tune.Change{Key: eth0Second, To: "0-2"})); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(h.Root, "proc/irq/41/eth0-TxRx-1")
	if err := os.Rename(name, name+".away"); err != nil {
		t.Fatal(err)
	}
	write(t, h, "sys/class/net/eth0/flags", "0x1002\n")
	if restored, err := h.Revert(true); err == nil || !strings.Contains(err.Error(), "eth0 is down. Bring it up, then type weir tune revert") || len(restored) != 1 {
		t.Errorf("%v, %v", restored, err)
	}
	write(t, h, "sys/class/net/eth0/queues/rx-0/rps_cpus", "1\n") // somebody set it: the first revert had finished with it
	write(t, h, "sys/class/net/eth0/flags", "0x1003\n")
	if err := os.Rename(name+".away", name); err != nil {
		t.Fatal(err)
	}
	restored, err := h.Revert(true)
	if err != nil || len(restored) != 1 {
		t.Errorf("%v, %v", restored, err)
	}
	if diff := cmp.Diff([]string{"0", "0-7"}, values(t, h, "eth0:0/rps", eth0Second)); diff != "" {
		t.Error(diff)
	}
}

// TestBesidesQueues checks what a change of a card's queues changes besides: its driver
// resets the settings of all queues and interrupts, whatever their names. What weir had
// set before goes back to the value found before weir.
func TestBesidesQueues(t *testing.T) {
	files := withQueues()
	files["proc/interrupts"] = strings.Replace(files["proc/interrupts"], "eth0-TxRx-1", "first-TxRx-1", 1) // from before the card was renamed
	files["proc/irq/41/first-TxRx-1/.keep"] = ""
	files["sys/class/net/eth0/device/msi_irqs/41"] = "msi\n"
	for _, key := range []string{"eth0/queues", "eth0/threaded"} {
		h, _ := tree(t, files)
		if err := h.Apply(planOf(t, h, nil, tune.Change{Key: "eth0:1/rps", To: "1"})); err != nil {
			t.Fatal(err)
		}
		if err := h.Apply(planOf(t, h, nil, tune.Change{Key: key, To: "1"})); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"proc/irq/40/smp_affinity_list", "proc/irq/41/smp_affinity_list", "proc/irq/44/smp_affinity_list"} {
			write(t, h, name, "2-3\n") // the driver set it
		}
		write(t, h, "sys/class/net/eth0/queues/rx-1/rps_cpus", "00\n")
		write(t, h, "sys/class/net/eth0/queues/tx-1/xps_cpus", "08\n")
		if _, err := h.Revert(true); err != nil {
			t.Fatal(err)
		}
		got := values(t, h, eth0First, "eth0 (interrupt 41)", "eth1 (interrupt 44)", "eth0:1/rps", "eth0:1/xps")
		if diff := cmp.Diff([]string{"0-7", "0-7", "2-3", "", ""}, got); diff != "" {
			t.Errorf("%s: %s", key, diff)
		}
	}
}

// TestQueuesAgain checks that the plan goes on after queues change, and that all is
// undone if the rest fails.
func TestQueuesAgain(t *testing.T) {
	h, files := tree(t, withQueues())
	before := files()
	wide := tune.Change{Key: "eth0/queues", To: "4"}
	p := planOf(t, h, func() ([]tune.Change, error) { return []tune.Change{{Key: eth0First, To: "3"}}, nil }, wide)
	if err := h.Apply(p); err != nil || len(p.Changes) != 2 {
		t.Fatalf("%v, %v", p.Changes, err)
	}
	if diff := cmp.Diff([]string{"4", "3"}, values(t, h, "eth0/queues", eth0First)); diff != "" {
		t.Error(diff)
	}
	if _, err := h.Revert(true); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, files()); diff != "" {
		t.Errorf("after revert (-before +after):\n%s", diff)
	}
	broken := errors.New("no load is told")
	if err := h.Apply(planOf(t, h, func() ([]tune.Change, error) { return nil, broken }, wide)); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	if diff := cmp.Diff(before, files()); diff != "" {
		t.Errorf("after an error (-before +after):\n%s", diff)
	}
}
