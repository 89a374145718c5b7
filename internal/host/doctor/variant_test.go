package doctor

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"weir/internal/host/cpulist"
)

// variants are differences between two machines with the same trouble. The verdict may
// name other devices and cores, but must rest on the same check.
var variants = []struct {
	name   string
	change func(s *Snapshot)
}{
	{"longer", func(s *Snapshot) { stretch(s, 3) }},
	{"shorter", func(s *Snapshot) { stretch(s, 0.1) }},
	{"counters near their end", func(s *Snapshot) { lift(s, 1<<40) }},
	{"cores turned round", mirror},
	{"i40e", func(s *Snapshot) { count(s, "rx-%s.packets", "i40e") }},
	{"mlx5", func(s *Snapshot) { count(s, "rx%s_packets", "mlx5_core") }},
	{"ena", func(s *Snapshot) { count(s, "queue_%s_rx_cnt", "ena") }},
	{"other names", func(s *Snapshot) { rename(s, "eth", "enp4s0f") }},
	{"names with a number", func(s *Snapshot) { rename(s, "eth", "vf1p") }},
	{"no fact about power, rings or hash", func(s *Snapshot) {
		s.Host, s.Services, s.Chains, s.Routes = Host{System: "Linux"}, nil, nil, nil
		for i := range s.Interfaces {
			n := &s.Interfaces[i]
			n.RSS, n.EEE, n.Pause, n.PCI = nil, nil, nil, nil
		}
	}},
	{"no softnet, no conntrack, no neighbours", func(s *Snapshot) {
		for _, c := range []*Counters{s.Before, s.After} {
			c.Softirqs, c.Conntrack, c.Neighbours, c.Throttle, c.SNMP = nil, nil, nil, nil, nil
		}
	}},
	{"interrupts anywhere, and only counted", func(s *Snapshot) {
		for i := range s.IRQs {
			s.IRQs[i].Affinity, s.IRQs[i].Effective = cpulist.Format(ids(s)), ""
		}
	}},
	{"a little steal", func(s *Snapshot) {
		for id, t := range s.After.CPUs {
			t.Steal += 5
			s.After.CPUs[id] = t
		}
	}},
	{"a bridge, a VLAN and a container's veths", func(s *Snapshot) {
		for _, n := range []Interface{{Name: "br0", Kind: "bridge", Up: true, MTU: 1500}, {Name: "veth0a1b", Kind: "veth", Up: true, Mbit: 10000, RxQueues: 1, TxQueues: 1}} {
			s.Interfaces = append(s.Interfaces, n)
			s.Before.Links[n.Name], s.After.Links[n.Name] = Link{}, Link{RxPackets: 4000, RxBytes: 3e6}
		}
	}},
	{"64 cores", func(s *Snapshot) { widen(s, 64) }},
	{"hyper-threads", func(s *Snapshot) {
		count := len(s.CPUs)
		widen(s, 2*count)
		for i := range s.CPUs {
			s.CPUs[i].Siblings = []int{i % count, i%count + count}
			s.CPUs[i].Node = s.CPUs[i%count].Node
		}
	}},
	{"an idle card more", func(s *Snapshot) {
		s.Interfaces = append(s.Interfaces, Interface{Name: "idle0", Kind: "physical", Driver: "e1000e", Up: true, MTU: 1500, Mbit: 1000, RxQueues: 1, TxQueues: 1, RPS: []string{""}})
		s.Before.Links["idle0"], s.After.Links["idle0"] = Link{RxPackets: 100}, Link{RxPackets: 130}
	}},
}

// depends lists machines whose trouble a variant removes, or makes impossible to see.
var depends = map[string][]string{
	"an idle card more":                     {"veth-queue-full"},                                               // then the veths do not count as cards
	"interrupts anywhere, and only counted": {"wrong-node-few"},                                                // only the affinity shows it
	"64 cores":                              {"drops-full", "busy-listed", "one-core-full", "two-queues-full"}, // then there is room
	"hyper-threads":                         {"drops-full", "busy-listed", "one-core-full", "hyper-threads"},
	"other names":                           {"virtio-one-queue", "xen-one-core"}, // the interrupts' names do not tell the interface
	"names with a number":                   {"virtio-one-queue", "xen-one-core"},
	"i40e":                                  {"busy-listed"}, // only ixgbe counts unused queues
	"mlx5":                                  {"busy-listed"},
	"ena":                                   {"busy-listed"},
	"shorter":                               {"idle", "flaps-and-crc"}, // too few packets to tell a load at all, or a loss
	"no fact about power, rings or hash":    {"slot-2-gbit"},
	"no softnet, no conntrack, no neighbours": {"heat", "neighbours-full", "conntrack-full", "conntrack-lists"},
}

func TestVariants(t *testing.T) {
	for _, m := range machines {
		for _, variant := range variants {
			if slices.Contains(depends[variant.name], m.name) {
				continue
			}
			t.Run(m.name+"/"+variant.name, func(t *testing.T) {
				s := clone(t, m.build().s)
				variant.change(s)
				r, err := Examine(s, nil)
				if err != nil {
					t.Fatal(err)
				}
				v := r.Verdict
				if v.Check != m.check || v.Limit != m.limit || v.Severity != m.severity {
					t.Errorf("check %q, limit %q, severity %s; want %q, %q, %s: %s", v.Check, v.Limit, v.Severity, m.check, m.limit, m.severity, v.Sentence)
				}
				for _, f := range r.Findings {
					if f.Severity > Notice && !slices.Contains(m.also, f.Check) && f.Because == "" {
						t.Errorf("%s %s: %s", f.Severity, f.Check, f.Says)
					}
				}
			})
		}
	}
}

// clone copies a snapshot by way of JSON.
func clone(t *testing.T, s *Snapshot) *Snapshot {
	t.Helper()
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	c, err := parseBundle(text)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func ids(s *Snapshot) (all []int) {
	for _, c := range s.CPUs {
		all = append(all, c.ID)
	}
	return all
}

// each changes all counters of both samples through their JSON. f gets each counter's
// number before and after.
func each(s *Snapshot, f func(before, after float64) (float64, float64)) {
	var b, a map[string]any
	for _, one := range []struct {
		from *Counters
		to   *map[string]any
	}{{s.Before, &b}, {s.After, &a}} {
		text, err := json.Marshal(one.from)
		if err == nil {
			err = json.Unmarshal(text, one.to)
		}
		if err != nil {
			panic(err)
		}
	}
	walk(b, a, f)
	for _, one := range []struct {
		from map[string]any
		to   **Counters
	}{{b, &s.Before}, {a, &s.After}} {
		text, err := json.Marshal(one.from)
		*one.to = &Counters{}
		if err == nil {
			err = json.Unmarshal([]byte(regexp.MustCompile(`(\d)\.(\d+)e\+(\d+)`).ReplaceAllStringFunc(string(text), scaled64)), *one.to)
		}
		if err != nil {
			panic(err)
		}
	}
}

func scaled64(text string) string {
	var f float64
	if _, err := fmt.Sscan(text, &f); err != nil {
		panic(err)
	}
	return fmt.Sprintf("%.0f", f)
}

// gauges are not counters.
var gauges = []string{"rate_bits", "backlog_bytes", "count", "entries_ipv4", "entries_ipv6", "states", "thread", "cpu", "queue"}

func walk(b, a map[string]any, f func(before, after float64) (float64, float64)) {
	for key, after := range a {
		switch after := after.(type) {
		case map[string]any:
			if before, same := b[key].(map[string]any); same {
				walk(before, after, f)
			}
		case []any:
			for i := range after {
				if one, ok := after[i].(map[string]any); ok { // else it is a name
					walk(b[key].([]any)[i].(map[string]any), one, f)
				}
			}
		case float64:
			if before, same := b[key].(float64); same && !slices.Contains(gauges, key) {
				b[key], a[key] = f(before, after)
			}
		}
	}
}

// widen adds idle cores like the first.
func widen(s *Snapshot, cores int) {
	for id := len(s.CPUs); id < cores; id++ {
		c := s.CPUs[0]
		c.ID, c.Siblings = id, []int{id}
		s.CPUs = append(s.CPUs, c)
		s.Before.CPUs[id], s.After.CPUs[id] = CPUTimes{Idle: 5000}, CPUTimes{Idle: 5000 + ticks}
		s.Before.Softnet[id], s.After.Softnet[id] = Softnet{}, Softnet{}
	}
}

// stretch lengthens the time between the samples at the same rates.
func stretch(s *Snapshot, factor float64) {
	s.Seconds, s.Wished = s.Seconds*factor, s.Wished*factor
	each(s, func(before, after float64) (float64, float64) {
		return before, before + float64(int64((after-before)*factor+0.5))
	})
}

// lift adds to all counters.
func lift(s *Snapshot, by float64) {
	softnet, after := s.Before.Softnet, s.After.Softnet // these have 32 bits
	each(s, func(before, after float64) (float64, float64) { return before + by, after + by })
	s.Before.Softnet, s.After.Softnet = softnet, after
}

// mirror reverses the cores' numbers.
func mirror(s *Snapshot) {
	last := slices.Max(ids(s))
	turn := func(id int) int { return last - id }
	list := func(text string) string {
		all, err := cpulist.Parse(text)
		if err != nil {
			panic(err)
		}
		for i := range all {
			all[i] = turn(all[i])
		}
		return cpulist.Format(all)
	}
	for i := range s.CPUs {
		c := &s.CPUs[i]
		c.ID = turn(c.ID)
		for k := range c.Siblings {
			c.Siblings[k] = turn(c.Siblings[k])
		}
	}
	slices.Reverse(s.CPUs)
	for i := range s.IRQs {
		s.IRQs[i].Affinity, s.IRQs[i].Effective = list(s.IRQs[i].Affinity), list(s.IRQs[i].Effective)
	}
	for i := range s.Interfaces {
		for k, rps := range s.Interfaces[i].RPS {
			s.Interfaces[i].RPS[k] = list(rps)
		}
		for _, r := range s.Interfaces[i].NAPI {
			r.Thread.CPUs, r.Thread.CPU = list(r.Thread.CPUs), turn(r.Thread.CPU)
		}
	}
	for _, c := range []*Counters{s.Before, s.After} {
		c.CPUs, c.Softnet, c.Throttle = turned(c.CPUs, turn), turned(c.Softnet, turn), turned(c.Throttle, turn)
		for irq, by := range c.IRQs {
			c.IRQs[irq] = turned(by, turn)
		}
		for i := range c.VPN {
			for k := range c.VPN[i].Workers {
				w := &c.VPN[i].Workers[k]
				w.CPUs, w.CPU = list(w.CPUs), turn(w.CPU)
			}
		}
	}
}

func turned[V any](m map[int]V, turn func(int) int) map[int]V {
	if m == nil {
		return nil
	}
	all := map[int]V{}
	for k, v := range m {
		all[turn(k)] = v
	}
	return all
}

var testQueue = regexp.MustCompile(`^rx_queue_(\d+)_packets$`)

// count makes the driver count queues under other names.
func count(s *Snapshot, form, driver string) {
	for _, c := range []*Counters{s.Before, s.After} {
		for name, all := range c.Statistics {
			other := map[string]uint64{}
			for key, n := range all {
				if m := testQueue.FindStringSubmatch(key); m != nil {
					key = fmt.Sprintf(form, m[1])
				}
				other[key] = n
			}
			c.Statistics[name] = other
		}
	}
	for i := range s.Interfaces {
		if s.Interfaces[i].Driver != "" {
			s.Interfaces[i].Driver = driver
		}
	}
}

// rename changes the prefix of interfaces' names.
func rename(s *Snapshot, from, to string) {
	name := func(old string) string {
		if rest, found := strings.CutPrefix(old, from); found {
			return to + rest
		}
		return old
	}
	for i := range s.Interfaces {
		n := &s.Interfaces[i]
		n.Name, n.Parent = name(n.Name), name(n.Parent)
	}
	for i := range s.IRQs {
		s.IRQs[i].Name, s.IRQs[i].Interface = name(s.IRQs[i].Name), ""
	}
	for _, c := range []*Counters{s.Before, s.After} {
		links, statistics := maps.Clone(c.Links), maps.Clone(c.Statistics)
		clear(c.Links)
		clear(c.Statistics)
		for key, l := range links {
			c.Links[name(key)] = l
		}
		for key, all := range statistics {
			c.Statistics[name(key)] = all
		}
		for i := range c.Qdiscs {
			c.Qdiscs[i].Interface = name(c.Qdiscs[i].Interface)
		}
		for i := range c.VPN {
			c.VPN[i].Via = []string{name(c.VPN[i].Via[0])}
		}
	}
}
