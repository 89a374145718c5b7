package ladder

import (
	"context"
	"errors"
	"fmt"
	"time"

	"weir/internal/bench/iperf"
	"weir/internal/bench/report"
	"weir/internal/bench/sample"
	"weir/internal/lab"
)

// scene is what a record shows: a part at a spot.
type scene struct {
	spot        spot
	part        string
	connections int // TCP connections; 0: the part has only one number of them
}

// onlooker is a host whose traffic is a line of a chart.
type onlooker struct{ host, name string }

// gigabits converts octets per second to Gbit/s.
const gigabits = 8 / 1e9

// watch records the load of the cores and the arrivals at hosts while f runs. It starts
// when f says that it has begun, and lasts at most that long (0: until f ends). The
// record of the last of several runs is kept.
func (l *ladder) watch(s scene, most time.Duration, hosts []onlooker, f func(begun func()) error) (err error) {
	m := sample.Meter{About: "The last run of each. What IP of the receiving host got, with the headers of joined frames counted once: means of a quarter of a second."}
	var counters []*sample.Host
	defer func() {
		for _, c := range counters {
			err = errors.Join(err, c.Close())
		}
	}()
	for _, h := range hosts {
		err := l.testbed.Lab.Do(h.host, func() error {
			c, err := sample.OpenHost()
			if err == nil {
				counters = append(counters, c)
			}
			return err
		})
		if err != nil {
			return err
		}
		m.Rates = append(m.Rates, sample.Rate{Panel: "throughput", Unit: "Gbit/s", Name: h.name, Factor: gigabits})
	}
	m.Read = func() (octets []float64, err error) {
		for _, c := range counters {
			t, err := c.Read()
			if err != nil {
				return nil, err
			}
			octets = append(octets, t.Octets)
		}
		return octets, nil
	}
	w := sample.NewWatch(m)
	err = f(func() { w.Begin(most) })
	record, failed := w.End()
	if err = errors.Join(err, failed); err == nil {
		l.records[s] = record
		l.cost.Add(record.Cost)
	}
	return err
}

// atServer returns the line of traffic to the server of the first pair.
func (l *ladder) atServer(s spot) []onlooker {
	return []onlooker{{l.line(s, 0).server, "to the server"}}
}

// watched adds the chart of a part: one rung after the other.
func (l *ladder) watched(s *report.Section, part string, o lab.Offloads, connections int, what string) {
	var parts []sample.Part
	for _, r := range l.options.chosen() {
		if record := l.records[scene{spot{r, o}, part, connections}]; record != nil {
			parts = append(parts, sample.Part{Name: r.name, Ours: ours(r), Record: record})
		}
	}
	if chart, ok := sample.Chart(fmt.Sprintf("Over time: %s, offloads %s", what, o), parts); ok {
		s.Charts = append(s.Charts, chart)
	}
}

// carry runs loads in iperf3 and watches.
func (l *ladder) carry(ctx context.Context, s scene, hosts []onlooker, loads ...iperf.Load) (found []*iperf.Result, err error) {
	err = l.watch(s, loads[0].Time, hosts, func(begun func()) (err error) {
		loads[0].Begun = begun
		found, err = l.tool.Run(ctx, loads...)
		return err
	})
	return found, err
}
