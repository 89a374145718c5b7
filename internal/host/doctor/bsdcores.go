package doctor

import (
	"fmt"
	"slices"
	"strings"

	"weir/internal/pattern"
	"weir/internal/units"
)

// busy returns the share of the core's time that is not idle.
func (c *BSDCore) busy() float64 { return 1 - c.Idle/100 }

func (c *BSDCore) line() string {
	return fmt.Sprintf("cpu%d: %s busy, of it interrupt %s, system %s, programs %s", c.ID, percent(c.busy()), percent(c.Interrupt/100), percent(c.System/100), percent(c.User/100))
}

// Threads of FreeBSD's kernel that receive packets: a card's queue, the stack's own, netgraph's
// (PPPoE), and WireGuard's.
var (
	bsdQueueThread  = pattern.New(`\{(?:irq\d+: [a-z]+\d+(?::\S.*)?|if_(?:io|config)_tqg_\d+|[a-z]+\d+ (?:que|rxq?|taskq).*)\}`)
	bsdNetisrThread = pattern.New(`\{swi\d+: netisr \d+\}`)
	bsdGraphThread  = pattern.New(`ng_queue`)
	bsdGuardThread  = pattern.New(`\{wg_tqg_\d+\}`)
	bsdKernelThread = pattern.New(`^(?:intr|kernel|ng_queue)\b`)
	bsdQueueIRQ     = pattern.New(`^irq\d+: ([a-z]+\d+):(?:que |rxq|r)(\d+)$`)
)

// bsdFullCores checks the cores of a FreeBSD machine, as top shows them.
func bsdFullCores(v *view) (o outcome) {
	if v.BSD == nil || len(v.BSD.Cores) == 0 {
		o.absent = "no FreeBSD's top -P was read"
		return o
	}
	var filled, rest []*BSDCore
	var others float64
	for i := range v.BSD.Cores {
		if c := &v.BSD.Cores[i]; c.busy() >= full {
			filled = append(filled, c)
		} else {
			rest, others = append(rest, c), others+c.busy()
		}
	}
	if len(filled) == 0 {
		return o
	}
	f := Finding{Severity: Critical, Subject: "cpu" + fmt.Sprint(filled[0].ID), core: -1, weight: float64(len(filled)), Expect: "more goes through, until the next core is full"}
	for _, c := range filled {
		f.Evidence = append(f.Evidence, c.line())
	}
	f.Evidence = append(f.Evidence, v.hotThreads()...)
	kernel := slices.DeleteFunc(slices.Clone(filled), func(c *BSDCore) bool { return c.User >= c.System+c.Interrupt })
	names := bsdNames(filled)
	switch room := len(rest) > 0 && others/float64(len(rest)) < working; {
	case len(kernel) == 0:
		f.Severity = Warning
		f.Says = fmt.Sprintf("programs fill %s", names)
		f.Remedies = []Remedy{{Command: "top -HSP", Text: "find the program: one that reads all packets (inline IPS, Zenarmor, ntopng, a VPN) is the limit itself; another belongs on a core without the cards' queues (cpuset -l)"}}
		if hot := v.hottest(func(name string) bool { return !bsdKernelThread.MatchString(name) }); hot != nil {
			f.Says = fmt.Sprintf("programs fill %s: %s takes %s of a core", names, hot.Name, percent(hot.Time/100))
			f.Remedies = append(f.Remedies, bsdProgram(hot.Name)...)
		}
	case room:
		f.Says = fmt.Sprintf("%s %s full of packets, and %s room", names, beVerb(len(filled)), haveVerb(len(rest)))
		v.bsdSpread(&f)
	default:
		f.Says = fmt.Sprintf("packets fill %s: no core has room", names)
		f.Remedies = []Remedy{
			{Command: "pfctl -vvsr", Text: "see how many rules each packet meets, and put quick ones for most of the traffic first; packets of known states meet none"},
			{Command: "sysctl net.inet.ip.redirect net.inet6.ip6.redirect", Text: "both 0: the fast path (BSD-1); beyond that it needs faster or more cores"},
		}
		f.Expect = "cheaper packets, or more cores"
	}
	o.add(f)
	return o
}

// moreNetisr gives each core a thread of netisr, as far as that is known to help (weir tune writes it as a comment).
var moreNetisr = Remedy{
	Command: "echo 'net.isr.maxthreads=\"-1\"' >> /boot/loader.conf.local",
	Text:    "as many threads as cores; needs a reboot. It was measured only with option RSS, and not with PPPoE: see with netstat -Q whether they share the packets. On pfSense and OPNsense set it, and net.isr.dispatch, as tunables",
}

// bsdSpread says what spreads the packets of a full core, by the thread that is at work there.
func (v *view) bsdSpread(f *Finding) {
	deferred := []Remedy{
		{Command: "sysctl net.isr.dispatch=deferred", Text: "the core that receives hands packets to a thread for each core: PPPoE, and a card with one queue, come to one core whatever the card does"},
		moreNetisr,
	}
	hot := v.hottest(func(name string) bool { return bsdKernelThread.MatchString(name) })
	switch {
	case hot == nil:
		f.Remedies = append([]Remedy{{Command: "top -HSP", Text: "see which thread fills the core: a card's queue (irq…, if_io_tqg), netisr, ng_queue or wg_tqg"}}, deferred...)
	case bsdGuardThread.MatchString(hot.Name):
		f.Says += ": WireGuard encrypts or decrypts there"
		f.Remedies = []Remedy{{Command: "top -HSP", Text: "each packet of one peer is encrypted on any core, but leaves in order: more peers, and larger packets, carry more"}}
	case bsdNetisrThread.MatchString(hot.Name):
		f.Says += ": one thread of netisr carries them"
		f.Remedies = append([]Remedy{{Command: "netstat -Q", Text: "see how many threads there are, and whether one has nearly all packets"}}, deferred[1:]...)
	case bsdGraphThread.MatchString(hot.Name):
		f.Says += ": netgraph's thread carries them (PPPoE, mpd)"
		f.Remedies = append(deferred, Remedy{Command: "sysctl net.graph", Text: "or, where the system has it, PPPoE in the kernel without netgraph (if_pppoe of pfSense 2.8)"})
	case bsdQueueThread.MatchString(hot.Name):
		f.Says += ": they come by one queue of a card"
		if name, at, share := v.bsdOneQueue(); name != "" {
			f.Says += fmt.Sprintf(" (%s of %s's interrupts are those of queue %d)", percent(share), name, at)
		}
		f.Remedies = slices.Concat(v.kernelRSS(), deferred)
	default:
		f.Says = fmt.Sprintf("%s is full, and the kernel's thread %s takes %s of a core", f.Subject, hot.Name, percent(hot.Time/100))
		f.Remedies = []Remedy{{Command: "top -HSP", Text: "see what that thread does: dummynet is a limiter or shaper of ipfw or pf, which has one thread; others (ZFS, clock, USB) are no packets' work"}}
		f.Expect = "the core has its time for packets"
	}
}

// bsdPrograms are those that carry or read all packets in one thread, with what helps.
var bsdPrograms = []struct {
	name *pattern.Pattern
	text string
}{
	{pattern.New(`\bopenvpn\b`), "OpenVPN carries all packets in one thread: its data channel offload (DCO; FreeBSD 14, OpenVPN 2.6) does it in the kernel; else several servers, or WireGuard"},
	{pattern.New(`\bwireguard-go\b|\bboringtun\b|\btailscaled\b`), "WireGuard in user space: the kernel's (if_wg) carries several times as much"},
	{pattern.New(`(?i)\bsuricata\b|\bsnort\b`), "an IPS inline reads each packet: a thread for each queue (threads, workers runmode), fewer rules, or IDS in place of IPS"},
	{pattern.New(`\beastpect\b`), "Zenarmor reads each packet: another deployment mode (a native driver of netmap), or fewer interfaces under it"},
	{pattern.New(`\bmpd5?\b|\bpppd?\b`), "PPPoE by a program: the kernel's (if_pppoe of pfSense 2.8, mpd with netgraph) does not pass packets through it"},
}

func bsdProgram(name string) []Remedy {
	for _, p := range bsdPrograms {
		if p.name.MatchString(name) {
			return []Remedy{{Text: p.text}}
		}
	}
	return nil
}

// kernelRSS returns how the kernel is told to spread flows as the cards do, if it can and does not.
func (v *view) kernelRSS() []Remedy {
	if v.Sysctls["net.inet.rss.enabled"] != "0" {
		return nil
	}
	return []Remedy{{Command: `printf 'net.inet.rss.enabled="1"\nnet.isr.bindthreads="1"\nnet.isr.maxthreads="-1"\n' >> /boot/loader.conf.local`,
		Text: "the cards spread flows over their queues, and the kernel does not know of it (net.inet.rss.enabled is 0): with it, each queue has a core of its own. Needs a reboot; as tunables on pfSense and OPNsense. A bucket for each core: net.inet.rss.bits"}}
}

// bsdOneQueue returns the card of which one queue has most of the interrupts.
func (v *view) bsdOneQueue() (name string, at int, share float64) {
	counts := map[string]map[int]uint64{}
	for irq, n := range v.BSD.Interrupts {
		if m := bsdQueueIRQ.FindStringSubmatch(irq); m != nil {
			if counts[m[1]] == nil {
				counts[m[1]] = map[int]uint64{}
			}
			counts[m[1]][whole(m[2])] = n
		}
	}
	for _, card := range sortedKeys(counts) {
		var sum, most uint64
		queue := 0
		for _, q := range sortedKeys(counts[card]) {
			sum += counts[card][q]
			if counts[card][q] > most {
				queue, most = q, counts[card][q]
			}
		}
		if part := float64(most) / float64(max(1, sum)); len(counts[card]) > 1 && sum >= few && part >= streamed && part > share {
			name, at, share = card, queue, part
		}
	}
	return name, at, share
}

// hottest returns the thread with the largest share among those that are wanted, if it is at work.
func (v *view) hottest(wanted func(name string) bool) (most *BSDThread) {
	for i := range v.BSD.Threads {
		if t := &v.BSD.Threads[i]; t.Time >= 100*someTunnelTime && wanted(t.Name) && (most == nil || t.Time > most.Time) {
			most = t
		}
	}
	return most
}

func (v *view) hotThreads() (rows []string) {
	const most = 4
	for _, t := range v.BSD.Threads {
		if t.Time >= 100*someTunnelTime && len(rows) < most {
			rows = append(rows, fmt.Sprintf("%s: %s of a core", t.Name, percent(t.Time/100)))
		}
	}
	return rows
}

func bsdNames(cores []*BSDCore) string {
	var names []string
	for _, c := range cores {
		names = append(names, fmt.Sprintf("cpu%d", c.ID))
	}
	return strings.TrimSpace(join(names))
}

func haveVerb(n int) string {
	if n == 1 {
		return "1 core has"
	}
	return fmt.Sprintf("%d cores have", n)
}

// bsdBuffers checks FreeBSD's buffers of packets.
func bsdBuffers(v *view) (o outcome) {
	if v.BSD == nil || v.BSD.Mbufs == nil {
		o.absent = "no FreeBSD's netstat -m was read"
		return o
	}
	m := v.BSD.Mbufs
	used := float64(m.Clusters) / float64(max(1, m.Max))
	if m.Denied == 0 && (m.Max == 0 || used < nearlyFull) {
		return o
	}
	f := Finding{
		Severity: Warning, core: -1, weight: float64(m.Denied),
		Says:     fmt.Sprintf("%s of %s mbuf clusters are taken, and %s were denied since the start: packets find no buffer", units.Thousands(m.Clusters), units.Thousands(m.Max), plural(int(m.Denied), "request")),
		Evidence: []string{fmt.Sprintf("netstat -m: clusters %s of %s, denied %s, delayed %s", units.Thousands(m.Clusters), units.Thousands(m.Max), units.Thousands(int(m.Denied)), units.Thousands(int(m.Delayed)))},
		Remedies: []Remedy{
			{Command: fmt.Sprintf("sysctl kern.ipc.nmbclusters=%d", max(2*m.Max, 1<<17)), Text: "takes effect at once; each cluster takes 2 KiB where it is used. Set it in loader.conf.local (on pfSense and OPNsense as a tunable) to keep it"},
			{Command: "vmstat -z | grep -E 'mbuf|FAIL'", Text: "see which kind fails: jumbo clusters of 9k need memory in one piece: an MTU of 4,000 or less does without"},
		},
		Expect: "no further request is denied; cards with many queues and long rings need queues times descriptors",
	}
	if used >= nearlyFull {
		f.Severity = Critical
	}
	o.add(f)
	return o
}

// nearlyFull is the share of the clusters from which on the next burst finds none.
const nearlyFull = 0.95
