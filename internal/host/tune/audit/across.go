package audit

import (
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"weir/internal/host/tune/target"
	"weir/internal/pattern"
)

// A Note is what several lines say together: the same setting twice, two that contradict
// each other, or figures that do not fit.
type Note struct {
	File    string `json:"file"`
	Line    int    `json:"line"` // the last of the lines
	Says    string `json:"says"`
	Harmful bool   `json:"harmful"` // something does not act as it reads
}

// Across compares the lines of files with one another. Lines that are not in force do not
// count.
func (j *Auditor) Across(lines []Line) []Note {
	a := across{auditor: j, last: map[string]Line{}}
	for _, l := range lines {
		if !l.Off && !l.Quoted && !l.Blanks {
			a.duplicate(l)
			a.last[l.Key] = l
		}
	}
	if j.Target.Family() == linux {
		a.linux()
	} else {
		a.buffers()
		a.clusters()
		a.hashes()
	}
	return a.notes
}

type across struct {
	auditor *Auditor
	last    map[string]Line // for each key
	notes   []Note
}

func (a *across) note(l Line, harmful bool, format string, args ...any) {
	a.notes = append(a.notes, Note{File: l.File, Line: l.Line, Says: fmt.Sprintf(format, args...), Harmful: harmful})
}

// duplicate notes a key that an earlier line sets.
func (a *across) duplicate(l Line) {
	before, found := a.last[l.Key]
	switch {
	case !found || before.Line == l.Line && before.File == l.File:
	case sameWords(before.Value, l.Value):
		a.note(l, false, "%s is set twice, as in %s", l.Key, place(before, l))
	case before.File != l.File: // as meant in sysctl.d
		a.note(l, false, "%s=%s overrides %s=%s in %s (in the order given)", l.Key, l.Value, l.Key, before.Value, place(before, l))
	default:
		a.note(l, true, "%s=%s contradicts %s=%s in %s; the last one counts", l.Key, l.Value, l.Key, before.Value, place(before, l))
	}
}

func sameWords(a, b string) bool {
	return strings.Join(strings.Fields(a), " ") == strings.Join(strings.Fields(b), " ")
}

// place names a line, as seen from another.
func place(l, from Line) string {
	if l.File == from.File {
		return fmt.Sprintf("line %d", l.Line)
	}
	return fmt.Sprintf("%s:%d", l.File, l.Line)
}

// number returns the number that a key is set to.
func (a *across) number(key string) (n uint64, l Line, set bool) {
	l, set = a.last[key]
	n, err := strconv.ParseUint(l.Value, 10, 64)
	return n, l, set && err == nil
}

// standing returns the number that a key is set to, or has by itself. It is unknown if the
// line's value is no number, and if the data does not say the target's default: a family
// of keys has none in common.
func (a *across) standing(key string) (n uint64, known bool) {
	if l, set := a.last[key]; set && l.Value != asShipped {
		n, _, known := a.number(key)
		return n, known
	}
	return a.byItself(key)
}

// byItself returns the number that a key has on the target if no line sets it.
func (a *across) byItself(key string) (n uint64, known bool) {
	j := a.auditor
	if value, found := target.Shipped(j.Target, key); found {
		n, err := strconv.ParseUint(value, 10, 64)
		return n, err == nil
	}
	r := j.pick(key)
	if r == nil || r.Pattern() || j.NoVersion() {
		return 0, false
	}
	if _, _, _, missing := j.missing(r, Line{Key: key}); missing {
		return 0, false
	}
	if _, gone := j.isRemoved(r); gone {
		return 0, false
	}
	return target.DefaultNumber(r, j.Target)
}

// buckets returns the size of a hash table. Instead of a size that is no power of two, the
// kernel takes its default (tcp_hc_init(), syncache_init()).
func (a *across) buckets(key string) (n uint64, known bool) {
	if n, known = a.standing(key); known && bits.OnesCount64(n) != 1 {
		return a.byItself(key)
	}
	return n, known
}

// clusterOverhead: the kernel counts 256 bytes of an mbuf with each cluster of 2048, so a
// buffer needs 9/8 of its size (sbreserve_locked()).
const (
	overheadNumerator   = 9
	overheadDenominator = 8
)

// buffers compares FreeBSD's socket buffers with their limit.
func (a *across) buffers() {
	limit, known := a.standing("kern.ipc.maxsockbuf")
	for _, key := range []string{"net.inet.tcp.recvbuf_max", "net.inet.tcp.sendbuf_max", "net.inet.tcp.recvspace", "net.inet.tcp.sendspace"} {
		n, l, set := a.number(key)
		if need := n * overheadNumerator / overheadDenominator; set && known && need > limit {
			own, _ := a.byItself(key)
			ownLimit, _ := a.byItself("kern.ipc.maxsockbuf")
			harmful := n != own || limit != ownLimit // FreeBSD's own values do not fit either
			a.note(l, harmful, "%s=%d needs kern.ipc.maxsockbuf of at least %d (9/8 of it), which is %d: the kernel refuses such a buffer", key, n, need, limit)
		}
	}
	for _, way := range []string{"recv", "send"} {
		n, l, set := a.number("net.inet.tcp." + way + "space")
		if most, known := a.standing("net.inet.tcp." + way + "buf_max"); set && known && n > most {
			a.note(l, true, "net.inet.tcp.%sspace=%d is more than net.inet.tcp.%sbuf_max, which is %d", way, n, way, most)
		}
	}
	first, l, set := a.number("net.inet.ip.portrange.first")
	if last, known := a.standing("net.inet.ip.portrange.last"); set && known && first >= last {
		a.note(l, true, "net.inet.ip.portrange.first=%d is not below last, which is %d", first, last)
	}
}

var (
	queuesKey      = pattern.New(`^(?:dev\.([a-z0-9_]+?)\.([0-9]+)\.iflib\.override_nrxqs|hw\.([a-z0-9]+)\.(?:num_queues|nrxq))$`)
	descriptorsKey = pattern.New(`^(?:dev\.([a-z0-9_]+?)\.([0-9]+)\.iflib\.override_nrxds|hw\.([a-z0-9]+)\.(?:rxd|qsize_rxq))$`)
)

// clusters compares the clusters with what the receive rings of all cards hold. Only cards
// whose queues and descriptors are both set count: of the others the need is unknown.
func (a *across) clusters() {
	clusters, l, set := a.number("kern.ipc.nmbclusters")
	if !set || clusters == 0 {
		return
	}
	queues := map[string]uint64{}
	var need uint64
	each := func(form *pattern.Pattern, do func(card string, n uint64)) {
		for key := range a.last {
			if m := form.FindStringSubmatch(key); m != nil {
				if n, _, set := a.number(key); set {
					do(m[1]+m[2]+m[3], n)
				}
			}
		}
	}
	each(queuesKey, func(card string, n uint64) { queues[card] = n })
	each(descriptorsKey, func(card string, n uint64) { need += queues[card] * n })
	if need > clusters {
		a.note(l, true, "kern.ipc.nmbclusters=%d is less than the receive rings hold: %d clusters (queues times descriptors); some queues get none", clusters, need)
	} else if need > clusters/2 {
		a.note(l, false, "kern.ipc.nmbclusters=%d: the receive rings alone hold %d clusters (queues times descriptors)", clusters, need)
	}
}

// hashes compares hash tables with their limits.
func (a *across) hashes() {
	for _, key := range []string{"net.pf.states_hashsize", "net.pf.source_nodes_hashsize", "net.inet.tcp.tcbhashsize", "net.inet.tcp.hostcache.hashsize", "net.inet.tcp.syncache.hashsize"} {
		if n, l, set := a.number(key); set && n != 0 && bits.OnesCount64(n) != 1 { // 0 leaves the size to the kernel
			a.note(l, true, "%s=%d is no power of two: the kernel takes another value, or its default", key, n)
		}
	}
	for _, table := range []string{"net.inet.tcp.hostcache.", "net.inet.tcp.syncache."} {
		limit, l, set := a.number(table + "cachelimit")
		size, sized := a.buckets(table + "hashsize")
		bucket, bounded := a.standing(table + "bucketlimit")
		if set && sized && bounded && limit > size*bucket {
			a.note(l, true, "%scachelimit=%d is more than hashsize times bucketlimit, %d x %d = %d: there are never more entries", table, limit, size, bucket, size*bucket)
		}
	}
	most, l, set := a.number("net.inet.ip.fw.dyn_max")
	buckets, known := a.standing("net.inet.ip.fw.dyn_buckets")
	if buckets = min(buckets, mostBuckets); set && known && buckets > 0 && most/buckets > longChain {
		a.note(l, false, "net.inet.ip.fw.dyn_max=%d states in at most %d buckets make lists of %d", most, buckets, most/buckets)
	}
	if n, l, set := a.number("net.inet.ip.fw.dyn_buckets"); set && n > mostBuckets {
		a.note(l, true, "net.inet.ip.fw.dyn_buckets=%d acts as %d, the most that ipfw takes", n, mostBuckets)
	}
}

const (
	mostBuckets = 65536 // of ipfw
	longChain   = 16
)

// linux compares Linux's limits with one another.
func (a *across) linux() {
	a.ascending("net.ipv4.neigh.default.gc_thresh1", "net.ipv4.neigh.default.gc_thresh2", "net.ipv4.neigh.default.gc_thresh3")
	a.ascending("net.ipv6.neigh.default.gc_thresh1", "net.ipv6.neigh.default.gc_thresh2", "net.ipv6.neigh.default.gc_thresh3")
	a.ascending("net.ipv4.ipfrag_low_thresh", "net.ipv4.ipfrag_high_thresh")
	a.ascending("net.core.rmem_default", "net.core.rmem_max")
	a.ascending("net.core.wmem_default", "net.core.wmem_max")
	a.ascending("vm.dirty_background_ratio", "vm.dirty_ratio")
	for _, key := range []string{"net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem", "net.ipv4.tcp_mem", "net.ipv4.ip_local_port_range"} {
		a.ordered(key)
	}
	tracked, l, set := a.number("net.netfilter.nf_conntrack_max")
	if buckets, _, known := a.number("net.netfilter.nf_conntrack_buckets"); set && known && buckets > 0 && tracked/buckets > longTracked {
		a.note(l, false, "net.netfilter.nf_conntrack_max=%d in %d buckets makes lists of %d connections; each has two entries", tracked, buckets, tracked/buckets)
	}
	a.filters()
}

const longTracked = 8

// ascending notes keys whose values do not rise in the given order.
func (a *across) ascending(keys ...string) {
	var low uint64
	var below *Line // that of the last key that is set
	for _, key := range keys {
		high, above, set := a.number(key)
		if !set {
			continue
		}
		if below != nil && low > high {
			a.note(above, true, "%s=%d is below %s=%d in %s", key, high, below.Key, low, place(*below, above))
		}
		low, below = high, &above
	}
}

// ordered notes a list of numbers that does not rise.
func (a *across) ordered(key string) {
	l, set := a.last[key]
	if !set {
		return
	}
	var before uint64
	for _, word := range strings.Fields(l.Value) {
		n, err := strconv.ParseUint(word, 10, 64)
		if err != nil {
			return
		}
		if n < before {
			a.note(l, true, "%s=%s does not rise: %d follows %d", key, l.Value, n, before)
			return
		}
		before = n
	}
}

// filters notes an rp_filter that the one of all interfaces exceeds: the larger counts.
func (a *across) filters() {
	const all = "net.ipv4.conf.all.rp_filter"
	n, whole, set := a.number(all)
	for _, key := range slices.Sorted(maps.Keys(a.last)) {
		l := a.last[key]
		if name, ok := strings.CutPrefix(key, "net.ipv4.conf."); !set || !ok || key == all || !strings.HasSuffix(name, ".rp_filter") || strings.HasPrefix(name, "default.") {
			continue
		}
		if own, _, ok := a.number(key); ok && own < n {
			a.note(l, true, "%s=%d has no effect: the larger of it and of all counts, which %s sets to %d", key, own, place(whole, l), n)
		}
	}
}
