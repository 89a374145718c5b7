package rfc

import (
	"context"
	"errors"

	"weir/internal/bench/sample"
	"weir/internal/bench/tester"
)

// offeredAnd returns the rates of trials: what was offered and what became of it.
func offeredAnd(panel, unit, became string) []sample.Rate {
	return []sample.Rate{{Panel: panel, Unit: unit, Name: "offered"}, {Panel: panel, Unit: unit, Name: became}}
}

// aboutTrials explains one level in the chart.
const aboutTrials = "The last run of each. Each level is a trial; the load is that of the time in which the generator sent, known to 10 ms."

// trial notes the rates that f returns, with the load of the cores while the generator
// ran.
func (b *bench) trial(rates []sample.Rate, f func() (offered, became float64, err error)) error {
	b.record.Drop()
	offered, became, err := f()
	if err != nil {
		return err
	}
	b.record.About, b.record.Rates = aboutTrials, rates
	b.record.Note(offered, became)
	return nil
}

// send is a trial with frames. If the load has no rate, the given rate is used.
func (b *bench) send(ctx context.Context, r *tester.Tester, l tester.Load, rate float64) (o tester.Outcome, err error) {
	err = b.trial(offeredAnd("frames", "Mpps", "arrived"), func() (float64, float64, error) {
		if o, err = r.Send(ctx, l); err != nil {
			return 0, 0, err
		}
		if o.Offered > 0 {
			rate = o.Offered
		}
		legal := rate * float64(o.Sent) / float64(l.Frames) / mega
		return legal, legal * (1 - o.Loss()), nil
	})
	return o, err
}

// thousands scales connection rates to thousands per second.
const thousands = 1e-3

// connections is a trial with n connections at a rate. handle returns to how many of them
// happened what the name became says.
func (b *bench) connections(panel, became string, rate float64, n int, handle func() (int, error)) (done int, err error) {
	err = b.trial(offeredAnd(panel, "thousand per s", became), func() (float64, float64, error) {
		done, err = handle()
		return rate * thousands, rate * thousands * float64(done) / float64(n), err
	})
	return done, err
}

// watch records what arrives at a host, the connections that it opens and the load of the
// cores while f runs. It replaces the previous record.
func (b *bench) watch(host string, f func() error) (err error) {
	var h *sample.Host
	err = b.testbed.Lab.Do(host, func() (err error) {
		h, err = sample.OpenHost()
		return err
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	w := sample.NewWatch(sample.Meter{
		About: "The last run of each. What IP of the receiving host got, with the headers of joined frames counted once, and the connections that it opened: means of a quarter of a second.",
		Rates: []sample.Rate{{Panel: "throughput", Unit: "Gbit/s", Name: "arriving", Factor: 8 / 1e9},
			{Panel: "connections opened", Unit: "per s", Name: "opened", Factor: 1}},
		Read: func() ([]float64, error) {
			t, err := h.Read()
			return []float64{t.Octets, t.Opened}, err
		},
	})
	w.Begin(0)
	err = f()
	record, failed := w.End()
	record.Cost.Add(b.record.Cost)
	b.record = record
	return errors.Join(err, failed)
}
