package tune_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/host/tune"
	"weir/internal/host/tune/db"
	"weir/internal/host/undolog"
)

// gateway is a badly configured router: two cards of one queue each, on four cores with
// two threads each.
func gateway() map[string]string {
	files := map[string]string{
		"sys/devices/system/cpu/online": "0-7\n",
		"proc/cpuinfo":                  "",
		"proc/interrupts":               "            CPU0       CPU1\n",
		"proc/17/comm":                  "systemd\n",
	}
	for core := range 8 {
		files[fmt.Sprintf("sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", core)] = fmt.Sprintf("%d,%d\n", core%4, core%4+4)
		files[fmt.Sprintf("sys/devices/system/cpu/cpu%d/cpufreq/scaling_governor", core)] = "schedutil\n"
		files[fmt.Sprintf("sys/devices/system/cpu/cpu%d/cpufreq/scaling_available_governors", core)] = "performance powersave schedutil\n"
		files["proc/cpuinfo"] += fmt.Sprintf("processor : %d\nphysical id : 0\ncore id : %d\n\n", core, core%4)
	}
	for i, card := range []string{"eth0", "eth1"} {
		for name, text := range map[string]string{
			"operstate": "up\n", "address": fmt.Sprintf("02:00:00:00:00:0%d\n", i), "addr_assign_type": "0\n", "ifindex": fmt.Sprintf("%d\n", i+2),
			"statistics/rx_missed_errors": "0\n", "statistics/rx_fifo_errors": "0\n", "threaded": "0\n",
		} {
			files["sys/class/net/"+card+"/"+name] = text
		}
		for queue := range 4 {
			files[fmt.Sprintf("sys/class/net/%s/queues/rx-%d/rps_cpus", card, queue)] = "00\n"
			files[fmt.Sprintf("sys/class/net/%s/queues/tx-%d/xps_cpus", card, queue)] = "00\n"
			files[fmt.Sprintf("proc/irq/%d/smp_affinity_list", 40+4*i+queue)] = "0-7\n"
			files["proc/interrupts"] += fmt.Sprintf(" %d:          1          0  PCI-MSIX-0000:01:00.%d   %d-edge      %s-TxRx-%d\n", 40+4*i+queue, i, queue, card, queue)
		}
		for name, text := range map[string]string{
			"lro": "on\n", "eee": "on\n", "gro": "on\n", "pause": "autoneg on rx on tx on\n", "adaptive-rx": "off\n",
			"queues": "combined 1\n", "queues-max": "combined 4\n", "rings": "rx 256 tx 256\n", "rings-max": "rx 4096 tx 4096\n",
			"hash-udp4": "sd\n", "hash-udp6": "sdfn\n", "indirection": "equal 1\n",
		} {
			files["ethtool/"+card+"/"+name] = text
		}
	}
	return files
}

// with returns gateway with other files.
func with(more map[string]string) map[string]string {
	files := gateway()
	for name, text := range more {
		files[name] = text
	}
	return files
}

func TestPlanCards(t *testing.T) {
	h, files := tree(t, with(map[string]string{
		"proc/net/softnet_stat":                          "0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n",
		"sys/class/net/eth1/statistics/rx_missed_errors": "12\n",
	}))
	before := files()
	p := apply(t, h, tune.Inputs{Role: db.Forwarder})
	want := []string{
		"cpu.governor=performance",
		"nic.eth0.eee=off", "nic.eth0.hash-udp4=sdfn", "nic.eth0.indirection=equal 2", "nic.eth0.irqs=0 1 2 3",
		"nic.eth0.lro=off", "nic.eth0.queues=combined 2", "nic.eth0.xps=11 22 44 88",
		"nic.eth1.eee=off", "nic.eth1.hash-udp4=sdfn", "nic.eth1.indirection=equal 2", "nic.eth1.irqs=0 1 2 3",
		"nic.eth1.lro=off", "nic.eth1.queues=combined 2", "nic.eth1.rings=rx 512 tx 256", "nic.eth1.xps=11 22 44 88",
	}
	if diff := cmp.Diff(want, changes(p)); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	for key, says := range map[string]string{
		"nic.eth0.rings":       "no packet was missed",
		"nic.eth0.pause":       "only a guide recommends autoneg off rx off tx off",
		"nic.eth0.adaptive-rx": "only a guide recommends on",
		"nic.eth0.irqs":        "queues change first",
		"nic.eth0.threaded":    "only a guide",
	} {
		if got := why(p, key); !strings.Contains(got, says) {
			t.Errorf("%s: %q, want %q", key, got, says)
		}
	}
	after := files()
	for name, text := range map[string]string{
		"ethtool/eth0/lro": "off\n", "ethtool/eth0/queues": "combined 2\n", "ethtool/eth1/rings": "rx 512 tx 256\n",
		"proc/irq/41/smp_affinity_list": "1\n", "sys/class/net/eth0/queues/tx-1/xps_cpus": "22\n",
		"sys/devices/system/cpu/cpu7/cpufreq/scaling_governor": "performance\n",
	} {
		if after[name] != text {
			t.Errorf("%s is %q, want %q", name, after[name], text)
		}
	}
	if p := plan(t, h, tune.Inputs{Role: db.Forwarder}); len(p.Changes) > 0 {
		t.Errorf("a second time: %q", changes(p))
	}
	if s := status(t, h); s.Drift != 0 || len(s.Keys) != len(want) || len(s.Unkept) == 0 {
		t.Errorf("status: %+v", s)
	}
	if _, err := h.Revert(false); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, files()); diff != "" {
		t.Errorf("reverted (-before +after):\n%s", diff)
	}
}

// TestPlanCardsLeft checks that settings that keep themselves, or would be undone, are
// left alone.
func TestPlanCardsLeft(t *testing.T) {
	const linkFile = "etc/systemd/network/10-lan.link"
	for _, c := range []struct {
		what      map[string]string
		key, says string
	}{
		{map[string]string{"proc/99/comm": "irqbalance\n"}, "nic.eth0.irqs", "irqbalance runs and sets it"},
		{map[string]string{"proc/99/comm": "power-profiles-\n"}, "cpu.governor", "power-profiles-daemon runs and sets it"},
		{map[string]string{"sys/class/net/eth0/operstate": "down\n"}, "nic.eth0.lro", ""},
		{
			map[string]string{
				"run/udev/data/n2": "E:ID_NET_LINK_FILE=/" + linkFile + "\n", "run/udev/control": "",
				linkFile: "[Match]\nOriginalName=eth*\n[Link]\nLargeReceiveOffload=yes\n",
			},
			"nic.eth0.lro", "the administrator sets it in /" + linkFile,
		},
		{map[string]string{"ethtool/eth0/queues": "combined 4\n"}, "nic.eth0.queues", "it has 4 queues, no more than there are cores"},
		{map[string]string{"ethtool/eth0/queues": "combined 4\n"}, "nic.eth0.rps", "it has 4 queues of its own"},
	} {
		h, _ := tree(t, with(c.what))
		p := plan(t, h, tune.Inputs{Role: db.Forwarder})
		if got := why(p, c.key); !strings.Contains(got, c.says) || (c.says == "") != (got == "") {
			t.Errorf("%v: %s: %q, want %q", c.what, c.key, got, c.says)
		}
		for _, change := range p.Changes {
			if change.Key == c.key {
				t.Errorf("%v: %s is planned", c.what, c.key)
			}
		}
	}
}

// TestPlanCardByName checks that a setting can be named for one card or for all cards.
func TestPlanCardByName(t *testing.T) {
	h, _ := tree(t, gateway())
	for name, want := range map[string][]string{
		"nic.eth1.pause":       {"nic.eth1.pause=autoneg off rx off tx off"},
		"nic.DEV.pause":        {"nic.eth0.pause=autoneg off rx off tx off", "nic.eth1.pause=autoneg off rx off tx off"},
		"nic.eth9.pause":       nil,
		"nic.eth0.threaded":    {"nic.eth0.threaded=1"},
		"nic.eth0.indirection": nil,
	} {
		if diff := cmp.Diff(want, changes(plan(t, h, tune.Inputs{}, name))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for _, name := range []string{"nic.eth0.nonsense", "nic..lro", "nic.eth0.", "nic.a/b.lro"} {
		if _, err := h.Plan(records(t), tune.Inputs{}, name); err == nil {
			t.Errorf("%s is planned", name)
		}
	}
}

// TestPlanPPPoE checks that PPPoE counts as one queue, whatever the card has.
func TestPlanPPPoE(t *testing.T) {
	h, _ := tree(t, with(map[string]string{"ethtool/eth0/queues": "combined 2\n", "ethtool/eth1/queues": "combined 2\n"}))
	p := plan(t, h, tune.Inputs{Role: db.Forwarder, PPPoE: true}, "nic.eth0.rps")
	if diff := cmp.Diff([]string{"nic.eth0.rps=f f f f"}, changes(p)); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
}

// TestPlanQueues checks that only queues beyond the cores are removed, and that none is
// added unless weir doctor misses it.
func TestPlanQueues(t *testing.T) {
	for _, c := range []struct {
		now          string
		cores, ports int
		want         []string
	}{
		{"combined 8", 4, 4, []string{"nic.eth0.queues=combined 4"}},
		{"combined 4", 2, 3, []string{"nic.eth0.queues=combined 2"}},
		{"combined 2", 4, 4, nil},
		{"combined 1", 4, 4, []string{"nic.eth0.queues=combined 2"}},
		{"combined 1", 2, 3, []string{"nic.eth0.queues=combined 2"}},
		{"combined 1", 1, 3, nil},
		{"rx 8 tx 8", 4, 4, []string{"nic.eth0.queues=rx 4 tx 4"}},
	} {
		most := strings.NewReplacer("1", "8", "2", "8", "4", "8").Replace(c.now)
		h, _ := tree(t, with(map[string]string{"ethtool/eth0/queues": c.now + "\n", "ethtool/eth0/queues-max": most + "\n"}))
		p := plan(t, h, tune.Inputs{Cores: c.cores, Ports: c.ports}, "nic.eth0.queues")
		if diff := cmp.Diff(c.want, changes(p)); diff != "" {
			t.Errorf("%s on %d cores with %d ports (-want +got):\n%s", c.now, c.cores, c.ports, diff)
		}
	}
}

// TestPlanQueuesNodes checks that cards of one NUMA node share that node's cores only.
func TestPlanQueuesNodes(t *testing.T) {
	files := map[string]string{"ethtool/eth0/queues-max": "combined 8\n", "ethtool/eth1/queues-max": "combined 8\n", "proc/cpuinfo": ""}
	for core := range 8 {
		files[fmt.Sprintf("sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", core)] = fmt.Sprintf("%d\n", core)
		files["proc/cpuinfo"] += fmt.Sprintf("processor : %d\nphysical id : %d\ncore id : %d\n\n", core, core/4, core%4)
	}
	for _, c := range []struct {
		eth0, eth1 string // cores of the cards' nodes
		want       []string
	}{
		{"0-3", "4-7", []string{"nic.eth0.queues=combined 4", "nic.eth1.queues=combined 4"}},
		{"0-3", "0-3", []string{"nic.eth0.queues=combined 2", "nic.eth1.queues=combined 2"}},
		{"0-7", "0-7", []string{"nic.eth0.queues=combined 4", "nic.eth1.queues=combined 4"}},
	} {
		files["sys/class/net/eth0/device/local_cpulist"], files["sys/class/net/eth1/device/local_cpulist"] = c.eth0+"\n", c.eth1+"\n"
		h, _ := tree(t, with(files))
		if diff := cmp.Diff(c.want, changes(plan(t, h, tune.Inputs{}, "nic.DEV.queues"))); diff != "" {
			t.Errorf("eth0 near %s, eth1 near %s (-want +got):\n%s", c.eth0, c.eth1, diff)
		}
	}
}

// TestChosenCores checks that cores chosen by somebody for a card's packets stay, unless
// the setting is named.
func TestChosenCores(t *testing.T) {
	h, _ := tree(t, with(map[string]string{
		"ethtool/eth0/queues": "combined 2\n", "ethtool/eth1/queues": "combined 2\n", "sys/class/net/eth0/queues/rx-0/rps_cpus": "0c\n",
	}))
	in := tune.Inputs{Role: db.Forwarder, PPPoE: true}
	p := apply(t, h, in)
	if got := why(p, "nic.eth0.rps"); !strings.Contains(got, "cores were already chosen by somebody else") {
		t.Errorf("eth0: %q", got)
	}
	if got := strings.Join(changes(p), "\n"); strings.Contains(got, "eth0.rps") || !strings.Contains(got, "nic.eth1.rps=f f f f") {
		t.Errorf("changes: %s", got)
	}
	if p := plan(t, h, in); len(p.Changes) > 0 || !slices.Contains(p.Fit, "nic.eth1.rps") {
		t.Errorf("a second time: %q, fit %q", changes(p), p.Fit)
	}
	if diff := cmp.Diff([]string{"nic.eth0.rps=f f f f"}, changes(plan(t, h, in, "nic.eth0.rps"))); diff != "" {
		t.Errorf("by name (-want +got):\n%s", diff)
	}
}

// TestIsolatedCores checks that cores kept free by the administrator get no packets and
// do not count for queues. The sibling of an isolated thread counts as a core.
func TestIsolatedCores(t *testing.T) {
	for name, text := range map[string]string{"isolated": "2-3,6\n", "nohz_full": "2-3,6\n"} {
		h, _ := tree(t, with(map[string]string{
			"ethtool/eth0/queues": "combined 2\n", "ethtool/eth1/queues": "combined 2\n",
			"sys/devices/system/cpu/isolated": "\n", "sys/devices/system/cpu/nohz_full": "(null)\n",
			"sys/devices/system/cpu/" + name: text,
		}))
		p := plan(t, h, tune.Inputs{Role: db.Forwarder, PPPoE: true}, "nic.eth0.rps", "nic.eth0.irqs")
		if diff := cmp.Diff([]string{"nic.eth0.irqs=0 1 7 0", "nic.eth0.rps=83 83 83 83"}, changes(p)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if p.Inputs.Cores != 3 {
			t.Errorf("%s: %d cores", name, p.Inputs.Cores)
		}
	}
}

// TestKeepCards checks that, where udev runs, weir's .link file replaces the one that
// udev used. It repeats that file's lines and adds weir's settings. The unit keeps the
// rest.
func TestKeepCards(t *testing.T) {
	const vendor = "usr/lib/systemd/network/99-default.link"
	h, files := tree(t, with(map[string]string{
		"run/udev/control": "", "run/udev/data/n2": "I:1\nE:ID_NET_LINK_FILE=/" + vendor + "\n", "run/systemd/system/x": "",
		vendor: "[Match]\nOriginalName=*\n\n[Link]\n# names\nNamePolicy=keep kernel\nMACAddressPolicy=persistent\n",
	}))
	h.Program = "/usr/local/bin/weir"
	before := files()
	apply(t, h, tune.Inputs{}, "nic.eth0.lro", "nic.eth0.pause", "nic.eth0.queues", "nic.eth0.eee", "nic.eth1.lro", "nic.eth0.rings")
	const want = `# Written by weir tune apply; weir tune revert removes it. It replaces
# /usr/lib/systemd/network/99-default.link
# for eth0: it repeats that file, then adds what weir has set.
[Match]
PermanentMACAddress=02:00:00:00:00:00

[Link]
NamePolicy=keep kernel
MACAddressPolicy=persistent

# WHY
LargeReceiveOffload=no

# WHY
AutoNegotiationFlowControl=no
RxFlowControl=no
TxFlowControl=no

# WHY
CombinedChannels=2

# WHY
RxBufferSize=512
TxBufferSize=256
`
	after := files()
	var got strings.Builder
	for line := range strings.Lines(after["etc/systemd/network/70-weir-tune-eth0.link"]) {
		if strings.HasPrefix(line, "# ") && strings.HasSuffix(strings.TrimSpace(got.String()), "=no") || strings.HasSuffix(got.String(), "\n\n") && strings.HasPrefix(line, "# ") {
			line = "# WHY\n"
		}
		got.WriteString(line)
	}
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("link (-want +got):\n%s", diff)
	}
	if unit := after["etc/systemd/system/weir-tune.service"]; !strings.Contains(unit, "\nExecStart=/usr/local/bin/weir tune restore\n") {
		t.Errorf("unit: %q", unit)
	}
	if to, err := os.Readlink(filepath.Join(h.Root, "etc/systemd/system/multi-user.target.wants/weir-tune.service")); err != nil || to != "/etc/systemd/system/weir-tune.service" {
		t.Errorf("its link: %q, %v", to, err)
	}
	if s := status(t, h); len(s.Unkept) > 0 {
		t.Errorf("not kept: %q", s.Unkept)
	}
	// After the next start, udev uses weir's file. The card has its driver's defaults
	// except for that file's settings.
	write(t, h, "run/udev/data/n2", "E:ID_NET_LINK_FILE=/etc/systemd/network/70-weir-tune-eth0.link\n")
	write(t, h, "ethtool/eth0/eee", "on\n")
	write(t, h, "ethtool/eth1/lro", "on\n")
	if _, err := h.Restore(); err != nil {
		t.Fatal(err)
	}
	if s := status(t, h); s.Drift != 0 {
		t.Errorf("restored: %+v", s)
	}
	apply(t, h, tune.Inputs{}, "nic.eth0.adaptive-rx")
	link := files()["etc/systemd/network/70-weir-tune-eth0.link"]
	if !strings.HasPrefix(link, want[:strings.Index(want, "# WHY")]) || !strings.Contains(link, "UseAdaptiveRxCoalesce=yes\n") {
		t.Errorf("made again from itself: %s", link)
	}
	if _, err := h.Revert(false); err != nil {
		t.Fatal(err)
	}
	write(t, h, "run/udev/data/n2", before["run/udev/data/n2"])
	if diff := cmp.Diff(before, files()); diff != "" {
		t.Errorf("reverted (-before +after):\n%s", diff)
	}
}

// write writes a file of the tree.
func write(t *testing.T, h *tune.Host, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(h.Root, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestCardsFail checks that a failing card setting undoes the whole transaction, and that
// settings lost with the queues are put back after the queues.
func TestCardsFail(t *testing.T) {
	h, files := tree(t, gateway())
	before := files()
	p := plan(t, h, tune.Inputs{Role: db.Forwarder})
	p.Changes = append(p.Changes, tune.Change{Key: "nic.eth0.nonsense", From: "1", To: "2"})
	if err := h.Apply(p); err == nil || !strings.Contains(err.Error(), `set nic.eth0.nonsense to "2": no such file`) {
		t.Errorf("apply: %v", err)
	}
	if diff := cmp.Diff(before, files()); diff != "" {
		t.Errorf("afterwards (-before +after):\n%s", diff)
	}
}

// TestInterruptNames checks that interrupts are found by the names that drivers give
// them, in the order of the queues. Interrupts of other cards, of no queue, or only for
// sending do not count.
func TestInterruptNames(t *testing.T) {
	for _, names := range [][]string{
		{"eth0-TxRx-0", "eth0-TxRx-1"},                   // igb, ixgbe
		{"i40e-eth0-TxRx-0", "i40e-eth0-TxRx-1"},         // i40e, ice
		{"eth0-rx-0", "eth0-rx-1"},                       // r8125
		{"eth0-0", "eth0-1"},                             // bnx2, stmmac
		{"eth0-fp-0", "eth0-fp-1"},                       // bnx2x
		{"0000:03:00.0-input.0", "0000:03:00.0-input.1"}, // virtio, by its bus address
		{"mlx5_comp0@pci:0000:03:00.0", "mlx5_comp1@pci:0000:03:00.0"},
		{"eth0-rx-2", "eth0-rx-3"}, // vmxnet3, tg3: after those that send
		{"gve-ntfy-blk2@pci:0000:03:00.0", "gve-ntfy-blk3@pci:0000:03:00.0"},
		{"vif3-q0-rx", "vif3-q1-rx"}, // xen-netfront
	} {
		text := " CPU0\n 9: 1 PCI eth0\n 10: 1 PCI eth0-tx-0\n 11: 1 PCI eth10-TxRx-0\n 12: 1 PCI mlx5_comp0@pci:0000:04:00.0\n 13: 1 PCI eth0-misc\n"
		place := "0000:03:00.0"
		switch {
		case strings.HasPrefix(names[0], "gve"):
			text += " 14: 1 PCI gve-ntfy-blk0@pci:0000:03:00.0\n 15: 1 PCI gve-ntfy-blk1@pci:0000:03:00.0\n"
		case strings.HasPrefix(names[0], "vif"):
			text, place = text+" 14: 1 xen vif3-q0-tx\n 15: 1 xen vif30-q0-rx\n", "vif-3"
		}
		text += " 31: 1 PCI " + names[1] + "\n 30: 1 PCI " + names[0] + "\nNMI: 0 " + names[0] + "\n"
		h, _ := tree(t, map[string]string{"proc/interrupts": text, "proc/irq/30/smp_affinity_list": "2\n", "proc/irq/31/smp_affinity_list": "0-3\n"})
		device := filepath.Join(h.Root, "sys/class/net/eth0/device")
		if err := errors.Join(os.RemoveAll(device), os.Symlink("../../../"+place, device)); err != nil {
			t.Fatal(err)
		}
		if got, err := h.Read("nic.eth0.irqs"); err != nil || got != "2 0-3" {
			t.Errorf("%s: %q, %v", names[0], got, err)
		}
	}
}

// TestInterruptsOfTwoCards checks that two cards begin at different cores, and that cores
// near the card come first.
func TestInterruptsOfTwoCards(t *testing.T) {
	h, _ := tree(t, with(map[string]string{
		"ethtool/eth0/queues": "combined 2\n", "ethtool/eth1/queues": "combined 2\n",
		"sys/class/net/eth1/device/local_cpulist": "2-3,6-7\n",
	}))
	p := plan(t, h, tune.Inputs{}, "nic.DEV.irqs")
	if diff := cmp.Diff([]string{"nic.eth0.irqs=0 1 2 3", "nic.eth1.irqs=2 3 0 1"}, changes(p)); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
}

// TestInterruptsNodes checks that each card gets free cores of its own node, and that two
// cards on the same first core are separated.
func TestInterruptsNodes(t *testing.T) {
	for _, c := range []struct {
		name string
		more map[string]string
		want []string
	}{
		{"two nodes", map[string]string{
			"sys/class/net/eth0/device/local_cpulist": "0-3\n", "sys/class/net/eth1/device/local_cpulist": "4-7\n",
		}, []string{"nic.eth0.irqs=0 1 2 3", "nic.eth1.irqs=4 5 6 7"}},
		{"both on the first core", map[string]string{
			"proc/interrupts":               " CPU0\n 40: 1 PCI eth0-TxRx-0\n 44: 1 PCI eth1-TxRx-0\n",
			"proc/irq/40/smp_affinity_list": "0\n", "proc/irq/44/smp_affinity_list": "0\n",
		}, []string{"nic.eth1.irqs=1"}},
		{"one settled", map[string]string{
			"proc/irq/40/smp_affinity_list": "7\n", "proc/irq/41/smp_affinity_list": "6\n",
			"proc/irq/42/smp_affinity_list": "5\n", "proc/irq/43/smp_affinity_list": "4\n",
		}, []string{"nic.eth1.irqs=0 1 2 3"}},
	} {
		files := map[string]string{"ethtool/eth0/queues": "combined 4\n", "ethtool/eth1/queues": "combined 4\n"}
		for core := range 8 {
			files[fmt.Sprintf("sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", core)] = fmt.Sprintf("%d\n", core)
		}
		for name, text := range c.more {
			files[name] = text
		}
		h, _ := tree(t, with(files))
		var got []string
		for _, change := range changes(apply(t, h, tune.Inputs{Role: db.Forwarder})) {
			if strings.Contains(change, ".irqs=") {
				got = append(got, change)
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
		if p := plan(t, h, tune.Inputs{Role: db.Forwarder}); len(p.Changes) > 0 {
			t.Errorf("%s, a second time: %q", c.name, changes(p))
		}
	}
}

// TestRestoreMissing checks that, at boot, missing settings are named and the others are
// set.
func TestRestoreMissing(t *testing.T) {
	h, files := tree(t, with(map[string]string{"run/systemd/system/x": ""}))
	apply(t, h, tune.Inputs{}, "nic.eth0.irqs", "nic.eth1.lro")
	if unit := files()["etc/systemd/system/weir-tune.service"]; !strings.Contains(unit, "\nWants=network-online.target\n") || strings.Contains(unit, "Before=") {
		t.Errorf("unit: %s", unit)
	}
	write(t, h, "proc/interrupts", " CPU0\n")
	write(t, h, "ethtool/eth1/lro", "on\n")
	if _, err := h.Restore(); err == nil || !strings.Contains(err.Error(), "nic.eth0.irqs") {
		t.Errorf("restore: %v", err)
	}
	if got := files()["ethtool/eth1/lro"]; got != "off\n" {
		t.Errorf("eth1.lro is %q", got)
	}
}

// TestKeepCardsDropIn checks that weir writes no .link file in place of one with
// drop-ins, because they would no longer apply.
func TestKeepCardsDropIn(t *testing.T) {
	const vendor = "usr/lib/systemd/network/99-default.link"
	for _, folder := range []string{"etc", "run", "usr/local/lib", "usr/lib", "told"} {
		udev := "E:ID_NET_LINK_FILE=/" + vendor + "\n"
		if folder == "told" {
			udev += "E:ID_NET_LINK_FILE_DROPINS=/x/99-default.link.d/names.conf\n"
		}
		h, files := tree(t, with(map[string]string{
			"run/udev/control": "", "run/udev/data/n2": udev, "run/systemd/system/x": "", vendor: "[Link]\nNamePolicy=keep\n",
			folder + "/systemd/network/99-default.link.d/names.conf": "[Link]\nNamePolicy=mac\n",
		}))
		apply(t, h, tune.Inputs{}, "nic.eth0.lro")
		now := files()
		if text, there := now["etc/systemd/network/70-weir-tune-eth0.link"]; there || now["etc/systemd/system/weir-tune.service"] == "" {
			t.Errorf("%s: a file is written, or no unit: %s", folder, text)
		}
	}
}

// TestDropInSets checks that the administrator's drop-ins count as his settings, also if
// weir has a file of its own by then. The last by name wins. The distribution's drop-ins
// do not count.
func TestDropInSets(t *testing.T) {
	const vendor = "usr/lib/systemd/network/99-default.link"
	const eth0 = "nic.eth0.lro"
	for _, c := range []struct{ folder, text, want string }{
		{"etc", "[Link]\nLargeReceiveOffload=yes\n", "the administrator sets it in /etc/systemd/network/99-default.link.d/mine.conf"},
		{"run", "[Link]\nLargeReceiveOffload = yes\n", "the administrator sets it in /run/systemd/network/99-default.link.d/mine.conf"},
		{"usr/local/lib", "[Link]\nLargeReceiveOffload=yes\n", "the administrator sets it in /usr/local/lib/systemd/network/99-default.link.d/mine.conf"},
		{"usr/lib", "[Link]\nLargeReceiveOffload=yes\n", ""},
		{"etc", "[Match]\nLargeReceiveOffload=yes\n[Link]\n#LargeReceiveOffload=yes\nGenericReceiveOffload=yes\n", ""},
	} {
		dropIn := c.folder + "/systemd/network/99-default.link.d/mine.conf"
		udev := map[string]string{
			"run/udev/control": "", "run/udev/data/n2": "E:ID_NET_LINK_FILE=/" + vendor + "\n", "run/systemd/system/x": "", vendor: "[Link]\nNamePolicy=keep\n",
			"etc/systemd/network/99-default.link.d/0.conf": "[Link]\nNamePolicy=mac\n", dropIn: c.text,
		}
		h, _ := tree(t, with(udev))
		if got := why(plan(t, h, tune.Inputs{}, eth0), eth0); got != c.want {
			t.Errorf("%s: %q; want %q", dropIn, got, c.want)
		}
		delete(udev, dropIn)
		delete(udev, "etc/systemd/network/99-default.link.d/0.conf")
		h, _ = tree(t, with(udev))
		apply(t, h, tune.Inputs{}, "nic.eth0.gro", eth0)
		write(t, h, "run/udev/data/n2", "E:ID_NET_LINK_FILE=/etc/systemd/network/70-weir-tune-eth0.link\n")
		put(t, h, dropIn, c.text)
		if got := why(plan(t, h, tune.Inputs{}, eth0), eth0); got != c.want {
			t.Errorf("%s, behind weir's file: %q; want %q", dropIn, got, c.want)
		}
	}
}

// TestRevertAway checks that a setting that its card does not have at the moment stays in
// the journal, because it returns with weir's value. A setting that is gone with its card
// is dropped.
func TestRevertAway(t *testing.T) {
	files := gateway()
	h, _ := tree(t, files)
	apply(t, h, tune.Inputs{}, "nic.eth0.irqs", "nic.eth1.lro")
	write(t, h, "proc/interrupts", " CPU0\n")
	if restored, err := h.Revert(false); err == nil || !strings.Contains(err.Error(), "nic.eth0.irqs: its card is missing at the moment") || len(restored) != 1 {
		t.Errorf("revert: %+v, %v", restored, err)
	}
	if s := status(t, h); len(s.Keys) != 1 {
		t.Errorf("status: %+v", s)
	}
	write(t, h, "proc/interrupts", files["proc/interrupts"])
	if _, err := h.Revert(false); err != nil {
		t.Error(err)
	}
	if got, err := h.Read("nic.eth0.irqs"); err != nil || got != "0-7 0-7 0-7 0-7" {
		t.Errorf("irqs are %q, %v", got, err)
	}
	apply(t, h, tune.Inputs{}, "nic.eth0.irqs")
	write(t, h, "proc/interrupts", " CPU0\n")
	if err := os.RemoveAll(filepath.Join(h.Root, "sys/class/net/eth0")); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Revert(false); err != nil || len(status(t, h).Keys) != 0 {
		t.Errorf("without the card: %v", err)
	}
}

// TestBesidesSetSince checks that revert, and a trial that is put back, keep what
// somebody has set since next to weir's change.
func TestBesidesSetSince(t *testing.T) {
	h, _ := tree(t, gateway())
	apply(t, h, tune.Inputs{}, "nic.eth0.rings")
	write(t, h, "sys/class/net/eth0/queues/rx-0/rps_cpus", "0c\n")
	if err := h.Try(t.Context(), plan(t, h, tune.Inputs{}, "nic.eth0.queues"), 0); !errors.Is(err, undolog.ErrUnconfirmed) {
		t.Fatal(err)
	}
	if got, err := h.Read("nic.eth0.rps"); err != nil || got != "0c 00 00 00" {
		t.Errorf("behind a trial: %q, %v", got, err)
	}
	if _, err := h.Revert(false); err != nil {
		t.Fatal(err)
	}
	if got, err := h.Read("nic.eth0.rps"); err != nil || got != "0c 00 00 00" {
		t.Errorf("reverted: %q, %v", got, err)
	}
}
