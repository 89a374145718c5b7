package tune

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"weir/internal/host/tune/arith"
)

// figure is the result of a formula, with the calculation in numbers.
type figure struct {
	value int64
	shown string
}

// Arithmetic is the result of a formula whose inputs are known, whether or not a setting
// uses it. It helps people who configure another machine.
type Arithmetic struct {
	Name  string `json:"name"` // db's name of the formula
	Value int64  `json:"value"`
	Shown string `json:"shown"`
}

// formulas are shown by arithmetic in this order, each with the inputs it needs.
var formulas = []struct {
	formula string
	needs   []string
}{
	{"bdp", []string{"link", "rtt"}},
	{"socket-buffer", []string{"link", "rtt"}},
	{"mss", []string{"mtu"}},
	{"initial-window", []string{"mtu"}},
	{"queues", []string{"cores", "ports"}},
	{"ifqmaxlen", []string{"link", "ports"}},
	{"backlog", []string{"burst"}},
	{"budget", []string{"link"}},
	{"netdev-backlog", []string{"link"}},
	{"conntrack", []string{"memory"}},
}

// arithmetic computes each formula whose inputs are known.
func (in *Inputs) arithmetic() ([]Arithmetic, error) {
	all := []Arithmetic{}
	for _, a := range formulas {
		if slices.ContainsFunc(a.needs, func(name string) bool { return !in.has(name) }) {
			continue
		}
		f, err := compute(a.formula, in)
		if err != nil {
			return nil, err
		}
		all = append(all, Arithmetic{a.formula, f.value, f.shown})
	}
	return all, nil
}

// compute computes a formula. Its inputs must be known.
func compute(formula string, in *Inputs) (*figure, error) {
	switch formula {
	case "bdp":
		value := arith.BDP(in.Link, in.RTT)
		return &figure{int64(value), fmt.Sprintf("%s x %v / 8 = %d bytes", rate(in.Link), in.RTT, value)}, nil
	case "socket-buffer":
		value := arith.SocketBuffer(in.Link, in.RTT)
		scale := arith.WindowScale(value)
		return &figure{int64(value), fmt.Sprintf("2 x %s x %v / 8 = %d bytes (%s); window scale %d: 65535 x 2^%d = %d",
			rate(in.Link), in.RTT, value, arith.Bytes(value), scale, scale, arith.Window(scale))}, nil
	case "mss":
		link := in.segment()
		return &figure{int64(link.MSS()), fmt.Sprintf("%s = %d; with timestamps %d of %d bytes in a frame are data, %.2f %%",
			link.Terms(), link.MSS(), link.Payload(), link.MTU+14, 100*link.Efficiency())}, nil
	case "initial-window":
		mss := in.segment().MSS()
		value := arith.InitialWindow(mss)
		return &figure{int64(value), fmt.Sprintf("65535 / %d = %d segments", mss, value)}, nil
	case "queues":
		value := arith.QueuesWanted(in.Cores, in.Ports)
		return &figure{int64(value), fmt.Sprintf("%d cores / %d ports, at least 2, at most the cores = %d", in.Cores, in.Ports, value)}, nil
	case "ifqmaxlen":
		value := arith.SendQueue(in.Ports, in.Link)
		return &figure{int64(value), fmt.Sprintf("max(256 x %d ports, %.2f packets of 1460 bytes in 50 ms at %s) = %d",
			in.Ports, arith.PacketsIn(50*time.Millisecond, in.Link, 1460), rate(in.Link), value)}, nil
	case "backlog":
		value := arith.Backlog(in.Burst, in.Accepted)
		return &figure{int64(value), fmt.Sprintf("%d arrive - %d accepted = %d short; 4 x that, up to a power of two = %d",
			in.Burst, in.Accepted, max(0, in.Burst-in.Accepted), value)}, nil
	case "budget":
		value := arith.Budget(in.Link)
		return &figure{int64(value), fmt.Sprintf("frames of 1500 bytes in 2 ms at %s, from 300 to 4096 = %d", rate(in.Link), value)}, nil
	case "netdev-backlog":
		value := arith.NetdevBacklog(in.Link)
		return &figure{int64(value), fmt.Sprintf("packets of 1500 bytes in 10 ms at %s, at least 1000 = %d", rate(in.Link), value)}, nil
	case "conntrack":
		value := arith.Conntrack(in.Memory)
		return &figure{int64(value), fmt.Sprintf("%s / 16 KiB, a power of two from 65536 to 1048576 = %d", arith.Bytes(in.Memory), value)}, nil
	}
	return nil, fmt.Errorf("no figure comes from the formula %q", formula)
}

// segment returns the link that TCP's segments cross, with timestamps, because systems
// send them.
func (in *Inputs) segment() arith.Link {
	return arith.Link{MTU: in.MTU, PPPoE: in.PPPoE, Timestamps: true}
}

// rate writes a line's speed for people.
func rate(bitsPerSecond uint64) string {
	for _, u := range []struct {
		unit uint64
		name string
	}{{1_000_000_000, "Gbit/s"}, {1_000_000, "Mbit/s"}, {1_000, "kbit/s"}} {
		if bitsPerSecond >= u.unit {
			return strconv.FormatFloat(float64(bitsPerSecond)/float64(u.unit), 'f', -1, 64) + " " + u.name
		}
	}
	return fmt.Sprintf("%d bit/s", bitsPerSecond)
}

// fill makes a value from a record's value: "{}" is the figure, "=" the field found in
// the same place.
func fill(value, found string, f *figure) string {
	now := strings.Fields(found)
	fields := strings.Fields(value)
	for i, field := range fields {
		switch {
		case field == "{}" && f != nil:
			fields[i] = strconv.FormatInt(f.value, 10)
		case field == "=" && i < len(now):
			fields[i] = now[i]
		}
	}
	return strings.Join(fields, " ")
}

// suffices reports whether each field of the found value is at least the wanted value. A
// record that only raises then has nothing to do. It returns false for a value that is
// not a number.
func suffices(found, value string) bool {
	return slices.EqualFunc(strings.Fields(found), strings.Fields(value), func(a, b string) bool {
		x, err := strconv.ParseInt(a, 10, 64)
		y, err2 := strconv.ParseInt(b, 10, 64)
		return err == nil && err2 == nil && x >= y
	})
}
