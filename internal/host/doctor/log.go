package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"weir/internal/pattern"
	"weir/internal/units"
)

// Message is what the kernel's log says of one thing, of which doctor knows the meaning.
type Message struct {
	Text  string `json:"text"`            // the last of them, without its time
	Count int    `json:"count,omitempty"` // how many like it there were; 0: one
	// LastHour counts those of them that are less than an hour old; 0: one at most.
	LastHour int `json:"last_hour,omitempty"`
	// Ago is the time since the last of them, in seconds; nil: unknown.
	Ago *float64 `json:"seconds_ago,omitempty"`
}

// recent is the age up to which a message is about what happens now and then, in seconds. The
// kernel's log is short, and a fault of last week may have been mended.
const recent = 3600

// logRule is one thing that the kernel says, and the finding that it is.
type logRule struct {
	// words are parts of the message, one of which it must have: most of a log has none, and
	// is not compared with form.
	words []string
	form  *pattern.Pattern // its first group that is not empty is the device
	check string
	kind  string
	least int    // how often it must have been said
	says  string // %s is the device
	// remedies may have %s for the device.
	remedies []Remedy
	expect   string
	// mild reports whether it is only worth knowing on this machine; nil: it never is.
	mild func(*view) bool
}

// namedLogRules are messages whose words are known. Each stands for a check that looks for the same in
// counters: two seconds of them hardly ever see what happens once an hour.
var namedLogRules = []logRule{
	{words: []string{"conntrack: table full"}, form: pattern.New(`(?:ip|nf)_conntrack: table full`), check: "CT-1",
		says: "the kernel's connection tracking was full, and dropped packets (\"table full\")", expect: "no further message",
		remedies: []Remedy{
			{Command: "sysctl net.netfilter.nf_conntrack_count net.netfilter.nf_conntrack_max", Text: "see how near it is now, and set the second to twice as much (nf_conntrack_buckets with it)"},
			{Command: "conntrack -L -o extended | awk '{print $3, $4}' | sort | uniq -c | sort -rn | head", Text: "see what fills it: many UDP or SYN_SENT entries of strangers are a flood or a scan, which a rule before tracking (notrack, drop in raw) keeps out"},
		}},
	{words: []string{"expectation table full"}, form: pattern.New(`conntrack: expectation table full`), check: "CT-1", kind: "expect",
		says: "the table of connections that are expected was full (\"expectation table full\"): what they belong to does not come through", expect: "no further message",
		remedies: []Remedy{
			{Command: "wc -l /proc/net/nf_conntrack_expect; sysctl net.netfilter.nf_conntrack_expect_max", Text: "see what makes them: helpers (SIP, FTP), or a full-cone NAT in a mode that expects a connection for each port; another mode (OpenWrt: compatible), or no helper, needs none"},
			{Command: "sysctl -w net.netfilter.nf_conntrack_expect_max=4096", Text: "else allow more of them (some modules set their own limit)"},
		}},
	{words: []string{"table overflow"}, form: pattern.New(`neighbor table overflow|Neighbou?r table overflow`), check: "NEIGH-1",
		says: "the table of neighbours was full: further hosts could not be reached (\"table overflow\")", expect: "no further message",
		remedies: []Remedy{{Command: "sysctl net.ipv4.neigh.default.gc_thresh3 net.ipv6.neigh.default.gc_thresh3", Text: "set each to four times as much, gc_thresh2 to half and gc_thresh1 to a quarter of that; ip neigh show nud failed shows a scan"}}},
	{words: []string{"PCIe link lost", "Adapter removed", "from D3cold"},
		form: pattern.New(`(?:\b[\da-f]{4}:[\da-f]{2}:[\da-f]{2}\.[0-7] )?([\w.:][\w.:@-]*): (?:PCIe link lost|Adapter removed)|` +
			`^(?:igb|igc|e1000e|ixgbe|i40e|ice|r816[89]|r8125|atlantic|bnxt_en|bnx2x|tg3|alx|sky2|mlx[45]_core|iwlwifi|ath1[0-2]k_pci|mt7\w+e|rtw8\w+) (\S+): .*from D3cold`), check: "HANG-1", kind: "gone",
		says: "%s no longer answered, and is gone: its slot was lost (\"PCIe link lost\")", expect: "the card stays",
		remedies: []Remedy{
			{Command: "cat /proc/cmdline", Text: "add pcie_aspm=off pcie_port_pm=off there (the boot loader's command line), and boot: a slot or a card that does not wake up is the most common reason; a program that saves power by itself (powertop --auto-tune, TLP) sets it, too"},
			{Command: "echo 1 > /sys/bus/pci/rescan", Text: "until then: remove the card (echo 1 > /sys/bus/pci/devices/…/remove) and look for it again; if it goes away at full power, too: the machine's and the card's firmware, another slot or riser, heat, another card"},
		}},
	{words: []string{"WATCHDOG", "Unit Hang", "Reset adapter", "atchdog timeout", "tx completions", "x_timeout", "Tx timeout"}, form: pattern.New(`NETDEV WATCHDOG: ([\w.][\w.@-]*) \(|([\w.][\w.@-]*): NETDEV WATCHDOG|([\w.][\w.@-]*): (?:Detected (?:Hardware|Tx) Unit Hang|Reset adapter unexpectedly)|` +
		`^([a-z]+\d+): (?i:watchdog timeout)|([\w.][\w.@-]*): (?:tx_timeout: VSI|Tx timeout)|([\w.][\w.@-]*): .*lost tx completions.*Reset the device`), check: "HANG-1", kind: "send",
		says: "%s stopped sending, and was reset", expect: "the card sends without a pause",
		remedies: []Remedy{{Text: "without segmentation by the card first (Linux: ethtool -K %s tso off gso off; FreeBSD: ifconfig %s -tso), then without the slot's sleep (ASPM), then with another driver or release (realtek-re on FreeBSD, r8168 or r8125 on Linux)"}}},
	{words: []string{"page allocation failure"}, form: pattern.New(`page allocation failure: order:\d+, mode:(?:.*GFP_ATOMIC|0x[14]?0?20\b)`), check: "MEM-1",
		says: "the kernel had no memory for packets (\"page allocation failure\")", expect: "no further message",
		remedies: []Remedy{{Command: "sysctl vm.min_free_kbytes", Text: "set it to four times as much, at most a twentieth of the memory: the kernel then keeps more free for what cannot wait"}}},
	{words: []string{"swiotlb buffer is full", "SW-IOMMU space"}, form: pattern.New(`^(?:(\S+) \S+: )?(?:swiotlb buffer is full|DMA: Out of SW-IOMMU space)`), check: "MEM-1", kind: "bounce",
		says: "the buffer for devices that do not reach all memory was full (\"swiotlb buffer is full\"): what %s moved was lost", expect: "no further message",
		remedies: []Remedy{
			{Command: "cat /proc/cmdline", Text: "add swiotlb=65536 there (the boot loader's command line; pieces of 2 KiB: 128 MiB), and boot: a larger buffer; or shorter rings of that card (ethtool -G)"},
			{Text: "if it fills again however large it is: the driver does not give it back; another release of it, or of the kernel"},
		}},
	{words: []string{"out of memory", "orphaned sockets"}, form: pattern.New(`TCP: out of memory|too many orphaned sockets`), check: "MEM-2",
		says: "TCP's memory, or the number of its closed connections, was at its limit", expect: "no further message",
		remedies: []Remedy{{Command: "cat /proc/net/sockstat; sysctl net.ipv4.tcp_mem net.ipv4.tcp_max_orphans", Text: "see which of the two is short; a file in /etc/sysctl.d that sets less than the kernel's own figures is better removed"}}},
	{words: []string{"SYN flooding"}, form: pattern.New(`Possible SYN flooding on port`), check: "SOCK-2", kind: "half",
		says: "a listening socket's queue was full (\"Possible SYN flooding\")", expect: "connections open at once",
		remedies: []Remedy{{Command: "ss -ltn", Text: "see which socket has Recv-Q near Send-Q: its program accepts too slowly, or asks for a short queue (net.core.somaxconn); many of ss -tn state syn-recv are a flood"}}},
	{words: []string{"nf_queue: full"}, form: pattern.New(`nf_queue: full at \d+ entries`), check: "NFQ-1",
		says: "the program that judges packets (NFQUEUE) did not keep up: its queue was full", expect: "no further message",
		remedies: []Remedy{{Command: "cat /proc/net/netfilter/nfnetlink_queue", Text: "more queues (queue num 0-3 fanout), or bypass, which lets through what finds no room"}}},
	{words: []string{"cache is full", "cache overflow"}, form: pattern.New(`Route cache is full|dst cache overflow`), check: "DST-1",
		says: "the table of destinations was full", expect: "no further message",
		remedies: []Remedy{{Command: "sysctl net.ipv6.route.max_size", Text: "raise it; Linux 6.3 and later have no limit"}}},
	{words: []string{"own address as source"}, form: pattern.New(`([\w.][\w.@-]*): received packet (?:on \S+ )?with own address as source`), check: "STORM-1", least: 3,
		says: "frames that %s sent come back to it: the switches form a ring", expect: "no further message",
		remedies: []Remedy{{Command: "bridge link", Text: "find the second way (two cables to one switch, an access point that is also a client); break it, or let spanning tree block it (ip link set dev %s type bridge stp_state 1)"}}},
	{words: []string{"ink is ", "link state changed"}, form: pattern.New(`(?:^|\s)([\w.][\w.@-]*): (?:NIC )?[Ll]ink is [Dd]own|^([a-z]+\d+): link state changed to DOWN`), check: "ERR-1", kind: "flap", least: 3, says: linkDown.says, expect: linkDown.expect, remedies: linkDown.remedies},
	{words: []string{"ownshift"}, form: pattern.New(`([\w.][\w.@-]*): .*[Dd]ownshift(?:ed| occurred)`), check: "LINK-1", kind: "speed",
		says: "%s could not keep the speed that both ends have, and fell back (\"downshift\")", expect: "the full speed",
		remedies: []Remedy{{Command: "ethtool %s", Text: "another cable (all four pairs), then the other port: at this speed frames were lost"}}},
	{words: []string{"clock throttled", "above threshold"}, form: pattern.New(`cpu clock throttled|Package temperature above threshold`), check: "THR-1",
		says: "the processor slowed itself down because of heat", expect: "the full clock under load",
		remedies: []Remedy{{Command: "grep . /sys/class/thermal/thermal_zone*/temp", Text: "clean the fan, or cool the box; a lower limit of power keeps it from going up and down"}}},
	{words: []string{"bad checksum"}, form: pattern.New(`UDP: bad checksum`), check: "SUM-1",
		says: "packets came with wrong checksums, and were dropped (\"UDP: bad checksum\")", expect: "no further message",
		remedies: []Remedy{{Text: "their sender is named there: it must fill in checksums without its card's help (ethtool -K … tx-checksum-ip-generic off, on its card or its tunnel's device)"}}},
	{words: []string{"afe mode", "afe Mode"}, form: pattern.New(`(?i)(?:ddp package|package).*safe mode|entering safe mode`), check: "DOC-1",
		says: "a card of Intel (ice) runs in Safe Mode, with one queue: its package (DDP) was not found", expect: "all queues",
		remedies: []Remedy{{Command: "ls /lib/firmware/intel/ice/ddp", Text: "install the package (linux-firmware, firmware-intel-misc: intel/ice/ddp/ice.pkg), and load the driver anew"}}},
	{words: []string{"martian "}, form: pattern.New(`martian (?:source|destination) `), check: "LOG-1", kind: "martian", least: manyLogged, mild: (*view).silentConsole,
		says: "the kernel writes packets with impossible addresses to its log, one by one (\"martian source\")", expect: "no core waits for a line of text",
		remedies: []Remedy{
			{Command: "sysctl -w net.ipv4.conf.all.log_martians=0 net.ipv4.conf.default.log_martians=0", Text: "they are dropped all the same (interfaces have settings of their own: net.ipv4.conf.*.log_martians); a core writes each line itself, which on a serial console takes some 20 ms"},
			{Command: "dmesg -n 4", Text: "or keep such lines from the console (kernel.printk)"},
			{Text: "then find who sends them: an address of another network on this link, or a route of this box that does not lead back"},
		}},
	{words: []string{"PROTO="}, form: pattern.New(`\bIN=\S* OUT=\S* .*\bSRC=\S+ DST=\S+ .*\bPROTO=`), check: "LOG-1", kind: "rule", least: manyLogged, mild: (*view).silentConsole,
		says: "a rule of a packet filter writes packets to the kernel's log, without a limit", expect: "no core waits for a line of text",
		remedies: []Remedy{
			{Text: "give the rule a limit (nftables: limit rate 1/second burst 10 packets log; iptables: -m limit --limit 1/s before -j LOG; a zone's log_limit), or let it log to a program (log group, NFLOG): a core writes each line itself, which on a serial console takes some 20 ms"},
			{Command: "dmesg -n 4", Text: "or keep such lines from the console (kernel.printk)"},
		}},
	{words: []string{"states limit reached"}, form: pattern.New(`PF states limit reached`), check: "PF-1",
		says: "pf's table of states was full: new connections were dropped", expect: "no further message",
		remedies: []Remedy{{Command: "pfctl -si; pfctl -sm", Text: "raise the limit (set limit states; on pfSense and OPNsense Firewall Maximum States), or let what fills it end sooner (set optimization aggressive, or a timeout in the rule)"}}},
	{words: []string{"limit reached"}, form: pattern.New(`kern\.ipc\.nmbclusters limit reached|mbuf_cluster limit reached`), check: "BSD-6",
		says: "there were no buffers for packets (mbuf clusters)", expect: "no further message",
		remedies: []Remedy{{Command: "sysctl kern.ipc.nmbclusters", Text: "set it to twice as much, now and in loader.conf.local (on pfSense and OPNsense as a tunable)"}}},
}

// deviceSays begins the pattern of a message that a driver writes of a device: its name, a colon. What it says follows.
const deviceSays = `(?:^|\s)([\w.][\w.:@-]*): `

// meant returns the rule that a message of the kernel meets, and the device that it names; nil: none.
func meant(text string) (rule *logRule, device string) {
	for i := range logRules {
		if i == len(namedLogRules) && otherDevice.MatchString(text) {
			return nil, ""
		}
		if !slices.ContainsFunc(logRules[i].words, func(word string) bool { return strings.Contains(text, word) }) {
			continue
		}
		if m := logRules[i].form.FindStringSubmatch(text); m != nil {
			return &logRules[i], strings.TrimSuffix(cmp.Or(m[1:]...), ":")
		}
	}
	return nil, ""
}

// Log gathers the messages of a kernel's log that doctor knows: those of one kind and device as
// one. Others are dropped, whatever they hold.
type Log struct {
	all  []Message
	keys []string
}

// longest is how much of a message is kept.
const longest = 300

// Add takes a message, in the order of the log; ago is its age, nil if that is unknown. It reports whether
// doctor knows the message.
func (l *Log) Add(text string, ago *float64) bool {
	rule, device := meant(text)
	if rule == nil {
		return false
	}
	if text = printable(text); len(text) > longest {
		text = strings.ToValidUTF8(text[:longest], "")
	}
	key := rule.check + rule.kind + " " + device
	i := slices.Index(l.keys, key)
	if i < 0 {
		l.keys, l.all = append(l.keys, key), append(l.all, Message{})
		i = len(l.all) - 1
	}
	m := Message{Text: text, Count: l.all[i].Count + 1, LastHour: l.all[i].LastHour, Ago: ago}
	if ago != nil && *ago <= recent {
		m.LastHour++
	}
	l.all[i] = m
	return true
}

// printable returns a text without what a terminal would obey: a log has what others had written into it.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsPrint(r):
			return r
		case unicode.IsSpace(r):
			return ' '
		}
		return '.'
	}, text)
}

// Messages returns what was gathered; empty, not nil, if doctor knows none of them.
func (l *Log) Messages() []Message { return append([]Message{}, l.all...) }

// addLogged adds what the kernel's log says of what a check looks for, unless the check has found
// it already: then it is evidence.
func (r *Report) addLogged(c *Check, v *view, judged *CheckResult) {
	if v.Host.Namespace {
		return // the log is the machine's
	}
	for _, m := range v.Log {
		rule, device := meant(m.Text)
		if rule == nil || rule.check != c.ID || max(1, m.Count) < rule.least {
			continue
		}
		line := fmt.Sprintf("kernel's log, %s: %s", m.when(), printable(m.Text))
		known := slices.IndexFunc(r.Findings, func(f Finding) bool {
			return f.Check == c.ID && f.Severity > Notice && (f.Subject == device || f.Subject == "" || device == "")
		})
		if known >= 0 {
			r.Findings[known].Evidence = append(r.Findings[known].Evidence, line)
			continue
		}
		f := Finding{Check: c.ID, Severity: Warning, Subject: device, core: -1, kind: rule.kind, Evidence: []string{line}, Expect: rule.expect}
		f.Says = strings.ReplaceAll(rule.says, "%s", cmp.Or(device, "a device"))
		for _, remedy := range rule.remedies {
			f.Remedies = append(f.Remedies, Remedy{Command: strings.ReplaceAll(remedy.Command, "%s", device), Text: strings.ReplaceAll(remedy.Text, "%s", device)})
		}
		if m.Ago != nil && (*m.Ago > recent || max(1, m.LastHour) < rule.least) || rule.mild != nil && rule.mild(v) {
			f.Severity = Notice // it is long ago, seldom, or does no harm here
		}
		r.Findings, judged.State = append(r.Findings, f), Found
	}
}

// when says how often something was said, and how long ago last.
func (m *Message) when() string {
	text := timesOf(uint64(max(1, m.Count)))
	if m.Ago == nil {
		return text
	}
	switch ago := *m.Ago; {
	case ago < 120:
		return text + fmt.Sprintf(", last %.0f s ago", ago)
	case ago < 2*recent:
		return text + fmt.Sprintf(", last %.0f min ago", ago/60)
	case ago < 48*recent:
		return text + fmt.Sprintf(", last %.0f hours ago", ago/recent)
	default:
		return text + fmt.Sprintf(", last %.0f days ago", ago/recent/24)
	}
}

// What stands before a message in the outputs of dmesg, dmesg -T, journalctl -k, syslog and OpenWrt's logread. The group
// that is not empty is the kernel's own time, in seconds.
var logHead = pattern.New(`^(?:<\d+>)?(?:\[ *(\d+\.\d+)\] ?|\[\w{3} \w{3} [ \d]\d [\d:]{8} \d{4}\] ?|(?:\w{3} +\d+ [\d:]{8}|\d{4}-\d\d-\d\d[T ]\S+)(?: \S+)?(?: kernel:| <\w+\.\w+>)(?: - - -)? ?(?:\[ *(\d+\.\d+)\] ?)?|\w{3} \w{3} +\d+ [\d:]{8} \d{4} kern\.\w+ kernel: ?(?:\[ *(\d+\.\d+)\] ?)?)`)

// said is a message of a log, and the kernel's time of it; negative: the log does not tell.
type said struct {
	text string
	at   float64
}

// readKernelLog reads a kernel's log: the output of dmesg, of Linux or FreeBSD, or lines of it among others.
func readKernelLog(text string) (*Snapshot, error) {
	var known []said
	all, now := 0, -1.0
	for _, line := range lines(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		all++
		at := -1.0
		if head := logHead.FindStringSubmatch(line); head != nil {
			line = line[len(head[0]):]
			if stamp, err := strconv.ParseFloat(cmp.Or(head[1:]...), 64); err == nil {
				at, now = stamp, stamp
			}
		}
		if rule, _ := meant(line); rule != nil {
			known = append(known, said{line, at})
		}
	}
	if known == nil {
		return nil, errOther
	}
	return &Snapshot{Log: aged(known, now), Source: fmt.Sprintf(" (%s of %s lines mean something to doctor)", units.Thousands(len(known)), units.Thousands(all))}, nil
}

// disorder is how much later than the line after it a line may be, in seconds: cores write at the same time.
const disorder = 10

// aged gathers the messages of a log, of which the last line was written now. They get no ages if one has no time, or
// a later one than now: then the log is not of one boot, or has its newest line first.
func aged(known []said, now float64) []Message {
	var l Log
	dated := !slices.ContainsFunc(known, func(m said) bool { return m.at < 0 || m.at > now+disorder })
	for _, m := range known {
		var ago *float64
		if dated {
			ago = new(max(0, now-m.at))
		}
		l.Add(m.text, ago)
	}
	return l.Messages()
}
