package collect

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"

	"weir/internal/host/doctor"
)

// TestThisMachine reads the machine that the test runs on. The bundle must read back, and
// the cores' times must be judged.
func TestThisMachine(t *testing.T) {
	s, err := Collect(t.Context(), Options{Interval: 200 * time.Millisecond, Program: "test"})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := doctor.WriteBundle(&b, s); err != nil {
		t.Fatal(err)
	}
	if _, err := doctor.Read(strings.NewReader(b.String())); err != nil {
		t.Fatal(err)
	}
	r, err := doctor.Examine(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range r.Checks {
		if c.ID == "CPU-1" && c.State == doctor.Unreadable {
			t.Errorf("%+v", c)
		}
	}
	if len(s.CPUs) == 0 || len(s.Interfaces) == 0 || s.Interfaces[0].Name != "lo" || s.Before.Links["lo"] == (doctor.Link{}) && s.After.Links["lo"] == (doctor.Link{}) && s.Before.Links == nil {
		t.Errorf("%d cores, interfaces %+v", len(s.CPUs), s.Interfaces)
	}
	if s.Seconds < 0.2 || s.Cost == nil {
		t.Errorf("%g s, cost %+v", s.Seconds, s.Cost)
	}
}

func TestSNMP6(t *testing.T) {
	snmp := map[string]uint64{"Ip.FragFails": 7}
	if err := parseSNMP6(snmp, "Ip6FragFails \t9\nIcmp6InMsgs\t3\nUdp6RcvbufErrors 4\nUdpLite6InErrors 1\n"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]uint64{"Ip.FragFails": 7, "Ip6.FragFails": 9, "Udp6.RcvbufErrors": 4}, snmp); diff != "" {
		t.Error(diff)
	}
}

func TestParseRuleset(t *testing.T) {
	const ruleset = `{"nftables": [{"metainfo": {"version": "1.0.6"}},
 {"chain": {"family": "inet", "table": "weir", "name": "forward", "type": "filter", "hook": "forward", "prio": 0, "policy": "drop"}},
 {"chain": {"family": "ip", "table": "filter", "name": "FORWARD", "type": "filter", "hook": "forward", "prio": 0, "policy": "drop"}},
 {"chain": {"family": "ip", "table": "nat", "name": "POSTROUTING", "type": "nat", "hook": "postrouting", "prio": 100, "policy": "accept"}},
 {"rule": {"family": "ip", "table": "nat", "chain": "POSTROUTING", "expr": [{"xt": {"type": "target", "name": "MASQUERADE"}}]}},
 {"rule": {"family": "ip", "table": "nat", "chain": "POSTROUTING", "expr": [{"masquerade": {}}]}},
 {"rule": {"family": "ip", "table": "filter", "chain": "FORWARD", "expr": [{"accept": null}]}}]}`
	got, err := parseRuleset([]byte(ruleset), "inet weir")
	want := []doctor.Chain{
		{Name: "nftables ip filter FORWARD", Hook: "forward", Policy: "drop", Accepts: []string{"*"}},
		{Name: "nftables ip nat POSTROUTING", Hook: "postrouting", NAT: true},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
}

// TestAccepts reads the forward chain of a host of virtual machines (libvirt) with Docker, as nft
// prints it.
func TestAccepts(t *testing.T) {
	rule := func(chain, expr string) string {
		return fmt.Sprintf(`,{"rule": {"family": "ip", "table": "filter", "chain": %q, "expr": [%s]}}`, chain, expr)
	}
	const from = `{"match": {"op": "==", "left": {"meta": {"key": "iifname"}}, "right": %q}}`
	const counter, accept = `,{"counter": {"packets": 0, "bytes": 0}}`, `,{"accept": null}`
	chain := `{"nftables": [{"chain": {"family": "ip", "table": "filter", "name": "FORWARD", "hook": "forward", "policy": "drop"}}` +
		rule("FORWARD", `{"counter": {"packets": 1, "bytes": 2}},{"jump": {"target": "LIBVIRT_FWO"}}`) +
		rule("FORWARD", fmt.Sprintf(from, "eth7")+`,{"jump": {"target": "ALL"}}`) +
		rule("FORWARD", `{"match": {"op": "==", "left": {"meta": {"key": "oifname"}}, "right": "br9"}},{"xt": {"type": "match", "name": "conntrack"}}`+accept) +
		rule("FORWARD", fmt.Sprintf(from, "eth8")+`,{"match": {"op": "==", "left": {"payload": {"protocol": "tcp", "field": "dport"}}, "right": 80}}`+accept) +
		rule("FORWARD", `{"match": {"op": "!=", "left": {"meta": {"key": "iifname"}}, "right": "eth9"}}`+accept) +
		rule("FORWARD", `{"match": {"op": "==", "left": {"meta": {"key": "iifname"}}, "right": {"set": ["eth5", "veth*"]}}}`+accept) +
		rule("LIBVIRT_FWO", `{"match": {"op": "==", "left": {"payload": {"protocol": "ip", "field": "saddr"}}, "right": {"prefix": {"addr": "192.168.122.0", "len": 24}}}},`+fmt.Sprintf(from, "virbr0")+counter+accept) +
		rule("LIBVIRT_FWO", fmt.Sprintf(from, "virbr1")+`,{"reject": null}`) +
		rule("ALL", `{"jump": {"target": "ALL"}}`) + rule("ALL", `{"accept": null}`) + `]}`
	got, err := parseRuleset([]byte(chain), "inet weir")
	if err != nil || len(got) != 1 {
		t.Fatalf("%v, %v", got, err)
	}
	if diff := cmp.Diff([]string{"virbr0", "eth7", "eth5", "veth*"}, got[0].Accepts); diff != "" {
		t.Error(diff)
	}
}

// TestFiles reads a machine recorded as files: two cores, an idle state, a card on a bus.
func TestFiles(t *testing.T) {
	sys := t.TempDir()
	for name, text := range map[string]string{
		"devices/system/cpu/online":                                    "0-2",
		"devices/system/cpu/isolated":                                  "1",
		"devices/system/cpu/nohz_full":                                 "2",
		"devices/system/cpu/cpu0/topology/thread_siblings_list":        "0-1",
		"devices/system/cpu/cpu0/cpufreq/scaling_governor":             "powersave",
		"devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq":             "3400000",
		"devices/system/cpu/cpu0/cpufreq/scaling_max_freq":             "3000000",
		"devices/system/cpu/cpu0/cpufreq/base_frequency":               "2400000",
		"devices/system/cpu/cpu1/acpi_cppc/nominal_freq":               "2250",
		"devices/system/cpu/cpu0/node0/x":                              "",
		"devices/system/cpu/cpu0/cpuidle/state0/name":                  "POLL",
		"devices/system/cpu/cpu0/cpuidle/state0/latency":               "0",
		"devices/system/cpu/cpu0/cpuidle/state1/name":                  "C6",
		"devices/system/cpu/cpu0/cpuidle/state1/latency":               "133",
		"devices/system/cpu/cpu0/thermal_throttle/core_throttle_count": "4",
		"devices/pci0/0000:01:00.0/numa_node":                          "1",
		"devices/pci0/0000:01:00.0/vendor":                             "0x8086",
		"devices/pci0/0000:01:00.0/device":                             "0x1539",
		"devices/pci0/0000:01:00.0/current_link_speed":                 "2.5 GT/s PCIe",
		"devices/pci0/0000:01:00.0/max_link_speed":                     "5.0 GT/s PCIe",
		"devices/pci0/0000:01:00.0/current_link_width":                 "1",
		"devices/pci0/0000:01:00.0/max_link_width":                     "4",
		"devices/pci0/0000:01:00.0/link/l0s_aspm":                      "0",
		"devices/pci0/0000:01:00.0/link/l1_aspm":                       "1",
		"class/net/eth0/device/aer_dev_correctable":                    "RxErr 0\nBadTLP 12\nTOTAL_ERR_COR 12",
		"devices/usb2/2-1/2-1:1.0/bInterfaceNumber":                    "00",
		"devices/usb2/2-1/speed":                                       "480",
		"class/net/eth0/ifindex":                                       "2",
		"class/net/eth0/queues/tx-0/tx_timeout":                        "3",
		"class/net/eth0/queues/tx-1/tx_timeout":                        "1",
		"class/net/eth0/queues/rx-0/rps_cpus":                          "00000000,0000000f",
		"class/net/eth0/queues/rx-1/rps_cpus":                          "0",
	} {
		file := filepath.Join(sys, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r := &reader{sys: sys, net: sys, snapshot: &doctor.Snapshot{Unreadable: map[string]string{}}}
	r.host()
	node := 0
	want := []doctor.CPU{
		{ID: 0, Siblings: []int{0, 1}, Node: &node, Governor: "powersave", MaxMHz: 3400, BaseMHz: 2400, LimitMHz: 3000},
		{ID: 1, Isolated: true, BaseMHz: 2250},
		{ID: 2, Isolated: true},
	}
	if diff := cmp.Diff(want, r.snapshot.CPUs); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]doctor.IdleState{{Name: "POLL"}, {Name: "C6", ExitUsec: 133}}, r.snapshot.Host.IdleStates); diff != "" {
		t.Error(diff)
	}
	if got := r.throttle(); got[0] != 4 || len(got) != 1 {
		t.Errorf("throttled %v", got)
	}
	n := &doctor.Interface{Name: "eth0"}
	r.bus(n, "devices/pci0/0000:01:00.0")
	if diff := cmp.Diff(&doctor.PCI{Address: "0000:01:00.0", ID: "8086:1539", Speed: 2.5, MaxSpeed: 5, Width: 1, MaxWidth: 4, ASPM: new(true)}, n.PCI); diff != "" || *n.Node != 1 {
		t.Error(diff)
	}
	usb := &doctor.Interface{Name: "eth1"}
	if r.bus(usb, "devices/usb2/2-1/2-1:1.0"); usb.USB != 480 || usb.PCI != nil || n.USB != 0 {
		t.Errorf("on USB: %+v", usb)
	}
	var c doctor.Counters
	r.busErrors(&c)
	if diff := cmp.Diff(map[string]map[string]uint64{"eth0": {"RxErr": 0, "BadTLP": 12}}, c.Bus); diff != "" {
		t.Error(diff)
	}
	if got, other := r.sendTimeouts("eth0", 2), r.sendTimeouts("eth0", 3); got != 4 || other != 0 {
		t.Errorf("%d timeouts of the interface, %d of another namespace's", got, other)
	}
	if got := r.masks("class/net/eth0/queues/rx-%d/rps_cpus", "eth0"); cmp.Diff([]string{"0-3", ""}, got) != "" {
		t.Errorf("masks %q", got)
	}
}

// TestInterrupts checks that an interrupt named after a card or its device is the card's,
// whatever udev calls the card.
func TestInterrupts(t *testing.T) {
	proc := t.TempDir()
	text := "            CPU0       CPU1\n" +
		" 70:          1          0   xen-dyn    -event     vif0-q0-tx\n 71:          1          0   xen-dyn    -event     vif0-q0-rx\n" +
		" 72:          1          0   xen-dyn    -event     vif10-q0-rx\n 73:          1          0   xen-dyn    -event     eth1-q0-rx\n" +
		" 74:          1          0   xen-dyn    -event     blkif\n 75:          1          0   PCI-MSI 0-edge      virtio1-input.0\n" +
		" 76:          1          0   PCI-MSI 1-edge      virtio10-input.0\n"
	if err := os.WriteFile(filepath.Join(proc, "interrupts"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r := &reader{proc: proc, below: map[string]string{"enX0": "vif-0", "enX10": "vif-10", "ens3": "virtio1"}, snapshot: &doctor.Snapshot{Unreadable: map[string]string{}}}
	for _, name := range []string{"enX0", "enX10", "eth1", "ens3"} {
		r.snapshot.Interfaces = append(r.snapshot.Interfaces, doctor.Interface{Name: name, Kind: "physical"})
	}
	r.interrupts()
	want := []doctor.IRQ{
		{Number: 70, Name: "vif0-q0-tx", Interface: "enX0"}, {Number: 71, Name: "vif0-q0-rx", Interface: "enX0"},
		{Number: 72, Name: "vif10-q0-rx", Interface: "enX10"}, {Number: 73, Name: "eth1-q0-rx", Interface: "eth1"},
		{Number: 75, Name: "virtio1-input.0", Interface: "ens3"},
	}
	if diff := cmp.Diff(want, r.snapshot.IRQs); diff != "" || len(r.snapshot.Unreadable) > 0 {
		t.Errorf("%v\n%s", r.snapshot.Unreadable, diff)
	}
}

// TestDestinations reads the count as the kernel prints it, and says what it cannot read.
func TestDestinations(t *testing.T) {
	for text, want := range map[string]int{"0012 0009 0046 0009 0000 0fff 0000\n": 4095, "": -1, "0012\n": -1, "0012 0009 0046 0009 0000 xyz 0000\n": -1} {
		r := &reader{proc: t.TempDir(), snapshot: &doctor.Snapshot{Unreadable: map[string]string{}}}
		if text != "" {
			if err := os.MkdirAll(r.procFile("net"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(r.procFile("net/rt6_stats"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		var c doctor.Counters
		r.destinations(&c)
		if (c.Destinations6 == nil) != (want < 0) || want >= 0 && *c.Destinations6 != want || (r.snapshot.Unreadable["destinations_ipv6"] != "") != (want < 0 && text != "") {
			t.Errorf("%q: %v, %v", text, c.Destinations6, r.snapshot.Unreadable)
		}
	}
}

// TestUSBInterrupts checks that the interrupts of a USB controller are those of the card on it.
func TestUSBInterrupts(t *testing.T) {
	proc, sys := t.TempDir(), t.TempDir()
	text := "            CPU0       CPU1\n" +
		" 30:          1          0     GICv2  99 Level     xhci-hcd:usb4\n 31:          1          0     GICv2  98 Level     ehci_hcd:usb14\n" +
		" 32:          1          0   PCI-MSI 9-edge      xhci_hcd\n 33:          1          0   PCI-MSI 8-edge      xhci_hcd\n"
	if err := os.WriteFile(filepath.Join(proc, "interrupts"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, device := range map[string]string{"eth1": "devices/platform/ff600000.usb/usb4/4-1/4-1:1.0", "eth2": "devices/pci0/0000:02:00.0/usb6/6-2/6-2:1.0", "eth3": "devices/platform/ff600000.usb/usb4/4-2/4-2:1.0"} {
		for _, folder := range []string{device, "class/net/" + name} {
			if err := os.MkdirAll(filepath.Join(sys, folder), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink(filepath.Join(sys, device), filepath.Join(sys, "class/net", name, "device")); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(sys, "devices/pci0/0000:02:00.0/msi_irqs/33"), 0o755); err != nil {
		t.Fatal(err)
	}
	r := &reader{proc: proc, sys: sys, net: sys, below: map[string]string{}, snapshot: &doctor.Snapshot{Unreadable: map[string]string{}}}
	for _, name := range []string{"eth1", "eth2", "eth3"} {
		r.snapshot.Interfaces = append(r.snapshot.Interfaces, doctor.Interface{Name: name, Kind: "physical"})
	}
	r.interrupts()
	want := []doctor.IRQ{{Number: 30, Name: "xhci-hcd:usb4", Interface: "eth1"}, {Number: 33, Name: "xhci_hcd", Interface: "eth2"}}
	if diff := cmp.Diff(want, r.snapshot.IRQs); diff != "" {
		t.Error(diff)
	}
}

// TestConntrack checks that a kernel without connection tracking counts as tracking
// nothing, and that an unreadable table counts as unknown.
func TestConntrack(t *testing.T) {
	for _, c := range []struct {
		table, count string // contents; "": the file does not exist
		want         *doctor.Conntrack
	}{
		{"", "", &doctor.Conntrack{}},
		{"entries drop\n00000007 00000002\n00000007 00000001\n", "5\n", &doctor.Conntrack{Count: 5, Drop: 3}},
		{"entries drop\n00000007 00000002\n", "", &doctor.Conntrack{Count: 7, Drop: 2}},
		{"", "5\n", nil},
		{"nonsense\n", "5\n", nil},
	} {
		r := &reader{proc: t.TempDir(), snapshot: &doctor.Snapshot{Unreadable: map[string]string{}}}
		for name, text := range map[string]string{"net/stat/nf_conntrack": c.table, "sys/net/netfilter/nf_conntrack_count": c.count} {
			file := filepath.Join(r.proc, name)
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if text == "" {
				continue
			}
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		var got doctor.Counters
		r.conntrack(&got)
		if !cmp.Equal(got.Conntrack, c.want) || (c.want == nil) != (r.snapshot.Unreadable["conntrack"] != "") {
			t.Errorf("%q, %q: %+v, %q", c.table, c.count, got.Conntrack, r.snapshot.Unreadable)
		}
	}
}

// TestJoined reads the aggregate that a member of a bond joined.
func TestJoined(t *testing.T) {
	bond := &doctor.Bond{}
	joined(bond, "eth0", &netlink.Dummy{LinkAttrs: netlink.LinkAttrs{Slave: &netlink.BondSlave{AggregatorId: 3}}})
	joined(bond, "eth1", &netlink.Dummy{LinkAttrs: netlink.LinkAttrs{Slave: &netlink.BondSlave{}}})
	joined(bond, "eth2", &netlink.Dummy{})
	joined(bond, "eth3", nil)
	if diff := cmp.Diff(map[string]int{"eth0": 3}, bond.Aggregates); diff != "" {
		t.Error(diff)
	}
}
