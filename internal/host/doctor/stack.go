package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"weir/internal/units"
)

// stackChecks judge the counters of the kernel's own IP, UDP and TCP.
func stackChecks() []Check {
	return []Check{
		{ID: "FRAG-1", Title: "fragments are not put together", Reads: []string{"snmp", "sysctls"}, Worst: Critical, needs: []need{lackingCounts("Ip.ReasmFails", "Ip.ReasmReqds")}, run: fragments},
		{ID: "SUM-1", Title: "packets come with wrong checksums", Reads: []string{"snmp", "interfaces"}, Worst: Critical, needs: []need{lackingCounts("Udp.InCsumErrors", "Udp.InDatagrams")}, run: checksums},
		{ID: "ROUTE-1", Title: "packets have no route, or go in circles", Reads: []string{"snmp"}, Worst: Warning, needs: []need{lackingCounts("Ip.InReceives", "Ip.InHdrErrors")}, run: lostWays},
		{ID: "TUN-2", Title: "a tunnel's device refuses packets", Reads: []string{"interfaces", "links"}, Worst: Critical, needs: []need{noInterfaces}, run: refusedByTunnels},
		{ID: "IPSEC-2", Title: "IPsec drops packets", Reads: []string{"snmp"}, Worst: Critical, needs: []need{noSNMP}, run: espRefused},
		{ID: "NFQ-1", Title: "a program that judges packets does not keep up", Reads: []string{"nfqueues"}, Worst: Critical, run: nfqueues},
		{ID: "SOCK-1", Title: "a program's socket has no room for datagrams", Reads: []string{"snmp", "sockets", "sysctls"}, Worst: Critical, needs: []need{lackingCounts("Udp.RcvbufErrors", "Udp.InDatagrams")}, run: datagrams},
		{ID: "SOCK-2", Title: "a listening socket refuses connections", Reads: []string{"snmp", "sockets", "sysctls"}, Worst: Critical, needs: []need{lackingCounts("TcpExt.ListenOverflows")}, run: listeners},
		{ID: "MEM-2", Title: "TCP's memory is at its limit", Reads: []string{"snmp", "sysctls", "cpus"}, Worst: Critical, needs: []need{lackingCounts("TcpExt.TCPMemoryPressures")}, run: tcpMemory},
		{ID: "PATH-2", Title: "this box's own TCP sends much again", Reads: []string{"snmp", "interfaces.features"}, Worst: Warning, needs: []need{lackingCounts("Tcp.OutSegs", "Tcp.RetransSegs")}, run: sentAgain},
	}
}

// counted sums the growth of the stack's counters of these names; each is that of IPv4 and,
// with "6" after its protocol, that of IPv6.
func (v *view) counted(names ...string) (sum uint64) {
	for _, name := range names {
		protocol, rest, _ := strings.Cut(name, ".")
		four, _ := v.snmp(name)
		six, _ := v.snmp(protocol + "6." + rest)
		sum += four + six
	}
	return sum
}

// lackingCounts returns the need of counters of the stack, without which nothing can be said.
func lackingCounts(names ...string) need {
	return func(v *view, o *outcome) bool {
		lacks := noSNMP(v, o)
		for _, name := range names {
			if _, known := v.snmp(name); !lacks && !known {
				o.lacks(v, "snmp."+name)
			}
		}
		return len(o.missing) > 0
	}
}

// snmp returns how far one counter grew; known is false if it is not in both samples.
func (v *view) snmp(name string) (grew uint64, known bool) {
	if !v.sampled {
		return 0, false
	}
	before, first := v.Before.SNMP[name]
	after, second := v.After.SNMP[name]
	return Grown(after, before), first && second
}

// fragments are put together for connection tracking and for programs of this box. A
// failure is either a fragment that never came (ReasmTimeout counts these, too), or a lack
// of room (inet_frag_create refuses above high_thresh). What runs out of time came 30 seconds
// earlier, so it may be more than the fragments that came between the samples.
func fragments(v *view) (o outcome) {
	const limit = "net.ipv4.ipfrag_high_thresh"
	late, asked := v.counted("Ip.ReasmTimeout"), v.counted("Ip.ReasmReqds")
	failed := v.counted("Ip.ReasmFails")
	refused := failed - min(failed, late)
	f := Finding{core: -1, Evidence: []string{fmt.Sprintf("Ip.ReasmFails: %s, of them by time (Ip.ReasmTimeout): %s, of %s fragments in %s",
		units.Thousands(int(failed)), units.Thousands(int(late)), units.Thousands(int(asked)), seconds(v.Seconds))}}
	switch f.weight = float64(refused) / float64(max(1, asked, refused)); {
	case refused >= fewLost && refused >= late && f.weight >= seen:
		f.Severity = gradeLoss(refused, f.weight)
		f.Says = fmt.Sprintf("the memory for fragments is full: %s cannot be put together", v.rate(refused))
		want := 4 << 22
		if now, known := v.number(limit); known {
			want = 4 * now
			f.Evidence = append(f.Evidence, fmt.Sprintf("%s = %d", limit, now))
		}
		f.Remedies = []Remedy{{Command: fmt.Sprintf("sysctl -w %s=%d", limit, want),
			Text: "room for four times as many (IPv6 has net.ipv6.ip6frag_high_thresh); first see who sends fragments (tcpdump 'ip[6:2] & 0x3fff != 0'): with the right MTU there are none, and a flood of halves is an attack"}}
		f.Expect = "datagrams in fragments arrive"
	case late >= fewLost && float64(late) >= held*float64(asked):
		f.Severity, f.weight = Warning, min(1, float64(late)/float64(max(1, asked)))
		f.Says = fmt.Sprintf("the rest of %s of the datagrams in fragments never comes: a part of each is lost on the way", percent(f.weight))
		if asked < fewLost || late > asked {
			f.Severity = Notice
			f.Says = fmt.Sprintf("the rest of %s datagrams in fragments never came: a part of each was lost on the way", units.Thousands(int(late)))
		}
		f.Remedies = []Remedy{{Command: "tcpdump -ni any 'ip[6:2] & 0x3fff != 0'", Text: "see who sends fragments, and give that sender, or the tunnel that splits, an mtu at which it sends whole packets"}}
		f.Expect = "no fragments, so that one lost packet is one"
	default:
		return o
	}
	o.add(f)
	return o
}

// datagrams are those that came for a program and found its socket's buffer full.
func datagrams(v *view) (o outcome) {
	lost, taken := v.counted("Udp.RcvbufErrors"), v.counted("Udp.InDatagrams")
	for i := range v.After.VPN { // TUN-1 and weir vpn affinity say it of weir's own
		lost -= min(lost, v.After.VPN[i].lostSince(v.Before.VPN))
	}
	f := Finding{core: -1, weight: float64(lost) / float64(max(1, lost+taken))}
	if lost < fewLost || f.weight < lossHurts {
		return o
	}
	f.Severity = min(gradeLoss(lost, f.weight), Warning) // it may be a socket that nobody reads
	if f.weight >= held && lost >= few {
		f.Severity = Critical
	}
	f.Says = fmt.Sprintf("%s of the datagrams for programs of this box find no room in their socket", percent(f.weight))
	f.Evidence = []string{fmt.Sprintf("Udp.RcvbufErrors: %s in %s", units.Thousands(int(lost)), seconds(v.Seconds))}
	if worst := v.worstSocket("udp"); worst != nil {
		f.Subject = cmp.Or(worst.Program, fmt.Sprintf("port %d", worst.Port))
		f.Says += fmt.Sprintf(": those of %s most", worst)
		f.Evidence = append(f.Evidence, fmt.Sprintf("drops of the socket of %s: %s", worst, v.rate(worst.Drops)))
	} else if v.After.Sockets == nil {
		o.apart = append(o.apart, "sockets")
	}
	now, known := v.number("net.core.rmem_max")
	if known {
		f.Evidence = append(f.Evidence, fmt.Sprintf("net.core.rmem_max = %d, rmem_default = %s", now, cmp.Or(v.Sysctls["net.core.rmem_default"], "unknown")))
	}
	const most, usual = 256 << 20, 8 << 20
	want := min(max(usual, 4*now), most)
	f.Remedies = []Remedy{{Command: "ss -uamn", Text: "see whose queue is full: its program is too slow, or stuck"}}
	if v.unread(lost + taken) {
		f.Says += "; all that came would fit: its program does not read"
		f.Remedies[0].Text = "see whose queue is full (Recv-Q): its program is stuck, or has opened a port that it never reads; restart it, or close the port there. A larger buffer helps nothing"
		f.Expect = "the program reads, or nobody asks for what it gets"
		o.add(f)
		return o
	}
	if command := v.raise(setting{"net.core.rmem_max", want}, setting{"net.core.rmem_default", min(want/4, usual)}); command != "" {
		f.Remedies = []Remedy{{Command: command, Text: "let sockets hold longer bursts: restart the program, and let it ask for as much if it sets a size itself (SO_RCVBUF). If its core is full all the time, that only adds delay: it needs more threads, with a socket each (SO_REUSEPORT)"}}
	}
	f.Expect = "bursts are held; a program that is too slow on average still loses"
	o.add(f)
	return o
}

// largestDatagram is what a datagram takes of a socket's buffer at most, at an MTU of 1500
// bytes: its memory is counted in whole pieces.
const largestDatagram = 2304

// unread reports whether all datagrams between the samples would have fit into an empty
// socket's buffer: one that lost some was full before, and nobody emptied it.
func (v *view) unread(came uint64) bool {
	size, known := v.number("net.core.rmem_default")
	return known && came*largestDatagram < uint64(size)
}

// lostSince returns the datagrams that the tunnel's sockets have dropped between the samples.
func (c *VPNCount) lostSince(before []VPNCount) uint64 {
	i := slices.IndexFunc(before, func(b VPNCount) bool { return b.Interface == c.Interface })
	if i < 0 {
		return 0
	}
	return Grown(c.SocketLost, before[i].SocketLost)
}

// worstSocket returns the socket of a protocol that dropped most between the samples, or
// before whose program most connections wait; nil: none, or unknown.
func (v *view) worstSocket(protocol string) (most *Socket) {
	for i := range v.After.Sockets {
		s := v.After.Sockets[i]
		if s.Protocol != protocol {
			continue
		}
		for _, b := range v.Before.Sockets {
			if b.Inode == s.Inode && b.Protocol == s.Protocol && b.Port == s.Port {
				s.Drops = Grown(s.Drops, b.Drops)
			}
		}
		if n := s.Drops + uint64(s.Waiting); n > 0 && (most == nil || n > most.Drops+uint64(most.Waiting)) {
			most = &s
		}
	}
	return most
}

func (s *Socket) String() string {
	if s.Program == "" {
		return fmt.Sprintf("port %d", s.Port)
	}
	return fmt.Sprintf("%s (port %d)", s.Program, s.Port)
}

// listeners checks the two queues of a listening socket: of connections that the program
// has not taken yet, and of those whose handshake is not complete.
func listeners(v *view) (o outcome) {
	v.staleClocks(&o)
	if full := v.counted("TcpExt.ListenOverflows"); full >= fewLost {
		v.acceptQueue(&o, full)
	}
	dropped, cookies := v.counted("TcpExt.TCPReqQFullDrop"), v.counted("TcpExt.TCPReqQFullDoCookies")
	if n := dropped + cookies; n >= fewLost {
		f := Finding{
			Severity: Warning, core: -1, weight: float64(n), kind: "half",
			Says:     fmt.Sprintf("the queue of half-open connections of a listening socket is full (%s a second)", units.Short(float64(n)/v.Seconds)),
			Evidence: []string{fmt.Sprintf("TcpExt.TCPReqQFullDrop: %d, TCPReqQFullDoCookies: %d in %s; net.ipv4.tcp_max_syn_backlog = %s", dropped, cookies, seconds(v.Seconds), cmp.Or(v.Sysctls["net.ipv4.tcp_max_syn_backlog"], "unknown"))},
			Remedies: []Remedy{
				{Command: "ss -tn state syn-recv", Text: "see who opens them: many strangers that never answer are a flood, which a filter before this box should stop"},
			},
			Expect: "whoever completes the handshake is let in",
		}
		if command := v.raise(setting{"net.ipv4.tcp_syncookies", 1}, setting{"net.ipv4.tcp_max_syn_backlog", 8192}, setting{"net.core.somaxconn", 8192}); command != "" {
			f.Remedies = append([]Remedy{{Command: command, Text: "with cookies, connections are accepted all the same; the program must listen with as long a queue"}}, f.Remedies...)
		}
		if dropped >= fewLost {
			f.Severity = Critical
		}
		o.add(f)
	}
	return o
}

func (v *view) acceptQueue(o *outcome, full uint64) {
	opened := v.counted("Tcp.PassiveOpens")
	share := float64(full) / float64(full+opened)
	f := Finding{
		Severity: Warning, core: -1, weight: share, kind: "accept",
		Says:     fmt.Sprintf("the queue of a listening socket is full: %s new connections a second must try again", units.Short(float64(full)/v.Seconds)),
		Evidence: []string{fmt.Sprintf("TcpExt.ListenOverflows: %s, Tcp.PassiveOpens: %s in %s; net.core.somaxconn = %s", units.Thousands(int(full)), units.Thousands(int(opened)), seconds(v.Seconds), cmp.Or(v.Sysctls["net.core.somaxconn"], "unknown"))},
		Remedies: []Remedy{
			{Command: "ss -ltn", Text: "see whose Recv-Q (connections that wait) is at its Send-Q (the length that the program asked for): it accepts too slowly, or is stuck"},
		},
		Expect: "connections open at once instead of after a second",
	}
	if command := v.raise(setting{"net.core.somaxconn", 16384}); command != "" {
		f.Remedies = append(f.Remedies, Remedy{Command: command, Text: "allow a longer queue; the program must ask for it, too (backlog of listen), and be restarted"})
	}
	if worst := v.worstSocket("tcp"); worst != nil {
		f.Subject = cmp.Or(worst.Program, fmt.Sprintf("port %d", worst.Port))
		f.Evidence = append(f.Evidence, fmt.Sprintf("%d connections wait for %s", worst.Waiting, worst))
	}
	if share >= held {
		f.Severity = Critical
	}
	o.add(f)
}

// tcpMemory checks the limit that all sockets of TCP share.
func tcpMemory(v *view) (o outcome) {
	pressures, aborted := v.counted("TcpExt.TCPMemoryPressures"), v.counted("TcpExt.TCPAbortOnMemory")
	v.fullReceivers(&o)
	if pressures+aborted == 0 {
		return o
	}
	f := Finding{
		Severity: Warning, core: -1, weight: float64(aborted),
		Says: "TCP's memory is at its limit: it shrinks the windows of this box's own connections",
		Evidence: []string{fmt.Sprintf("TcpExt.TCPMemoryPressures: %d, TCPAbortOnMemory: %d in %s; net.ipv4.tcp_mem = %s pages", pressures, aborted, seconds(v.Seconds),
			cmp.Or(strings.Join(strings.Fields(v.Sysctls["net.ipv4.tcp_mem"]), " "), "unknown"))},
		Remedies: []Remedy{
			{Command: "ss -OtnmH | sort -k2 -n | tail", Text: "see which connections hold most: a program that does not read fills them"},
			v.moreTCPMemory(),
		},
		Expect: "windows open again",
	}
	if aborted > 0 && v.roomForTCP() {
		f.Severity, f.kind = Critical, "orphans"
		v.orphans(&f, aborted)
	} else if aborted > 0 {
		f.Severity = Critical
		f.Says = fmt.Sprintf("TCP's memory is at its limit: %d connections of this box were aborted", aborted)
	}
	o.add(f)
	return o
}

// roomForTCP reports whether TCP's memory is known to be below the figure from which on the
// kernel saves it.
func (v *view) roomForTCP() bool {
	var low, pressure, most int
	n, _ := fmt.Sscan(v.Sysctls["net.ipv4.tcp_mem"], &low, &pressure, &most)
	return n == 3 && v.After.TCPSockets != nil && v.After.TCPSockets.Pages < pressure
}

// orphans describes connections that were aborted although TCP's memory has room: too many that
// no program holds any more still wait for their far end (tcp_check_oom).
func (v *view) orphans(f *Finding, aborted uint64) {
	const limit = "net.ipv4.tcp_max_orphans"
	f.Evidence = append(f.Evidence, fmt.Sprintf("sockets that no program holds any more: %s; TCP's memory: %s pages", units.Thousands(v.After.TCPSockets.Orphans), units.Thousands(v.After.TCPSockets.Pages)))
	f.Says = fmt.Sprintf("%d connections of this box were aborted, though TCP's memory is not short: too many closed ones wait for their far end (\"too many orphaned sockets\")", aborted)
	want := "…"
	if now, known := v.number(limit); known {
		f.Evidence = append(f.Evidence, fmt.Sprintf("%s = %d", limit, now))
		want = fmt.Sprint(4 * now)
	}
	f.Remedies = []Remedy{
		{Command: "sysctl -w " + limit + "=" + want, Text: "let more of them wait, at up to 64 KiB each; a file in /etc/sysctl.d that sets less than the kernel's own figure is better removed"},
		{Command: "ss -tn state fin-wait-1 state last-ack state closing", Text: "see whose they are: a program that closes connections to far ends which no longer answer"},
		v.moreTCPMemory(),
	}
	f.Expect = "closed connections end by themselves"
}

// moreTCPMemory doubles the three figures of tcp_mem.
func (v *view) moreTCPMemory() Remedy {
	const text = "twice the memory for TCP, if the machine has it (pages of 4 KiB)"
	var low, middle, high int
	if n, _ := fmt.Sscan(v.Sysctls["net.ipv4.tcp_mem"], &low, &middle, &high); n < 3 {
		return Remedy{Text: text + ": twice each figure of net.ipv4.tcp_mem"}
	}
	return Remedy{Command: fmt.Sprintf("sysctl -w net.ipv4.tcp_mem='%d %d %d'", 2*low, 2*middle, 2*high), Text: text}
}

// sentAgain checks the connections of this box's own programs (a proxy, a tunnel over TCP).
// What it forwards is not counted there.
func sentAgain(v *view) (o outcome) {
	const least = 1000 // segments, below which a share says little
	sent, again, first := v.counted("Tcp.OutSegs"), v.counted("Tcp.RetransSegs"), v.counted("TcpExt.TCPSynRetrans")
	// Far ends that are gone, or a filter that drops, let only the first segment of a connection be
	// sent again: the way may be sound.
	again -= min(again, first)
	share := float64(again) / float64(max(1, sent))
	// A way on which little gets through carries few segments. One connection to a far end that
	// is gone sends a few again, and ever more seldom.
	if sent < least && (share < muchAgain || again < manyAgain) || share < held {
		return o
	}
	f := Finding{
		Severity: Notice, core: -1, weight: share,
		Says: fmt.Sprintf("this box's own TCP sends %s of its segments again: packets, or their acknowledgements, are lost on the way", percent(share)),
		Evidence: []string{fmt.Sprintf("Tcp.RetransSegs: %s of %s, TcpExt.TCPTimeouts: %s in %s", units.Thousands(int(again)), units.Thousands(int(sent)),
			units.Thousands(int(v.counted("TcpExt.TCPTimeouts"))), seconds(v.Seconds))},
		Remedies: []Remedy{
			{Command: "ss -tin", Text: "see which connections have retrans: all of one far end, or of one way, name the place"},
			{Text: "follow the way to that far end (mtr): the first hop from which on all lose is the place. If only large packets are lost, the way carries a smaller MTU than this box thinks (try ping -M do with sizes): lower the mtu of the interface or the route"},
		},
		Expect: "one percent of loss and 20 ms leave a connection some 7 Mbit/s; without it, the link's rate",
	}
	var tries []Remedy
	if share >= muchAgain {
		tries = slices.Concat(v.withoutHelp(), v.withoutTSO(), v.withoutChecksums(), v.slowerBoards())
	}
	if share >= moreAgain {
		f.Severity = Warning
		tries = append(tries, v.awake(&f)...)
	}
	f.Remedies = slices.Insert(f.Remedies, 1, tries...) // after the look at connections, which changes nothing
	if share >= badCards && share < muchAgain {
		f.Remedies = slices.Concat(f.Remedies, v.withoutHelp(), v.withoutTSO(), v.withoutChecksums())
	}
	o.add(f)
	return o
}

// awake names the links that sleep between packets (EEE): some pairs of ports lose packets when
// they wake, and count none of them. It returns the commands that keep these links awake.
func (v *view) awake(f *Finding) (remedies []Remedy) {
	for _, n := range v.nics {
		if n.EEE == nil || !n.EEE.Enabled || !n.EEE.Active || n.link.TxPackets == 0 {
			continue
		}
		f.Evidence = append(f.Evidence, n.Name+": EEE is on, and active")
		remedies = append(remedies, Remedy{Command: "ethtool --set-eee " + n.Name + " eee off", Text: "the link sleeps between packets, and some pairs of ports lose those that wake it, without counting them: try it without (the link goes down for a moment)"})
	}
	return remedies
}

// manyAgain is how many segments several connections send again, but not one.
const manyAgain = 20

// slowerBoards returns the commands that let a board's own Ethernet run at 100 Mbit/s: at 1,000, data
// and clock between its two chips must arrive within 2 ns of each other, and a device tree
// with the wrong delays lets most frames in one direction be damaged.
func (v *view) slowerBoards() (remedies []Remedy) {
	for _, n := range v.nics {
		if n.virtual || paravirtual[n.Driver] || n.PCI != nil || n.USB > 0 || n.Mbit != 1000 || n.link.TxPackets == 0 || v.Host.Hypervisor {
			continue
		}
		m := n.setLink("autoneg on advertise "+advertise(100), "try the board's own Ethernet at 100 Mbit/s (the link goes down for a moment): if all is well then, its device tree has the wrong delays for 1,000 (tx-delay, rx-delay, phy-mode): another kernel or device tree is the cure")
		remedies = append(remedies, m)
	}
	return remedies
}

// moreAgain is the share of segments sent again that the far ends of the Internet, some of them
// on bad radio, do not explain alone.
const moreAgain = 0.02

// muchAgain is the share of segments sent again that few ways are as bad as: cards that send
// large packets wrongly are.
const muchAgain = 0.1

// badCards is the share from which on a card is worth a test that costs nothing.
const badCards = 0.05

// withoutTSO returns the commands that make the kernel, not the cards, cut large packets.
func (v *view) withoutTSO() (remedies []Remedy) {
	for _, n := range v.nics {
		if on, known := n.feature("tx-tcp-segmentation"); n.virtual || paravirtual[n.Driver] || known && !on || n.link.TxPackets == 0 {
			continue
		}
		remedies = append(remedies, Remedy{Command: "ethtool -K " + n.Name + " tso off gso off", Text: "try first without segmentation by the card: some drivers send large packets wrongly, and that is undone at once (on)"})
	}
	return remedies
}
