package autorate

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math"
	"net/netip"
	"strings"
	"time"
)

// probePause is the time between two probes. They go to the hosts in turn.
const probePause = 50 * time.Millisecond

// Traffic is what the queues of the line have done, by direction.
type Traffic struct {
	Rates   [2]float64 // bit/s that they have now; 0: there are none
	Passed  [2]uint64  // bytes
	Offered [2]uint64  // with what they have dropped
}

// A Box has the queues.
type Box interface {
	Traffic() (Traffic, error)
	// SetRate sets the rate of a direction in bit/s; 0: that of the rules.
	SetRate(ctx context.Context, direction int, rate float64) error
	// Waits is told how long packets wait behind the queues of a direction, though they have no
	// more than the base rate.
	Waits(direction int, rate float64, d time.Duration)
}

// A Follower follows a line.
type Follower struct {
	Config
	Hosts  []netip.Addr
	Device string // that the probes leave by; "": as the routes say
	DryRun bool   // rates are only logged
	Box    Box
	Log    io.Writer // gets lines of comma-separated values; may be nil
	Say    *slog.Logger
}

// A run is a Follower at work.
type run struct {
	*Follower
	probes  *prober
	state   State
	before  Traffic
	at      time.Duration // of before
	known   bool          // before is
	next    int           // host to ask
	setting chan error    // the result of the rates that are being set
	busy    bool          // they are
	log     record
	failed  string // what has been said last
}

// Run follows the line until ctx ends. Then the queues have the rates of the rules again.
func (f *Follower) Run(ctx context.Context) error {
	probes, err := open(f.Hosts, f.Device)
	if err != nil {
		return err
	}
	f.Config.Hosts = len(f.Hosts)
	r := &run{Follower: f, probes: probes, state: f.Begin(0, 0), setting: make(chan error, 1), log: record{to: f.Log}}
	probes.run(ctx)
	if !f.DryRun {
		defer r.giveBack()
	}
	ask, sample := time.NewTicker(probePause), time.NewTicker(Interval)
	defer ask.Stop()
	defer sample.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ask.C:
			r.ask()
		case err := <-r.setting:
			r.busy = false
			r.tell("set the rates", err)
		case <-sample.C:
			if err := r.sample(ctx); err != nil {
				return err
			}
		}
	}
}

// ask sends a probe to the next host that is to be asked.
func (r *run) ask() {
	for range r.Hosts {
		host := r.next
		r.next = (r.next + 1) % len(r.Hosts)
		if r.state.Asks(host) {
			r.probes.ask(host)
			return
		}
	}
}

// sample decides by what has happened since the last sample.
func (r *run) sample(ctx context.Context) error {
	now, err := r.Box.Traffic()
	at := r.probes.now()
	r.tell("read the queues", err)
	if err != nil {
		r.known = false
		return nil
	}
	in := Sample{At: at}
	in.Probes, in.Waiting = r.probes.take()
	passed := at - r.at
	for d := range now.Passed {
		if r.known && now.Passed[d] >= r.before.Passed[d] && now.Offered[d] >= r.before.Offered[d] && passed > 0 { // else other queues were loaded
			in.Sent[d] = float64(now.Passed[d]-r.before.Passed[d]) * 8 / passed.Seconds()
			in.Offered[d] = float64(now.Offered[d]-r.before.Offered[d]) * 8 / passed.Seconds()
		}
	}
	known := r.known
	r.before, r.at, r.known = now, at, true
	if !known {
		return nil
	}
	before := r.state
	var decisions [2]Decision
	r.state, decisions = r.Step(r.state, &in)
	r.note(&before, decisions)
	return r.use(ctx, &in, &before, decisions, now.Rates)
}

// note tells of packets that wait behind the queues at no more than the base rate.
func (r *run) note(before *State, decisions [2]Decision) {
	for d := range decisions {
		if rate := before.Lines[d].Rate; decisions[d].Reason == Delay && rate <= r.Bounds[d].Base {
			r.Box.Waits(d, rate, decisions[d].Excess)
		}
	}
}

// use sets the rates that differ from those in force, and logs.
func (r *run) use(ctx context.Context, in *Sample, before *State, decisions [2]Decision, rates [2]float64) error {
	l := line{now: time.Now(), at: in.At, decisions: decisions}
	var set [2]float64
	for d := range decisions {
		if r.Bounds[d].Max == 0 || rates[d] == 0 {
			continue
		}
		l.rates[d], l.loads[d] = decisions[d].Rate, in.Sent[d]
		l.changed = l.changed || decisions[d].Rate != before.Lines[d].Rate
		if math.Abs(decisions[d].Rate-rates[d]) > rates[d]/2000 {
			set[d] = decisions[d].Rate
		}
	}
	for i := range in.Probes {
		if in.Probes[i].Lost {
			l.lost++
		} else {
			l.answered++
		}
	}
	if !r.DryRun && !r.busy && set != [2]float64{} {
		r.busy, l.set = true, true
		go func() { r.setting <- r.set(ctx, set) }()
	}
	return r.log.write(&l)
}

// set sets the rates that are not 0.
func (r *run) set(ctx context.Context, rates [2]float64) error {
	for d, rate := range rates {
		if rate == 0 {
			continue
		}
		if err := r.Box.SetRate(ctx, d, rate); err != nil {
			return err
		}
	}
	return nil
}

// giveBack gives the queues the rates of the rules.
func (r *run) giveBack() {
	if r.busy {
		<-r.setting
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	for d := range r.Bounds {
		if r.Bounds[d].Max > 0 {
			r.tell("give the queues the rate of the rules", r.Box.SetRate(ctx, d, 0))
		}
	}
}

// tell says once what does not work, and when it works again.
func (r *run) tell(what string, err error) {
	text := ""
	if err != nil && !errors.Is(err, context.Canceled) {
		text = what + ": " + err.Error()
	}
	switch {
	case text != "" && text != r.failed:
		r.failed = text
		r.Say.Error("something does not work", "error", text)
	case text == "" && strings.HasPrefix(r.failed, what):
		r.failed = ""
		r.Say.Info("it works again", "what", what)
	}
}
