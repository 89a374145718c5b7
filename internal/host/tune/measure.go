package tune

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"weir/internal/killpoint"
	"weir/internal/stats"
)

// A Measurer measures the effect of a change.
type Measurer interface {
	// Blind returns why the measurer cannot see the effect of a change, "" if it can.
	Blind(c *Change) string
	// Measure measures once. The host has the value set. A measurer that measures
	// elsewhere must set the value there.
	Measure(ctx context.Context, c *Change, value string) (Measured, error)
	// About says in words what is measured.
	About() string
}

// Measured is one measurement.
type Measured struct {
	Rate float64 // more is better
	Loss float64 // share of lost packets
}

// An Effect is the measured effect of a change.
type Effect string

// Effects of a change.
const (
	Helps      Effect = "helps"          // proven at 95 %
	Hurts      Effect = "hurts"          // proven at 95 %
	NotProven  Effect = "no effect seen" // neither is proven
	NoVerdict  Effect = "no verdict"     // the control failed
	Unmeasured Effect = "not measurable here"
)

// A Finding is the result of one measured change of a plan.
type Finding struct {
	Key     string         `json:"key"`
	From    string         `json:"from"`
	To      string         `json:"to"`
	Effect  Effect         `json:"effect"`
	Kept    bool           `json:"kept"`
	Why     string         `json:"why,omitempty"`     // why it was not measured
	About   string         `json:"about,omitempty"`   // what was measured
	Before  stats.Sample   `json:"before,omitempty"`  // rates before
	After   stats.Sample   `json:"after,omitempty"`   // rates after
	Control *stats.Control `json:"control,omitempty"` // compares the value before with itself
	// Rate and Loss compare the new value with the one before.
	Rate *stats.Comparison `json:"rate,omitempty"`
	Loss *stats.Comparison `json:"loss,omitempty"`
}

// MeasureOptions control how changes are measured.
type MeasureOptions struct {
	Measurers []Measurer // the first that can see a change measures it
	Rounds    int        // number of rounds; each measures the value before, the same again, and the new one
	Named     bool       // the changes were named: keep those that cannot be measured
	Progress  func(text string)
}

// LeastRounds is the number of rounds below which nothing can be proven.
const LeastRounds = 3

// Measure makes the changes of a plan one by one, and keeps those that are proven to
// help. Each round sets the value before, the same once more as a control, and the new
// one, in random order. The whole run is one transaction: an error, or the end of ctx,
// puts everything back. If the process was killed, Revert does so.
func (h *Host) Measure(ctx context.Context, p *Plan, o MeasureOptions) ([]Finding, error) {
	if o.Rounds < LeastRounds {
		return nil, fmt.Errorf("measure in %d rounds: want at least %d", o.Rounds, LeastRounds)
	}
	unlock, err := h.lock(false)
	if err != nil {
		return nil, err
	}
	defer unlock()
	j, err := h.begin(p)
	if err != nil || len(p.Changes) == 0 {
		return []Finding{}, err
	}
	for _, c := range p.Changes {
		j.Changing = append(j.Changing, c.Key)
		j.set(c, h.sideEffects(c.Key))
	}
	if err := h.writeJournal(j); err != nil {
		return nil, err
	}
	findings := []Finding{}
	for i := range p.Changes {
		f, err := h.tryOne(ctx, &p.Changes[i], &o)
		if err != nil {
			return nil, h.undoAfter(j, fmt.Errorf("measure %s: %w", p.Changes[i].Key, err))
		}
		findings = append(findings, *f)
	}
	return findings, h.finish(j.without(findings))
}

// undoAfter undoes a transaction because of an error, and adds to the error how far
// undoing came.
func (h *Host) undoAfter(j *contents, err error) error {
	if back := h.rollBack(j); back != nil {
		return errors.Join(err, fmt.Errorf("some settings could not be restored; weir tune revert tries again: %w", back))
	}
	return fmt.Errorf("everything is as it was: %w", err)
}

// without returns the journal of the changes that were kept. The others are as they were.
func (j *contents) without(findings []Finding) *contents {
	kept := *j
	kept.Entries = slices.Clone(j.Entries)
	for _, f := range findings {
		if f.Kept {
			continue
		}
		kept.Changing = slices.DeleteFunc(slices.Clone(kept.Changing), func(key string) bool { return key == f.Key })
		at := slices.IndexFunc(kept.Entries, func(e entry) bool { return e.Key == f.Key })
		if e := find(j.Previous, f.Key); e != nil {
			kept.Entries[at] = *e
		} else {
			kept.Entries = slices.Delete(kept.Entries, at, at+1)
		}
	}
	return &kept
}

// queuesApart is the reason why changes of queues are left out.
const queuesApart = "the queues' interrupts, RPS and table are planned later, so it would be measured without them"

// tryOne measures a change. It leaves the host with the change, or as it was.
func (h *Host) tryOne(ctx context.Context, c *Change, o *MeasureOptions) (*Finding, error) {
	f := &Finding{Key: c.Key, From: oneLine(c.From), To: c.To}
	if requeues([]Change{*c}) {
		f.Effect, f.Why = Unmeasured, queuesApart
		return f, nil
	}
	var blind []string
	for _, m := range o.Measurers {
		why := m.Blind(c)
		if why == "" {
			return f, h.measureOne(ctx, c, m, o, f)
		}
		blind = append(blind, why)
	}
	f.Effect, f.Kept, f.Why = Unmeasured, o.Named, strings.Join(blind, "; ")
	if o.Named {
		return f, h.write(c.Key, c.To)
	}
	return f, nil
}

// arm is one side of a comparison: a value, and what was measured with it.
type arm struct {
	value       string
	rates, loss stats.Sample
}

func (h *Host) measureOne(ctx context.Context, c *Change, m Measurer, o *MeasureOptions, f *Finding) error {
	besides := h.sideEffects(c.Key) // each change of rings loses them
	before, again, after := &arm{value: c.From}, &arm{value: c.From}, &arm{value: c.To}
	for round, a := range stats.Interleave(o.Rounds, []*arm{before, again, after}) {
		if o.Progress != nil {
			o.Progress(fmt.Sprintf("%s = %s, round %d of %d", c.Key, oneLine(a.value), round+1, o.Rounds))
		}
		if err := h.hold(ctx, c.Key, a.value, besides); err != nil {
			return err
		}
		measured, err := m.Measure(ctx, c, a.value)
		if err != nil {
			return err
		}
		a.rates, a.loss = append(a.rates, measured.Rate), append(a.loss, measured.Loss)
	}
	f.About = m.About()
	f.conclude(before, again, after)
	f.Kept = f.Effect == Helps
	if f.Kept {
		return h.hold(ctx, c.Key, c.To, besides)
	}
	return h.hold(ctx, c.Key, c.From, besides)
}

// leastLoss is the share of packets below which a change in loss does not matter.
const leastLoss = 0.0001

// conclude sets the effect. A change helps if it provably forwards more for the same work or
// loses less, without provably worsening the other.
func (f *Finding) conclude(before, again, after *arm) {
	control := stats.NewControl()
	control.Add(f.Key+" as it was", before.rates, again.rates)
	rate := stats.Compare(slices.Concat(before.rates, again.rates), after.rates)
	loss := stats.Compare(slices.Concat(before.loss, again.loss), after.loss)
	f.Before, f.After, f.Control, f.Rate, f.Loss = slices.Concat(before.rates, again.rates), after.rates, &control, &rate, &loss
	faster, slower := rate.Proven && rate.Difference > 0, rate.Proven && rate.Difference < 0
	safer, lossier := loss.Proven && loss.Difference < -leastLoss, loss.Proven && loss.Difference > leastLoss
	// A difference no larger than that between two measurements of the same value
	// proves nothing, whatever the test says.
	within := !loss.Proven && control.Difference >= math.Abs(rate.Relative)
	switch {
	case !control.OK:
		f.Effect = NoVerdict
	case within:
		f.Effect = NotProven
	case slower || lossier:
		f.Effect = Hurts
	case faster || safer:
		f.Effect = Helps
	default:
		f.Effect = NotProven
	}
}

// hold sets a key unless it has the value already, waits until the card has its link
// back, and puts back what the change took besides.
func (h *Host) hold(ctx context.Context, key, value string, besides map[string]string) error {
	now, err := h.Read(key)
	if err != nil {
		return err
	}
	if now != value {
		card, setting, ok := cardKey(key)
		changes := h.carrierChanges(card)
		if err := h.write(key, value); err != nil {
			return err
		}
		killpoint.Done("set %s", key)
		if ok {
			err = h.awaitLink(ctx, card, changes, flaps(setting))
		}
		if err != nil {
			return err
		}
	}
	return h.restoreAll(besides)
}

// carrierChanges returns how often a card's link went up or down, -1 if unknown.
func (h *Host) carrierChanges(card string) int {
	n, err := strconv.Atoi(h.text("sys/class/net", card, "carrier_changes"))
	if err != nil {
		return -1
	}
	return n
}

// linkGrace is how long a link may take to go down after a change. A link that is up
// before that may still go down. Not all drivers take it down.
const linkGrace = 2 * time.Second

// awaitLink waits until a card's link is back. before is its carrierChanges before the
// change. It first gives the link time to go down.
func (h *Host) awaitLink(ctx context.Context, card string, before int, goes bool) error {
	const patience, look = 15 * time.Second, 50 * time.Millisecond
	began := time.Now()
	for {
		changes := h.carrierChanges(card)
		waits := goes && before >= 0 && (changes == before && time.Since(began) < linkGrace || (changes-before)%2 != 0)
		if !waits && h.text("sys/class/net", card, "operstate") != "down" {
			return nil
		}
		if time.Since(began) > patience {
			return fmt.Errorf("the link of %s did not come back within %v", card, patience)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(look):
		}
	}
}

// String returns a finding in one line.
func (f *Finding) String() string {
	what := "put back"
	if f.Kept {
		what = "kept"
	}
	text := fmt.Sprintf("%s: %s -> %s: %s, %s", f.Key, f.From, f.To, f.Effect, what)
	if f.Effect == Unmeasured {
		if !f.Kept {
			text = fmt.Sprintf("%s: %s -> %s: %s, not kept; weir tune apply %s sets it", f.Key, f.From, f.To, f.Effect, f.Key)
		}
		return text + " (" + f.Why + ")"
	}
	text += fmt.Sprintf("\n  %s: %+.1f %% ± %.1f at 95 %% over %d and %d runs", f.About, 100*f.Rate.Relative, 100*f.Rate.RelativeInterval, len(f.Before), len(f.After))
	if f.Loss.Difference != 0 {
		text += fmt.Sprintf("; loss %+.3f ± %.3f percentage points", 100*f.Loss.Difference, 100*f.Loss.Interval)
	}
	return text + "\n  " + f.Control.String()
}

// WriteFindings prints what was measured, and the result of each.
func WriteFindings(w io.Writer, findings []Finding) error {
	var b strings.Builder
	if len(findings) == 0 {
		b.WriteString("nothing to change\n")
	}
	for i := range findings {
		b.WriteString(findings[i].String() + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
