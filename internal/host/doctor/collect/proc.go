package collect

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"strconv"
	"strings"

	"weir/internal/host/doctor"
	"weir/internal/host/proc"
)

func readFile(name string) (string, error) {
	b, err := os.ReadFile(name)
	return string(b), err
}

// softnet reads the counters of the cores' packet queues.
func (r *reader) softnet(c *doctor.Counters) error {
	queues, err := proc.Softnet(r.proc)
	if err != nil {
		return err
	}
	c.Softnet = map[int]doctor.Softnet{}
	for id, q := range queues {
		c.Softnet[id] = doctor.Softnet{Processed: uint64(q.Processed), Dropped: uint64(q.Dropped), Squeezed: uint64(q.TimeSqueezed),
			RPS: uint64(q.ReceivedRps), FlowLimit: uint64(q.FlowLimitCount)}
	}
	return nil
}

// snmp reads the counters of IPv4 and IPv6. If there are none of IPv6, those of IPv4 are
// kept.
func (r *reader) snmp(c *doctor.Counters) error {
	text, err := readFile(r.procFile("net/snmp"))
	if err == nil {
		c.SNMP, err = proc.Pairs(text)
	}
	if err != nil {
		return err
	}
	if text, err = readFile(r.procFile("net/netstat")); err == nil {
		var more map[string]uint64
		if more, err = proc.Pairs(text); err == nil {
			maps.Copy(c.SNMP, more)
		}
	}
	if err != nil {
		r.lacks("netstat", err)
	}
	if text, err = readFile(r.procFile("net/xfrm_stat")); err == nil {
		err = parseXFRM(c.SNMP, text)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // a kernel without IPsec
		r.lacks("xfrm_stat", err)
	}
	if text, err = readFile(r.procFile("net/snmp6")); err == nil {
		err = parseSNMP6(c.SNMP, text)
	}
	if err != nil {
		r.lacks("snmp6", err)
	}
	return nil
}

// parseXFRM adds what IPsec dropped: XfrmInNoStates becomes Xfrm.InNoStates.
func parseXFRM(all map[string]uint64, text string) error {
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) != 2 || !strings.HasPrefix(f[0], "Xfrm") {
			return fmt.Errorf("line %q", line)
		}
		n, err := strconv.ParseUint(f[1], 10, 64)
		if err != nil {
			return fmt.Errorf("line %q", line)
		}
		all["Xfrm."+strings.TrimPrefix(f[0], "Xfrm")] = n
	}
	return nil
}

// parseSNMP6 adds the counters of IPv6: Ip6FragFails becomes Ip6.FragFails, and
// Udp6RcvbufErrors Udp6.RcvbufErrors.
func parseSNMP6(all map[string]uint64, text string) error {
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) != 2 || !strings.HasPrefix(f[0], "Ip6") && !strings.HasPrefix(f[0], "Udp6") && !strings.HasPrefix(f[0], "Icmp6Out") {
			continue
		}
		protocol, name, _ := strings.Cut(f[0], "6")
		n, err := strconv.ParseUint(f[1], 10, 64)
		if err != nil {
			return fmt.Errorf("line %q", line)
		}
		all[protocol+"6."+name] = n
	}
	return nil
}

// table returns the sums of a file of /proc/net/stat.
func (r *reader) table(name string) (map[string]uint64, error) {
	all, err := proc.NetStat(r.proc)
	if err != nil {
		return nil, err
	}
	if all[name] == nil {
		return nil, fmt.Errorf("read /proc/net/stat/%s: %w", name, fs.ErrNotExist)
	}
	if _, counted := all[name]["entries"]; !counted {
		return nil, fmt.Errorf("read /proc/net/stat/%s: no column entries", name)
	}
	return all[name], nil
}

// conntrack prefers the namespace's own count to the table's. A kernel with neither
// tracks nothing.
func (r *reader) conntrack(c *doctor.Counters) {
	text, err := readFile(r.procFile("sys/net/netfilter/nf_conntrack_count"))
	t, noTable := r.table("nf_conntrack")
	if errors.Is(err, fs.ErrNotExist) && errors.Is(noTable, fs.ErrNotExist) {
		c.Conntrack = &doctor.Conntrack{}
		return
	}
	if noTable != nil {
		r.lacks("conntrack", noTable)
		return
	}
	c.Conntrack = &doctor.Conntrack{Count: int(t["entries"]), InsertFailed: t["insert_failed"], Drop: t["drop"], EarlyDrop: t["early_drop"], Invalid: t["invalid"]}
	if n, bad := strconv.Atoi(strings.TrimSpace(text)); err == nil && bad == nil {
		c.Conntrack.Count = n
	}
}

// destinations reads how many routes and cached destinations IPv6 has: the sixth figure of
// rt6_stats (rt6_stats_seq_show). Without the file there is no IPv6.
func (r *reader) destinations(c *doctor.Counters) {
	text, err := readFile(r.procFile("net/rt6_stats"))
	if err != nil {
		return
	}
	f := strings.Fields(text)
	if len(f) < 6 {
		r.lacks("destinations_ipv6", fmt.Errorf("read /proc/net/rt6_stats: %q", text))
		return
	}
	n, err := strconv.ParseInt(f[5], 16, 32)
	if err != nil {
		r.lacks("destinations_ipv6", fmt.Errorf("read /proc/net/rt6_stats: %w", err))
		return
	}
	entries := int(n)
	c.Destinations6 = &entries
}

func (r *reader) neighbours(c *doctor.Counters) {
	t4, err := r.table("arp_cache")
	if err != nil {
		r.lacks("neighbours", err)
		return
	}
	c.Neighbours = &doctor.Neighbours{Entries4: int(t4["entries"]), Full4: t4["table_fulls"]}
	t6, err := r.table("ndisc_cache")
	if err != nil {
		r.lacks("neighbours of IPv6", err)
		return
	}
	c.Neighbours.Entries6, c.Neighbours.Full6 = int(t6["entries"]), t6["table_fulls"]
}
