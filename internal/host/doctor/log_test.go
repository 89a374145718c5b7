package doctor

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// logged are messages as they stand in public reports, each with the check that it means.
var logged = []struct{ text, check, device string }{
	{"nf_conntrack: nf_conntrack: table full, dropping packet", "CT-1", ""},
	{"ip_conntrack: table full, dropping packet.", "CT-1", ""},
	{"nf_conntrack: expectation table full", "CT-1", ""},
	{"neighbour: arp_cache: neighbor table overflow!", "NEIGH-1", ""},
	{"igc 0000:06:00.0 eno1: PCIe link lost, device now detached", "HANG-1", "eno1"},
	{"ixgbe 0000:03:00.0: Adapter removed", "HANG-1", "0000:03:00.0"},
	{"igb 0000:02:00.0: Unable to change power state from D3cold to D0, device inaccessible", "HANG-1", "0000:02:00.0"},
	{"nvme 0000:02:00.0: Unable to change power state from D3cold to D0, device inaccessible", "", ""},
	{"i40e 0000:01:00.0 ens1f0: tx_timeout: VSI_seid: 390, Q 4, NTC: 0x1cb, HWB: 0x1cb, NTU: 0x1f5, TAIL: 0x1f5, INT: 0x1", "HANG-1", "ens1f0"},
	{"r8152 2-1:1.0 eth1: Tx timeout", "HANG-1", "eth1"},
	{"iwlwifi 0000:01:00.0: swiotlb buffer is full (sz: 4096 bytes), total 512 (slots), used 512 (slots)", "MEM-1", "iwlwifi"},
	{"DMA: Out of SW-IOMMU space for 9100 bytes at device 0000:02:00.0", "MEM-1", ""},
	{"NETDEV WATCHDOG: eth0 (mtk_soc_eth): transmit queue 0 timed out", "HANG-1", "eth0"},
	{"r8169 0000:0e:00.0 enp14s0: NETDEV WATCHDOG: CPU: 16: transmit queue 0 timed out 5002 ms", "HANG-1", "enp14s0"},
	{"e1000e 0000:00:1f.6 eno1: Detected Hardware Unit Hang:", "HANG-1", "eno1"},
	{"re0: watchdog timeout", "HANG-1", "re0"},
	{"swapper/0: page allocation failure: order:0, mode:0x20", "MEM-1", ""},
	{"irq/40-eth0: page allocation failure: order:2, mode:0x40a20(GFP_ATOMIC|__GFP_COMP), nodemask=(null)", "MEM-1", ""},
	{"TCP: too many orphaned sockets", "MEM-2", ""},
	{"TCP: request_sock_TCP: Possible SYN flooding on port 80. Sending cookies.  Check SNMP counters.", "SOCK-2", ""},
	{"nf_queue: full at 1024 entries, dropping packets(s)", "NFQ-1", ""},
	{"Route cache is full: consider increasing sysctl net.ipv6.route.max_size.", "DST-1", ""},
	{"UDP: bad checksum. From 192.0.2.7:40000 to 192.0.2.9:8472 ulen 58", "SUM-1", ""},
	{"mce: CPU3: Core temperature above threshold, cpu clock throttled (total events = 91)", "THR-1", ""},
	{"ice 0000:81:00.0: The DDP package file was not found or could not be read. Entering Safe Mode", "DOC-1", ""},
	{"RTL8211F Gigabit Ethernet stmmac-0:01 eth0: Downshift occurred from negotiated speed 1Gbps to actual speed 100Mbps, check cabling!", "LINK-1", "eth0"},
	{"[zone: pf states] PF states limit reached", "PF-1", ""},
	{"[zone: mbuf_cluster] kern.ipc.nmbclusters limit reached", "BSD-6", ""},
	{"ena 0000:00:05.0 ens5: Found a Tx that wasn't completed on time, qid 3, index 612.", "HANG-1", "ens5"},
	{"i40e 0000:3b:00.0: TX driver issue detected on PF 0", "HANG-1", "0000:3b:00.0"},
	{"sfc 0000:05:00.0 ens2f0np0: TX stuck with port_enabled=1: resetting channels", "HANG-1", "ens2f0np0"},
	{"ath10k_pci 0000:01:00.0: firmware crashed! (guid 9f1c)", "HANG-1", "0000:01:00.0"},
	{"iwlwifi 0000:03:00.0: Microcode SW error detected.  Restarting 0x2000000.", "HANG-1", "0000:03:00.0"},
	{"irq 16: nobody cared (try booting with the \"irqpoll\" option)", "HANG-1", ""},
	{"AMD-Vi: Event logged [IO_PAGE_FAULT device=01:00.0 domain=0x000c address=0xfe000000 flags=0x0000]", "HANG-1", ""},
	{"ixgbe 0000:04:00.0 eth2: Network adapter has been stopped because it has overheated.", "THR-1", "eth2"},
	{"ixgbe 0000:01:00.0: This is not sufficient for optimal performance of this card.", "PCI-1", "0000:01:00.0"},
	{"mvneta f1070000.ethernet eth0: Can't refill queue with allocated buffers", "MEM-1", "eth0"},
	{"macb fd580000.ethernet eth0: Unable to allocate sk_buff, rx ring empty", "MEM-1", "eth0"},
	{"ixgbe 0000:0b:00.0: failed to initialize because an unsupported SFP+ module type was detected.", "ERR-1", "0000:0b:00.0"},
	{"br0: dropped over-mtu packet: 1504 > 1500", "PATH-1", "br0"},
	{"TCP: eno2: Driver has suspect GRO implementation, TCP performance may be compromised.", "OFF-1", "eno2"},
	{"eth3: hw csum failure", "SUM-1", "eth3"},
	{"TCP: time wait bucket table overflow", "SOCK-2", ""},
	{"sonewconn: pcb 0xfffff8000f5d2740: Listen queue overflow: 193 already in queue awaiting acceptance", "SOCK-2", ""},
	{"nf_ct_sip: dropping packet: cannot parse header IN= OUT= ", "CT-1", "sip"},
	{"r8169 0000:02:00.0: Direct firmware load for rtl_nic/rtl8168g-2.fw failed with error -2", "DOC-1", "0000:02:00.0"},
	{"Bluetooth: hci0: command 0x0c03 tx timeout", "", ""},
	{"qla2xxx [0000:05:00.0]-d04c:1: MBX Command timeout for cmd 54, iocontrol=0 jiffies=1014c3d47", "", ""},
	{"ucsi_acpi USBC000:00: command 17 timed out, no response", "", ""},
	{"ath10k_pci 0000:01:00.0: firmware ver 10.2.4-1.0-00047 api 5 features no-p2p,raw-mode,mfp,allows-mesh-bcast crc32 35bd9258", "", ""},
	{"pcieport 0000:00:1c.0: AER: enabled with IRQ 122", "", ""},
	{"ixgbe 0000:01:00.0: Multiqueue Enabled: Rx Queue count = 8, Tx Queue count = 8 XDP Queue count = 0", "", ""},
	{"igb 0000:02:00.0 eth0: igb: eth0 NIC Link is Up 1000 Mbps Full Duplex, Flow Control: RX/TX", "", ""},
	{"ftgmac100 1e660000.ethernet eth0: [ISR] = 0x207: NO_RXBUF ", "MEM-1", "eth0"},
	{"nvme nvme0: I/O 512 QID 3 timeout, reset controller, command timed out", "", ""},
	{"amdgpu 0000:0a:00.0: ring gfx timeout, transmit stuck", "", ""},
	{"kworker/0:1: page allocation failure: order:4, mode:0xcc0(GFP_KERNEL)", "", ""},
	{"eth0: renamed from veth1a2b3c", "", ""},
	{"audit: type=1400 apparmor=\"DENIED\" name=\"/etc/shadow\"", "", ""},
}

// TestLogged checks that each message is a finding of its check, and that others leave no trace.
func TestLogged(t *testing.T) {
	for _, c := range logged {
		var l Log
		ago := 600.0
		if known := l.Add(c.text, &ago); known != (c.check != "") {
			t.Errorf("%q: known %t", c.text, known)
		}
		b := newBox(4)
		b.card("eth0", "igc", 2500, 4, 4)
		b.s.Log = l.Messages()
		r, err := Examine(b.s, nil)
		if err != nil {
			t.Fatal(err)
		}
		if r.Verdict.Check != c.check || c.check != "" && (r.Findings[0].Subject != c.device || r.Findings[0].Severity != Warning || len(r.Findings[0].Remedies) == 0) {
			t.Errorf("%q: %s %q: %s", c.text, r.Verdict.Check, c.device, r.Verdict.Sentence)
			continue
		}
		if c.check == "" {
			continue
		}
		if i := slices.IndexFunc(r.Checks, func(j CheckResult) bool { return j.ID == c.check }); r.Checks[i].State != Found {
			t.Errorf("%s: state %s", c.check, r.Checks[i].State)
		}
		for _, m := range r.Findings[0].Remedies {
			if strings.Contains(m.Command+m.Text, "%s") {
				t.Errorf("%q: %+v", c.text, m)
			}
		}
	}
}

// TestLoggedOnce checks how messages count: those of one thing together, links from the third time on, old ones as
// notices, and those of what a check finds by itself as its evidence.
func TestLoggedOnce(t *testing.T) {
	const down = "igc 0000:01:00.0 eth0: NIC Link is Down"
	for _, c := range []struct {
		times    int
		ago      float64
		severity string
	}{{2, 60, ""}, {3, 60, "warning"}, {3, recent + 1, "notice"}} {
		var l Log
		for range c.times {
			l.Add(down, &c.ago)
		}
		if len(l.Messages()) != 1 || l.Messages()[0].Count != c.times {
			t.Fatalf("%+v", l.Messages())
		}
		b := newBox(2)
		b.card("eth0", "igc", 2500, 2, 2)
		b.s.Log = l.Messages()
		if r, err := Examine(b.s, nil); c.severity != "" && (err != nil || !strings.HasPrefix(r.Findings[0].Remedies[0].Text, "if somebody set the card up anew")) {
			t.Errorf("%v: %+v", err, r.Findings)
		}
		if got := b.severityOf(t, "ERR-1"); got != c.severity {
			t.Errorf("%d times, %g s ago: %q, want %q", c.times, c.ago, got, c.severity)
		}
		b.s.Host.Namespace = true
		if got := b.severityOf(t, "ERR-1"); got != "" {
			t.Errorf("in a namespace: %q", got)
		}
	}
	var l Log
	for _, ago := range []float64{900000, 800000, 700000, 60} { // once an hour ago is not again and again
		l.Add(down, &ago)
	}
	seldom := newBox(2)
	seldom.card("eth0", "igc", 2500, 2, 2)
	seldom.s.Log = l.Messages()
	if got := seldom.severityOf(t, "ERR-1"); got != "notice" {
		t.Errorf("seldom: %q", got)
	}
	b := newBox(2)
	b.card("eth0", "igc", 2500, 2, 2)
	b.s.After.Conntrack.Count = 262144
	b.s.Log = []Message{{Text: logged[0].text, Count: 7}}
	r, err := Examine(b.s, nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(slices.DeleteFunc(slices.Clone(r.Findings), func(f Finding) bool { return f.Check != "CT-1" })); n != 1 || !strings.Contains(strings.Join(r.Findings[0].Evidence, "\n"), "kernel's log, 7 times: nf_conntrack") {
		t.Errorf("%d findings: %+v", n, r.Findings[0])
	}
}

// severityOf returns the severity of a check's first finding; "": it has none.
func (b *box) severityOf(t *testing.T, check string) string {
	t.Helper()
	r, err := Examine(b.s, nil)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.Check == check })
	if i < 0 {
		return ""
	}
	return r.Findings[i].Severity.String()
}

// TestLoggedPlain checks that evidence of a log has nothing that a terminal would obey, whether it was read from a log or
// from a bundle.
func TestLoggedPlain(t *testing.T) {
	const text = "\x1b[31mnf_conntrack: table full\x1b]0;owned\a\u202e,\tdropping packet"
	var l Log
	l.Add("nf_conntrack: table full"+strings.Repeat("\x1b", 2*longest), nil)
	if kept := l.Messages()[0].Text; len(kept) != longest || strings.Contains(kept, "\x1b") {
		t.Errorf("%d bytes: %q", len(kept), kept)
	}
	l = Log{}
	l.Add(text, nil)
	for name, log := range map[string][]Message{"read": l.Messages(), "bundle": {{Text: text}}} {
		b := newBox(2)
		b.card("eth0", "igc", 2500, 2, 2)
		b.s.Log = log
		r, err := Examine(b.s, nil)
		if err != nil {
			t.Fatal(err)
		}
		const want = "kernel's log, once: .[31mnf_conntrack: table full.]0;owned.., dropping packet"
		if got := r.Findings[0].Evidence; !slices.Equal(got, []string{want}) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// TestReadLog reads logs as people post them.
func TestReadLog(t *testing.T) {
	for name, text := range map[string]string{
		"dmesg":    "[    0.000000] Linux version 6.1\n[ 1234.567890] nf_conntrack: table full, dropping packet\n[ 1235.1] nf_conntrack: table full, dropping packet\n",
		"dmesg -T": "[Mon Nov 30 22:55:01 2026] nf_conntrack: table full, dropping packet\n[Mon Nov 30 22:55:02 2026] nf_conntrack: table full, dropping packet\n",
		"syslog":   "Nov 30 22:55:01 router kernel: [12345.678901] nf_conntrack: table full, dropping packet\nNov 30 22:55:01 router sshd[1]: hello\nNov  3 22:55:01 router kernel: nf_conntrack: table full, dropping packet\n",
		"logread":  "Mon Nov 30 22:55:01 2026 kern.warn kernel: [  812.1] nf_conntrack: table full, dropping packet\nMon Nov 30 22:55:02 2026 kern.warn kernel: [  812.2] nf_conntrack: table full, dropping packet\n",
		"prose":    "I see this all day:\r\n\r\n  nf_conntrack: table full, dropping packet\r\n  nf_conntrack: table full, dropping packet\r\nWhat can I do?\r\n",
	} {
		s, err := Read(strings.NewReader(text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want := Message{Text: "nf_conntrack: table full, dropping packet", Count: 2}
		if name == "dmesg" || name == "logread" { // all have the kernel's own time
			want.LastHour, want.Ago = 2, new(float64)
		}
		if diff := cmp.Diff([]Message{want}, s.Log); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		r, err := Examine(s, nil)
		if err != nil || r.Verdict.Check != "CT-1" || r.Findings[0].Severity != Warning || !strings.Contains(strings.Join(r.Notes, "\n"), "dmesg (2 of ") {
			t.Errorf("%s: %v: %s, %q", name, err, r.Verdict.Check, r.Notes)
		}
	}
	if _, err := Read(strings.NewReader("[ 1.0] eth0: renamed from veth1\n")); !errors.Is(err, ErrForeign) {
		t.Error(err)
	}
}

// TestReadLogAges checks how old the messages of a log are by the kernel's own time: the log's last line is now.
func TestReadLogAges(t *testing.T) {
	const full = "nf_conntrack: nf_conntrack: table full, dropping packet\n"
	for name, c := range map[string]struct {
		text, severity, when string
	}{
		"at the boot, 300 days ago":     {"[   61.5] " + full + "[25920061.5] eth0: renamed from veth1\n", "notice", "once, last 300 days ago"},
		"two hours ago":                 {"<4>[   10.0] " + full + "[ 7210.25] eth0: renamed from veth1\n", "notice", "once, last 2 hours ago"},
		"ten minutes ago":               {"[ 1000.0] " + full + "[ 1600.0] usb 1-1: new device\n", "warning", "once, last 10 min ago"},
		"the last line":                 {"[    0.0] Linux version 6.1\n[ 1600.0] " + full, "warning", "once, last 0 s ago"},
		"syslog":                        {"Nov 30 20:55:01 router kernel: [  100.0] " + full + "Nov 30 23:55:01 router kernel: [10900.0] eth0: renamed from veth1\n", "notice", "once, last 3 hours ago"},
		"lines out of order":            {"[ 7300.0] usb 1-1: new device\n[   90.0] usb 1-2: new device\n[ 100.2] " + full + "[  100.1] usb 1-1: new device\n[  160.1] usb 1-1: new device\n", "warning", "once, last 60 s ago"},
		"newest first":                  {"[ 7210.25] eth0: renamed from veth1\n[   30.0] " + full + "[   10.0] usb 1-1: new device\n", "warning", "once"},
		"the boot before":               {"[ 9000.0] " + full + "[ 9100.0] reboot: Restarting system\n[    0.0] Linux version 6.1\n[ 7200.0] usb 1-1: new device\n", "warning", "once"},
		"some lines have no such time":  {"[   61.5] " + full + full + "[25920061.5] eth0: renamed from veth1\n", "warning", "2 times"},
		"only other lines have no time": {"[   61.5] " + full + "prose\n[25920061.5] eth0: renamed from veth1\nprose\n", "notice", "once, last 300 days ago"},
		"none has one":                  {full, "warning", "once"},
	} {
		s, err := Read(strings.NewReader(c.text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		r, err := Examine(s, nil)
		if err != nil {
			t.Fatal(err)
		}
		if i := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.Check == "CT-1" }); i < 0 || r.Findings[i].Severity.String() != c.severity || !strings.HasPrefix(r.Findings[i].Evidence[0], "kernel's log, "+c.when+": ") {
			t.Errorf("%s: want %s, %s: %+v", name, c.severity, c.when, r.Findings)
		}
	}
}

// TestLoggedPackets checks that lines for single packets count if there are many, and if the console shows them.
func TestLoggedPackets(t *testing.T) {
	martian, rule := "IPv4: martian source 192.0.2.7 from 127.0.0.2, on dev eth0", "DROP IN=eth0 OUT= MAC=00:00:5e:00:53:01 SRC=192.0.2.9 DST=192.0.2.1 LEN=28 TTL=46 ID=4711 PROTO=UDP SPT=51234 DPT=1900 LEN=8"
	for _, c := range []struct {
		text, console, severity, remedy string
		times                           int
	}{
		{martian, "7\t4\t1\t7", "warning", "log_martians=0", manyLogged},
		{rule, "8\t4\t1\t7", "warning", "limit rate", manyLogged},
		{rule, "8\t4\t1\t7", "", "", manyLogged - 1},
		{rule, "4\t4\t1\t7", "notice", "limit rate", manyLogged},
		{rule, "", "notice", "limit rate", manyLogged},
		{"eth0: renamed from veth1", "7\t4\t1\t7", "", "", manyLogged},
	} {
		var l Log
		for range c.times {
			ago := 60.0
			l.Add(c.text, &ago)
		}
		b := two(4)
		b.s.Log = l.Messages()
		if c.console != "" {
			b.s.Sysctls["kernel.printk"] = c.console
		}
		r, err := Examine(b.s, nil)
		if err != nil {
			t.Fatal(err)
		}
		severity, remedy := "", ""
		if i := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.Check == "LOG-1" }); i >= 0 {
			severity, remedy = r.Findings[i].Severity.String(), r.Findings[i].Remedies[0].Command+r.Findings[i].Remedies[0].Text
		}
		if severity != c.severity || !strings.Contains(remedy, c.remedy) {
			t.Errorf("%.20s, %d times, console %q: %q %q", c.text, c.times, c.console, severity, remedy)
		}
	}
}
