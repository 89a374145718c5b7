package doctor

import (
	"fmt"
	"strings"

	"weir/internal/units"
)

func tableChecks() []Check {
	return []Check{
		{ID: "STATE-1", Title: "the state table is full", Reads: []string{"weir", "pfctl -si"}, Worst: Critical, needs: []need{(*view).noWeir, noStateLimit}, run: states},
		{ID: "NAT-1", Title: "address translation has no port left", Reads: []string{"weir"}, Worst: Critical, needs: []need{(*view).noWeir}, run: natPorts},
		{ID: "NAT-2", Title: "address translation has few ports left", Reads: []string{"weir"}, Worst: Critical, needs: []need{(*view).noWeir}, run: natUses},
		{ID: "CT-1", Title: "the kernel's connection tracking is full", Reads: []string{"conntrack", "sysctls"}, Worst: Critical, needs: []need{noConntrack}, run: conntrack},
		{ID: "CT-2", Title: "the kernel tracks connections that weir forwards", Reads: []string{"conntrack", "weir"}, Worst: Notice, needs: []need{(*view).noWeir, noConntrack}, run: doubleTracking},
		{ID: "DST-1", Title: "the table of IPv6 destinations is full", Reads: []string{"destinations_ipv6", "sysctls", "host.kernel", "snmp"}, Worst: Critical, needs: []need{noSysctls}, run: destinations},
		{ID: "NEIGH-1", Title: "the neighbour table overflows", Reads: []string{"neighbours", "sysctls"}, Worst: Critical, needs: []need{noNeighbours}, run: neighbours},
	}
}

// RulesFile is the default file of weir's rules. weir run can be given another.
const RulesFile = "/etc/weir/weir.conf"

// changeRules returns the command that replaces the rules by what edit prints of the file $F, if that is right.
func changeRules(edit string) string {
	return fmt.Sprintf(`F=%s; %s > $F.new && weir check $F.new && cp $F.new $F && weir load $F`, RulesFile, edit)
}

// putBefore returns the edit that puts lines before the first statement that begins with any of words. A line that goes on
// with the one before it begins none.
func putBefore(words, lines string) string {
	return fmt.Sprintf(`awk '!d && !c && /^[ \t]*(%s)([ \t-]|$)/ {print r; d = 1} {print; c = /\\$/} END {if (!d) print r}' r='%s' $F`, words, lines)
}

// limitStates returns the edit that sets the limit of states: in a first line, where an option may stand in any order, and
// in the lines that set it now, as the last one counts.
func limitStates(limit int) string {
	return fmt.Sprintf(`{ echo 'set limit states %d'; sed -E ':a; /\\$/{N; ba}; /^[ \t]*set[ \t]+limit/{/\{[^}]*$/{N; ba}; s/states[[:space:]]+[^[:space:],}\\]+/states %d/}' $F; }`, limit, limit)
}

// crowded is the share above which a table will overflow at the next peak.
const crowded = 0.8

// fill grades how full a table is.
func fill(share float64, lost uint64) Severity {
	switch {
	case lost > 0 || share >= 0.98:
		return Critical
	case share >= crowded:
		return Warning
	}
	return Notice
}

func of(n, limit int) string {
	return fmt.Sprintf("%s of %s (%s)", units.Thousands(n), units.Thousands(limit), percent(float64(n)/float64(limit)))
}

// noWeir distinguishes a host without weir from one where weir could not be read.
func (v *view) noWeir(o *outcome) bool {
	switch {
	case v.weirUnread():
		o.lacks(v, "weir")
	case v.Weir == nil:
		o.absent = "weir does not run here"
	default:
		return false
	}
	return true
}

// weirUnread reports whether weir runs, or may run, but its counters were not readable.
func (v *view) weirUnread() bool {
	return v.Unreadable["weir"] != "" || v.Weir != nil && (v.After == nil || v.After.Weir == nil)
}

func states(v *view) (o outcome) {
	n, limit := v.After.Weir.States, v.Weir.StateLimit
	refused, _ := v.weirReason("state-limit")
	grade := fill(float64(n)/float64(limit), refused)
	if grade == Notice {
		return o
	}
	o.add(Finding{
		Severity: grade, core: -1, weight: float64(n) / float64(limit),
		Says:     fmt.Sprintf("weir's state table holds %s, and refuses %s", of(n, limit), v.rate(refused)),
		Evidence: []string{"states: " + of(n, limit), fmt.Sprintf("packets dropped with state-limit: %s in %s", units.Thousands(int(refused)), seconds(v.Seconds))},
		Remedies: []Remedy{
			{Command: changeRules(limitStates(2 * limit)), Text: "doubles the limit, if no included file sets it: weir info shows it"},
			{Command: "weir states", Text: "or find out who opens so many"},
		},
		Expect: "new connections are no longer refused",
	})
	return o
}

// longLists is from how many entries per bucket on the look-ups explain full cores: each
// entry on the way is memory that the caches rarely hold.
const longLists = 16

func conntrack(v *view) (o outcome) {
	limit, known := v.number("net.netfilter.nf_conntrack_max")
	if !known && v.After.Conntrack.Count == 0 && v.Sysctls != nil {
		o.absent = "the kernel tracks no connections"
		return o
	}
	if !known || limit <= 0 {
		o.lacks(v, "sysctls.net.netfilter.nf_conntrack_max")
		return o
	}
	now := v.After.Conntrack
	var lost, early uint64
	if v.Before != nil && v.Before.Conntrack != nil {
		b := v.Before.Conntrack
		v.clashes(&o, Grown(now.InsertFailed, b.InsertFailed))
		v.invalid(&o, b)
		lost = Grown(now.Drop, b.Drop)
		early = Grown(now.EarlyDrop, b.EarlyDrop)
	}
	share := float64(now.Count) / float64(limit)
	// The kernel also drops a few packets at a time for reasons other than a full
	// table.
	grade := fill(share, 0)
	if lost+early > 0 && share >= crowded {
		grade = Critical
	}
	if grade > Notice {
		f := Finding{
			Severity: grade, core: -1, weight: share,
			Says:     "the kernel's connection tracking holds " + of(now.Count, limit) + " connections",
			Evidence: []string{fmt.Sprintf("dropped because it was full: %d, evicted early: %d in %s", lost, early, seconds(v.Seconds))},
			Remedies: v.roomForConnections(limit),
			Expect:   "new connections are no longer dropped",
		}
		v.flood(&f, lost+early)
		o.add(f)
	}
	buckets, known := v.number("net.netfilter.nf_conntrack_buckets")
	if !known {
		o.lacks(v, "sysctls.net.netfilter.nf_conntrack_buckets")
		return o
	}
	const long = 4 // entries per bucket
	if buckets > 0 && now.Count > long*buckets {
		o.add(Finding{
			Severity: Warning, core: -1, weight: float64(now.Count) / float64(buckets), kind: "lists", bites: now.Count >= longLists*buckets,
			Says:     fmt.Sprintf("connection tracking has %d entries in each bucket: every look-up walks them", now.Count/buckets),
			Evidence: []string{fmt.Sprintf("%s connections in %s buckets", units.Thousands(now.Count), units.Thousands(buckets))},
			Remedies: []Remedy{{Command: fmt.Sprintf("sysctl -w net.netfilter.nf_conntrack_buckets=%d", now.Count), Text: "one bucket for each connection"}},
			Expect:   "a look-up touches one entry",
		})
	}
	return o
}

// clashes are packets of new connections dropped because another packet, or another
// translation, had entered the same connection first (insert_failed in
// __nf_conntrack_confirm). They happen however much room the table has.
func (v *view) clashes(o *outcome, failed uint64) {
	received := v.received()
	share := float64(failed) / float64(max(failed, received))
	if failed < fewLost || received == 0 || share < seen {
		return
	}
	grade := Notice // a few such packets are normal on a busy gateway
	if share >= lossLimits {
		grade = Warning
	}
	o.add(Finding{
		Severity: grade, core: -1, weight: share,
		Says:     fmt.Sprintf("the kernel's connection tracking drops %s that start a connection which another packet has just entered", v.rate(failed)),
		Evidence: []string{fmt.Sprintf("insert_failed grew by %s in %s", units.Thousands(int(failed)), seconds(v.Seconds))},
		Remedies: []Remedy{{Command: "conntrack -S", Text: "see which cores count it: hosts that send two queries at once from one socket (DNS, for both kinds of addresses) and NAT of many to one address cause this; make the rule choose ports at random (masquerade fully-random), or leave such packets out of tracking (notrack)"}},
		Expect:   "the first packets of connections arrive; otherwise programs retry after seconds",
	})
}

// doubleTracking compares the two tables. Packets that weir forwards at XDP or TCX never
// reach netfilter, so the kernel's table holds only the box's own connections.
func doubleTracking(v *view) (o outcome) {
	mine, kernel := v.After.Weir.States, v.After.Conntrack.Count
	if mine < 1000 || kernel*4 < mine {
		return o
	}
	o.add(Finding{
		Severity: Notice, core: -1, weight: float64(kernel) / float64(mine),
		Says:     fmt.Sprintf("the kernel tracks %s connections beside weir's %s states: much traffic takes the stack", units.Thousands(kernel), units.Thousands(mine)),
		Evidence: []string{"weir info counts what is handed to the stack, by reason (up-…)"},
		Remedies: []Remedy{{Command: "weir info", Text: "see which reason hands packets to the stack; weir interfaces shows the hooks"}},
		Expect:   "packets that weir forwards itself cost a fraction",
	})
	return o
}

// noLimit6 is the first version of Linux whose IPv6 destinations have no limit.
var noLimit6 = [2]int{6, 3}

// notEnforced is the share of the limit that a kernel which enforces it does not reach.
const notEnforced = 1.1

// destinations checks the limit of IPv6's destinations, which kernels before 6.3 have: above it,
// "Route cache is full", and packets to further hosts are lost.
func destinations(v *view) (o outcome) {
	const limit = "net.ipv6.route.max_size"
	var major, minor int
	if n, _ := fmt.Sscanf(v.Host.Kernel, "%d.%d", &major, &minor); n == 2 && (major > noLimit6[0] || major == noLimit6[0] && minor >= noLimit6[1]) {
		o.absent = "this kernel has no limit"
		return o
	}
	most, known := v.number(limit)
	if !known || most <= 0 {
		o.absent = "there is no limit (no IPv6)"
		return o
	}
	if v.After == nil || v.After.Destinations6 == nil {
		o.lacks(v, "destinations_ipv6")
		return o
	}
	share := float64(*v.After.Destinations6) / float64(most)
	if share > notEnforced {
		o.absent = "this kernel does not enforce its limit"
		return o
	}
	grade, lost := fill(share, 0), "are"
	refused, counted := v.refusedRoutes()
	if counted && refused < fewLost {
		grade = min(grade, Warning) // at the limit, and nobody misses anything yet
	}
	switch grade {
	case Notice:
		return o
	case Warning:
		lost = "will be"
	}
	o.add(Finding{
		Severity: grade, core: -1, weight: share,
		Says:     fmt.Sprintf("the table of IPv6 destinations holds %s: packets to further hosts %s lost (\"Route cache is full\")", of(*v.After.Destinations6, most), lost),
		Evidence: append(v.refusals(refused, counted), fmt.Sprintf("%s = %d", limit, most)),
		Remedies: []Remedy{{Command: fmt.Sprintf("sysctl -w %s=%d", limit, max(4*most, 1<<20)), Text: "raise the limit; Linux 6.3 and later have none"}},
		Expect:   "all hosts are reached over IPv6",
	})
	return o
}

// refusedRoutes returns the packets of IPv6 that found no route. Those to a destination that
// finds no room in the table are among them (ip6_null_entry).
func (v *view) refusedRoutes() (n uint64, counted bool) {
	in, knowsIn := v.snmp("Ip6.InNoRoutes")
	out, knowsOut := v.snmp("Ip6.OutNoRoutes")
	return in + out, knowsIn && knowsOut
}

func (v *view) refusals(n uint64, counted bool) []string {
	if !counted {
		return nil
	}
	return []string{fmt.Sprintf("packets of IPv6 without a route (Ip6.InNoRoutes, OutNoRoutes): %s in %s", units.Thousands(int(n)), seconds(v.Seconds))}
}

func neighbours(v *view) (o outcome) {
	a := v.After.Neighbours
	b := a
	if v.Before != nil && v.Before.Neighbours != nil {
		b = v.Before.Neighbours
	}
	for _, t := range []struct {
		family, sysctl string
		entries        int
		overflows      uint64
	}{
		{"IPv4", "net.ipv4.neigh.default.gc_thresh3", a.Entries4, Grown(a.Full4, b.Full4)},
		{"IPv6", "net.ipv6.neigh.default.gc_thresh3", a.Entries6, Grown(a.Full6, b.Full6)},
	} {
		limit, known := v.number(t.sysctl)
		if !known || limit <= 0 {
			o.lacks(v, "sysctls."+t.sysctl)
			continue
		}
		grade := fill(float64(t.entries)/float64(limit), t.overflows)
		if grade == Notice {
			continue
		}
		o.add(Finding{
			Severity: grade, core: -1, weight: float64(t.entries) / float64(limit),
			Says:     fmt.Sprintf("the table of %s neighbours holds %s: further hosts cannot be reached", t.family, of(t.entries, limit)),
			Evidence: []string{fmt.Sprintf("overflows: %d in %s; %s = %d", t.overflows, seconds(v.Seconds), t.sysctl, limit)},
			Remedies: []Remedy{moreNeighbours(strings.TrimSuffix(t.sysctl, "3"), 4*limit)},
			Expect:   "all hosts of the attached networks are reached",
		})
	}
	return o
}

// moreNeighbours raises all three thresholds. Below the first, nothing is collected;
// between the second and the third, entries go after five seconds: without them, the
// table would be collected all the time.
func moreNeighbours(prefix string, limit int) Remedy {
	return Remedy{
		Command: fmt.Sprintf("sysctl -w %s1=%d %s2=%d %s3=%d", prefix, limit/4, prefix, limit/2, prefix, limit),
		Text:    "room for four times as many; the first two keep the collector from running all the time. If most entries are incomplete, something scans the network: see them (ip neigh show nud failed)",
	}
}

// longEstablished is how long an idle TCP connection must be kept at least: 2 hours and 4
// minutes (RFC 5382, REQ-5), in seconds.
const longEstablished = 7440

// roomForConnections doubles the limit, and the hash's buckets with it: a chain should
// hold few entries. A long timeout keeps connections that ended without a word.
func (v *view) roomForConnections(limit int) []Remedy {
	const timeout = "net.netfilter.nf_conntrack_tcp_timeout_established"
	remedies := []Remedy{{
		Command: fmt.Sprintf("sysctl -w net.netfilter.nf_conntrack_max=%d net.netfilter.nf_conntrack_buckets=%d", 2*limit, 2*limit),
		Text:    "doubles the limit, at about 320 bytes each, with a bucket of the hash for each",
	}}
	if buckets, known := v.number("net.netfilter.nf_conntrack_buckets"); known {
		remedies[0].Text += fmt.Sprintf(" (now %s)", units.Thousands(buckets))
	}
	if now, known := v.number(timeout); !known || now > longEstablished {
		text := "forget idle TCP connections after 2 hours and 4 minutes, the least that RFC 5382 allows"
		if known {
			text += fmt.Sprintf(" (now %s s)", units.Thousands(now))
		}
		remedies = append(remedies, Remedy{Command: fmt.Sprintf("sysctl -w %s=%d", timeout, longEstablished), Text: text})
	}
	return append(remedies, v.shorterTimeouts()...)
}

// usualTimeouts are the kernel's own, of what is no open connection of TCP, in seconds.
var usualTimeouts = []setting{
	{"tcp_timeout_close_wait", 60}, {"tcp_timeout_fin_wait", 120}, {"tcp_timeout_time_wait", 120}, {"tcp_timeout_last_ack", 30}, {"tcp_timeout_syn_sent", 120}, {"tcp_timeout_syn_recv", 60},
	{"udp_timeout", 30}, {"udp_timeout_stream", 120}, {"icmp_timeout", 30}, {"generic_timeout", 600},
}

// shorterTimeouts returns the commands that set timeouts back that somebody (kube-proxy, a guide) has set to several times
// the kernel's own: they keep entries of connections that have ended, or of single datagrams.
func (v *view) shorterTimeouts() (remedies []Remedy) {
	const several = 4
	for _, usual := range usualTimeouts {
		name := "net.netfilter.nf_conntrack_" + usual.name
		if now, known := v.number(name); known && now >= several*usual.value {
			remedies = append(remedies, Remedy{Command: fmt.Sprintf("sysctl -w %s=%d", name, usual.value),
				Text: fmt.Sprintf("the kernel's own figure; it is %s s now, and something has set it (kube-proxy: --conntrack-tcp-timeout-close-wait): set it there, too", units.Thousands(now))})
		}
	}
	return remedies
}
