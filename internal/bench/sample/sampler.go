package sample

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/prometheus/procfs"
	"github.com/vishvananda/netlink"

	"weir/internal/fw/bpfload"
	"weir/internal/fw/dataplane"
	"weir/internal/fw/reason"
	"weir/internal/host/proc"
)

// Interval is the time between two readings. The cores' times have a resolution of 10 ms,
// so a share is correct to 4 %.
const Interval = 250 * time.Millisecond

// Sampler reads one network namespace of this machine. It belongs to one
// goroutine at a time.
type Sampler struct {
	links *netlink.Handle
	view  *dataplane.View // nil: no weir here
	// Without is the reason if weir's own counters are not read, or "".
	Without string
	begun   time.Time
	last    reading
}

// reading is a reading of all counters.
type reading struct {
	at      time.Time
	cores   map[int]proc.Times
	softnet map[int]procfs.SoftnetStat
	links   map[int]Link
	drops   [reason.Count]uint64
	states  uint32
}

// Open opens a namespace given by its file. "" is the process's own. If weir does not run
// there, or its pins cannot be read, Without says so. The caller closes the sampler.
func Open(netns string) (*Sampler, error) {
	links, err := openLinks(netns)
	if err != nil {
		return nil, err
	}
	s := &Sampler{links: links}
	if err := s.openWeir(netns); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Sampler) openWeir(netns string) error {
	if os.Geteuid() != 0 {
		s.Without = "only root may read weir's counters"
		return nil
	}
	dir, err := dataplane.Folder(netns)
	if err == nil {
		s.view, err = dataplane.Open(dir)
	}
	switch {
	case errors.Is(err, dataplane.ErrNotLoaded):
		s.Without = "weir does not run there"
	case errors.Is(err, bpfload.ErrMounts):
		s.Without = "its pins are not in these mounts: use --netns NAME instead of ip netns exec"
	case err != nil:
		return fmt.Errorf("read weir's counters: %w", err)
	}
	return nil
}

// Close closes everything that Open opened.
func (s *Sampler) Close() error {
	s.links.Close()
	if s.view == nil {
		return nil
	}
	return s.view.Close()
}

// Begin takes the first reading. The first point starts there.
func (s *Sampler) Begin() (err error) {
	s.last, err = s.read()
	s.begun = s.last.at
	return err
}

// Next returns what happened since the previous reading.
func (s *Sampler) Next() (Point, error) {
	now, err := s.read()
	if err != nil {
		return Point{}, err
	}
	p := now.since(&s.last)
	p.At = now.at.Sub(s.begun)
	s.last = now
	return p, nil
}

// Watch calls hear with a point each [Interval], and once more when ctx ends.
func (s *Sampler) Watch(ctx context.Context, hear func(Point)) error {
	if err := s.Begin(); err != nil {
		return err
	}
	return every(ctx, func() time.Time { return s.last.at }, func() error {
		p, err := s.Next()
		if err == nil {
			hear(p)
		}
		return err
	})
}

// every looks each [Interval], and once more when ctx ends, unless the last look was too
// short ago for the cores' times.
func every(ctx context.Context, last func() time.Time, look func() error) error {
	tick := time.NewTicker(Interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
		ended := ctx.Err() != nil
		if ended && time.Since(last()) < Interval/5 {
			return nil
		}
		if err := look(); err != nil || ended {
			return err
		}
	}
}

func (s *Sampler) read() (r reading, err error) {
	r.at = time.Now()
	if r.cores, err = proc.Cores("/proc"); err != nil {
		return r, err
	}
	if r.softnet, err = proc.Softnet("/proc"); err != nil {
		return r, err
	}
	if r.links, err = readLinks(s.links); err != nil {
		return r, err
	}
	return r, s.readWeir(&r)
}

func (s *Sampler) readWeir(r *reading) error {
	if s.view == nil {
		return nil
	}
	all, err := s.view.Interfaces()
	if err != nil {
		return fmt.Errorf("read weir's counters: %w", err)
	}
	for i := range all {
		for why, counted := range all[i].Reasons {
			r.drops[why] += counted.Packets
		}
	}
	info, err := s.view.Info()
	if err != nil {
		return fmt.Errorf("count weir's states: %w", err)
	}
	r.states = info.States
	return nil
}

// since returns what happened since an earlier reading.
func (r *reading) since(before *reading) Point {
	p := Point{Took: r.at.Sub(before.at), States: r.states}
	for _, id := range slices.Sorted(maps.Keys(r.cores)) {
		old, known := before.cores[id]
		if !known {
			continue // the core has just come online
		}
		c := coreOf(id, r.cores[id], old)
		now, then := r.softnet[id], before.softnet[id] // counters of 32 bits may wrap
		c.Packets, c.Dropped, c.Squeezed = uint64(now.Processed-then.Processed), uint64(now.Dropped-then.Dropped), uint64(now.TimeSqueezed-then.TimeSqueezed)
		p.Cores = append(p.Cores, c)
	}
	for index, l := range r.links {
		if d := l.since(before.links[index]); !d.quiet() && before.links[index].Name != "" {
			p.Links = append(p.Links, d)
		}
	}
	p.Links = busiestLinks(p.Links)
	for _, why := range reason.All() {
		if n := r.drops[why] - before.drops[why]; n > 0 && !why.IsPass() && r.drops[why] >= before.drops[why] {
			if p.Drops == nil {
				p.Drops = map[string]uint64{}
			}
			p.Drops[why.String()] = n
		}
	}
	return p
}

// busiestLinks keeps the busiest links that fit a point, sorted by name.
func busiestLinks(links []Link) []Link {
	slices.SortFunc(links, func(a, b Link) int {
		return cmp.Or(cmp.Compare(b.RxBytes+b.TxBytes, a.RxBytes+a.TxBytes), cmp.Compare(a.Name, b.Name))
	})
	links = links[:min(len(links), maxLinks)]
	slices.SortFunc(links, func(a, b Link) int { return cmp.Compare(a.Name, b.Name) })
	return links
}
