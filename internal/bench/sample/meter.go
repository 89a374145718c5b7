package sample

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"weir/internal/host/proc"
)

// Rate is one rate that is recorded with the load of the cores.
type Rate struct {
	Panel, Unit string // lines of the same panel share a scale
	Name        string
	Factor      float64 // converts a counter's growth per second to the unit
}

// Meter is a set of counters that only grow, one for each rate.
type Meter struct {
	About string // explains a chart to its reader
	Rates []Rate
	Read  func() ([]float64, error)
}

// Moment holds the rates in an interval and the load of the cores: a point with nothing
// but cores.
type Moment struct {
	Point
	Values []float64 // in the order and units of the rates
}

// Record is what happened during a measurement. The zero value is ready for
// [Record.During].
type Record struct {
	About   string // explains a moment to the reader of a chart
	Rates   []Rate
	Moments []Moment
	Cost    Cost

	begun time.Time
	trial trial
}

// trial holds readings that are not noted yet.
type trial struct {
	from, to time.Time
	cores    map[int]proc.Times
}

// look reads the cores.
func (r *Record) look() (now reading, err error) {
	err = r.Cost.of(func() (err error) {
		now.at = time.Now()
		now.cores, err = proc.Cores("/proc")
		return err
	})
	r.Cost.Readings++
	return now, err
}

// During reads the cores before and after f, and not while it runs, so it does not
// disturb the measurement. [Record.Note] combines all readings since [Record.Drop].
func (r *Record) During(f func() error) error {
	before, err := r.look()
	if err != nil {
		return err
	}
	if err := f(); err != nil {
		return err
	}
	after, err := r.look()
	if err != nil {
		return err
	}
	if r.begun.IsZero() {
		r.begun = before.at
	}
	if r.trial.cores == nil {
		r.trial = trial{from: before.at, cores: map[int]proc.Times{}}
	}
	r.trial.to = after.at
	for id, now := range after.cores {
		if then, known := before.cores[id]; known {
			r.trial.cores[id] = r.trial.cores[id].Plus(now).Minus(then)
		}
	}
	return nil
}

// Drop discards the readings since the last note.
func (r *Record) Drop() { r.trial = trial{} }

// Note makes a moment from the readings, with the values of the rates.
func (r *Record) Note(values ...float64) {
	t := r.trial
	r.Drop()
	if t.cores == nil {
		return
	}
	none := reading{at: t.from, cores: map[int]proc.Times{}}
	for id := range t.cores {
		none.cores[id] = proc.Times{}
	}
	m := Moment{(&reading{at: t.to, cores: t.cores}).since(&none), values}
	m.At = t.to.Sub(r.begun)
	r.Moments = append(r.Moments, m)
}

// Watch reads a meter and the cores each [Interval] while something is measured.
type Watch struct {
	meter   Meter
	record  Record
	running errgroup.Group
	stop    context.CancelFunc
}

// NewWatch returns a Watch that has not begun.
func NewWatch(m Meter) *Watch {
	return &Watch{meter: m, record: Record{About: m.About, Rates: m.Rates}, stop: func() {}}
}

// Begin watches until [Watch.End], or until the given time has passed (0: no limit). It
// may be called once.
func (w *Watch) Begin(most time.Duration) {
	ctx, stop := context.WithCancel(context.Background())
	if most > 0 {
		ctx, stop = context.WithTimeout(context.Background(), most)
	}
	w.stop = stop
	w.running.Go(func() error { return w.run(ctx) })
}

// End returns the record.
func (w *Watch) End() (*Record, error) {
	w.stop()
	return &w.record, w.running.Wait()
}

func (w *Watch) run(ctx context.Context) error {
	last, err := w.read()
	if err != nil {
		return err
	}
	begun := last.at
	return every(ctx, func() time.Time { return last.at }, func() error {
		now, err := w.read()
		if err == nil {
			w.note(&now, &last, begun)
			last = now
		}
		return err
	})
}

// metered is a reading of a meter.
type metered struct {
	reading
	counters []float64
}

func (w *Watch) read() (metered, error) {
	cores, err := w.record.look()
	var counters []float64
	failed := w.record.Cost.of(func() (err error) {
		counters, err = w.meter.Read()
		return err
	})
	return metered{cores, counters}, errors.Join(err, failed)
}

func (w *Watch) note(now, last *metered, begun time.Time) {
	m := Moment{Point: now.since(&last.reading)}
	m.At = now.at.Sub(begun)
	for i, r := range w.meter.Rates {
		m.Values = append(m.Values, (now.counters[i]-last.counters[i])/m.Took.Seconds()*r.Factor)
	}
	w.record.Moments = append(w.record.Moments, m)
}
