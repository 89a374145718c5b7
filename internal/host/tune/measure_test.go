package tune_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/host/tune"
	"weir/internal/host/tune/db"
)

// fake is a machine whose rate depends on a key's value.
type fake struct {
	host    *tune.Host
	blind   []string           // keys whose effect it cannot see
	rates   map[string]float64 // by key=value; default 100
	loss    map[string]float64
	doubles bool   // each measurement is twice the one before, so no two sums are equal
	fails   string // fails at this key=value
	samples int
	seen    map[string]int // measurements by key=value
}

func (f *fake) Blind(c *tune.Change) string {
	for _, key := range f.blind {
		if key == c.Key {
			return "it is too small"
		}
	}
	return ""
}

func (f *fake) About() string { return "packets/s of a fake" }

func (f *fake) Measure(_ context.Context, c *tune.Change, value string) (tune.Measured, error) {
	now, err := f.host.Read(c.Key)
	if err != nil || now != value {
		return tune.Measured{}, errors.Join(err, errors.New(c.Key+" is "+now+" and not "+value))
	}
	at := c.Key + "=" + value
	if at == f.fails {
		return tune.Measured{}, errors.New("the lab is on fire")
	}
	rate, known := f.rates[at]
	if !known {
		rate = 100
	}
	if f.seen == nil {
		f.seen = map[string]int{}
	}
	noise := 0.2 * float64(1-2*(f.seen[at]%2))
	f.seen[at]++
	f.samples++
	if f.doubles {
		rate *= float64(uint(1) << f.samples)
	}
	return tune.Measured{Rate: rate + noise, Loss: f.loss[at]}, nil
}

// TestMeasure checks that only what is proven to help is kept. What cannot be measured is
// kept only if it was named.
func TestMeasure(t *testing.T) {
	h, files := tree(t, gateway())
	before := files()
	m := &fake{
		host: h, blind: []string{"nic.eth0.hash-udp4"},
		rates: map[string]float64{"nic.eth0.lro=off": 110, "nic.eth1.lro=off": 90, "nic.eth1.eee=off": 100.05, "nic.eth0.rings=rx 512 tx 256": 120},
		loss:  map[string]float64{"nic.eth0.eee=on": 0.01, "nic.eth0.rings=rx 512 tx 256": 0.02},
	}
	keys := []string{"nic.DEV.lro", "nic.DEV.eee", "nic.eth0.rings", "nic.eth1.queues", "nic.eth0.hash-udp4"}
	p := plan(t, h, tune.Inputs{Role: db.Forwarder}, keys...)
	found, err := h.Measure(t.Context(), p, tune.MeasureOptions{Measurers: []tune.Measurer{m}, Rounds: 5, Progress: func(string) {}})
	if err != nil {
		t.Fatal(err)
	}
	effects := map[string]tune.Effect{}
	kept := map[string]bool{}
	for _, f := range found {
		effects[f.Key] = f.Effect
		if f.Kept {
			kept[f.Key] = true
		}
		if f.Effect != tune.Unmeasured && (len(f.Before) != 10 || len(f.After) != 5) {
			t.Errorf("%s: %d and %d runs", f.Key, len(f.Before), len(f.After))
		}
	}
	want := map[string]tune.Effect{
		"nic.eth0.lro": tune.Helps, "nic.eth1.lro": tune.Hurts,
		"nic.eth0.eee":       tune.Helps, // it loses less
		"nic.eth1.eee":       tune.NotProven,
		"nic.eth0.rings":     tune.Hurts, // it is faster, and loses more
		"nic.eth1.queues":    tune.Unmeasured,
		"nic.eth0.hash-udp4": tune.Unmeasured,
	}
	if diff := cmp.Diff(want, effects); diff != "" {
		t.Errorf("effects (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]bool{"nic.eth0.lro": true, "nic.eth0.eee": true}, kept); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
	s := status(t, h)
	if s.Drift != 0 || s.CutOff || len(s.Keys) != 2 {
		t.Errorf("status: %+v", s)
	}
	after := files()
	for name, text := range map[string]string{
		"ethtool/eth0/lro": "off\n", "ethtool/eth1/lro": "on\n", "ethtool/eth0/rings": "rx 256 tx 256\n", "ethtool/eth1/queues": "combined 1\n", "ethtool/eth0/hash-udp4": "sd\n",
	} {
		if after[name] != text {
			t.Errorf("%s is %q", name, after[name])
		}
	}
	var b strings.Builder
	if err := tune.WriteFindings(&b, found); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"nic.eth0.lro: on -> off: helps, kept\n  packets/s of a fake: +10.0 % ± ",
		"nic.eth0.eee: on -> off: helps, kept\n", "; loss -1.000 ± 0.000 percentage points\n  control: nic.eth0.eee as it was measured twice differs by",
		"nic.eth1.lro: on -> off: hurts, put back\n",
		"nic.eth1.queues: combined 1 -> combined 2: not measurable here, not kept; weir tune apply nic.eth1.queues sets it (the queues' interrupts, RPS and table are planned",
		"nic.eth0.hash-udp4: sd -> sdfn: not measurable here, not kept; weir tune apply nic.eth0.hash-udp4 sets it (it is too small)\n",
	} {
		if !strings.Contains(b.String(), line) {
			t.Errorf("the text lacks %q:\n%s", line, b.String())
		}
	}
	if _, err := h.Revert(false); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, files()); diff != "" {
		t.Errorf("reverted (-before +after):\n%s", diff)
	}
}

// TestMeasureNamed checks that a named change is made even if it cannot be measured.
func TestMeasureNamed(t *testing.T) {
	h, _ := tree(t, gateway())
	m := &fake{host: h, blind: []string{"nic.eth0.pause"}}
	p := plan(t, h, tune.Inputs{}, "nic.eth0.pause")
	found, err := h.Measure(t.Context(), p, tune.MeasureOptions{Measurers: []tune.Measurer{m}, Rounds: 3, Named: true})
	if err != nil || len(found) != 1 || !found[0].Kept || found[0].Effect != tune.Unmeasured {
		t.Errorf("%+v, %v", found, err)
	}
	if s := status(t, h); len(s.Keys) != 1 || s.Drift != 0 {
		t.Errorf("status: %+v", s)
	}
}

// TestMeasureControlFails checks that a machine that gives two different results for one
// value proves nothing.
func TestMeasureControlFails(t *testing.T) {
	h, files := tree(t, gateway())
	before := files()
	m := &fake{host: h, rates: map[string]float64{"nic.eth0.lro=off": 103}, doubles: true}
	found, err := h.Measure(t.Context(), plan(t, h, tune.Inputs{}, "nic.eth0.lro"), tune.MeasureOptions{Measurers: []tune.Measurer{m}, Rounds: 3})
	if err != nil || len(found) != 1 || found[0].Kept || found[0].Effect != tune.NoVerdict {
		t.Errorf("%+v, %v", found, err)
	}
	if diff := cmp.Diff(before, files()); diff != "" {
		t.Errorf("afterwards (-before +after):\n%s", diff)
	}
}

// TestMeasureFails checks that a failing measurer, or the end of the session, puts
// everything back, including what the same run had kept.
func TestMeasureFails(t *testing.T) {
	h, files := tree(t, gateway())
	before := files()
	m := &fake{host: h, rates: map[string]float64{"nic.eth0.lro=off": 110}, fails: "nic.eth1.lro=off"}
	o := tune.MeasureOptions{Measurers: []tune.Measurer{m}, Rounds: 3}
	if _, err := h.Measure(t.Context(), plan(t, h, tune.Inputs{}, "nic.DEV.lro"), o); err == nil || !strings.Contains(err.Error(), "everything is as it was: measure nic.eth1.lro: the lab is on fire") {
		t.Errorf("measure: %v", err)
	}
	if diff := cmp.Diff(before, files()); diff != "" {
		t.Errorf("afterwards (-before +after):\n%s", diff)
	}
	// A link that does not come back.
	down := filepath.Join(h.Root, "sys/class/net/eth0/operstate")
	p := plan(t, h, tune.Inputs{}, "nic.eth0.lro")
	if err := os.WriteFile(down, []byte("down\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := h.Measure(ctx, p, o); !errors.Is(err, context.Canceled) {
		t.Errorf("cut off: %v", err)
	}
	write(t, h, "sys/class/net/eth0/operstate", "up\n")
	if diff := cmp.Diff(before, files()); diff != "" {
		t.Errorf("afterwards (-before +after):\n%s", diff)
	}
	o.Rounds = 2
	if _, err := h.Measure(t.Context(), p, o); err == nil {
		t.Error("two rounds prove something")
	}
}

// TestMeasureCannotPutBack checks that the error does not claim that all was put back if
// it was not.
func TestMeasureCannotPutBack(t *testing.T) {
	h, _ := tree(t, gateway())
	p := plan(t, h, tune.Inputs{}, "nic.eth0.lro")
	m := breaker{fake: fake{host: h}, file: filepath.Join(h.Root, "ethtool/eth0/lro")}
	_, err := h.Measure(t.Context(), p, tune.MeasureOptions{Measurers: []tune.Measurer{&m}, Rounds: 3})
	if err == nil || strings.Contains(err.Error(), "everything is as it was") || !strings.Contains(err.Error(), "weir tune revert tries again") {
		t.Errorf("measure: %v", err)
	}
	if s := status(t, h); !s.CutOff || s.Keys[0].Fault == "" {
		t.Errorf("status: %+v", s)
	}
	if got := why(plan(t, h, tune.Inputs{}, "nic.eth0.lro"), "nic.eth0.lro"); !strings.Contains(got, "it cannot be read: ") {
		t.Errorf("plan: %q", got)
	}
}

// breaker makes a setting unreadable, and fails.
type breaker struct {
	fake
	file string
}

func (b *breaker) Measure(context.Context, *tune.Change, string) (tune.Measured, error) {
	return tune.Measured{}, errors.Join(errors.New("broken"), os.Remove(b.file), os.Mkdir(b.file, 0o700))
}

// TestMeasureQueuesNamed checks that queues are not changed for a measurement, even if
// named, because the settings of each queue must be planned afterwards.
func TestMeasureQueuesNamed(t *testing.T) {
	h, files := tree(t, gateway())
	before := files()
	found, err := h.Measure(t.Context(), plan(t, h, tune.Inputs{}, "nic.eth0.queues"), tune.MeasureOptions{Measurers: []tune.Measurer{&fake{host: h}}, Rounds: 3, Named: true})
	if err != nil || len(found) != 1 || found[0].Kept || found[0].Effect != tune.Unmeasured {
		t.Errorf("%+v, %v", found, err)
	}
	if diff := cmp.Diff(before, files()); diff != "" {
		t.Errorf("afterwards (-before +after):\n%s", diff)
	}
}

// clobbered is a machine whose card loses its interrupts' cores with each change of
// rings.
type clobbered struct {
	fake
	t    *testing.T
	want string // value of nic.eth0.irqs in each round
}

func (m *clobbered) Measure(ctx context.Context, c *tune.Change, value string) (tune.Measured, error) {
	if c.Key == "nic.eth0.rings" {
		now, err := m.host.Read("nic.eth0.irqs")
		if err != nil || now != m.want {
			return tune.Measured{}, errors.Join(err, errors.New("the interrupts go to "+now))
		}
		write(m.t, m.host, "proc/irq/41/smp_affinity_list", "5\n")
	}
	return m.fake.Measure(ctx, c, value)
}

// TestMeasureBesides checks that each round of rings has what the card loses by them: the
// found values, or those that the same plan has kept by then.
func TestMeasureBesides(t *testing.T) {
	for _, keys := range [][]string{{"nic.eth0.rings"}, {"nic.eth0.irqs", "nic.eth0.rings"}} {
		for rate, helps := range map[float64]bool{90: false, 120: true} {
			h, _ := tree(t, gateway())
			p := plan(t, h, tune.Inputs{Role: db.Forwarder}, keys...)
			slices.SortFunc(p.Changes, func(a, b tune.Change) int { return strings.Compare(a.Key, b.Key) })
			m := &clobbered{t: t, want: "0-7 0-7 0-7 0-7", fake: fake{host: h, rates: map[string]float64{"nic.eth0.rings=rx 512 tx 256": rate}}}
			for _, c := range p.Changes {
				if c.Key == "nic.eth0.irqs" {
					m.want, m.rates["nic.eth0.irqs="+c.To] = c.To, 150
				}
			}
			found, err := h.Measure(t.Context(), p, tune.MeasureOptions{Measurers: []tune.Measurer{m}, Rounds: 3})
			if err != nil || len(found) != len(keys) || found[len(found)-1].Key != "nic.eth0.rings" || found[len(found)-1].Kept != helps {
				t.Fatalf("%q: %v: %+v", keys, err, found)
			}
			if now, err := h.Read("nic.eth0.irqs"); err != nil || now != m.want {
				t.Errorf("%q, kept %v: the interrupts go to %s: %v", keys, helps, now, err)
			}
		}
	}
}

// late is a machine whose link goes down some time after each change of eee.
type late struct {
	fake
	t    *testing.T
	last string
	sets int
}

func (m *late) Measure(ctx context.Context, c *tune.Change, value string) (tune.Measured, error) {
	if value != m.last {
		m.last, m.sets = value, m.sets+1
	}
	// It begins with "on", and the link with 2 changes.
	text, err := os.ReadFile(filepath.Join(m.host.Root, "sys/class/net/eth0/carrier_changes"))
	if want := fmt.Sprintln(2 * m.sets); err != nil || string(text) != want {
		m.t.Errorf("measured before the link has gone and come: %q changes, want %q; %v", text, want, err)
	}
	return m.fake.Measure(ctx, c, value)
}

// TestMeasureLate checks that a link that is still up gets time to go down before it
// counts as back.
func TestMeasureLate(t *testing.T) {
	h, _ := tree(t, with(map[string]string{"sys/class/net/eth0/carrier_changes": "2\n"}))
	ctx, stop := context.WithCancel(t.Context())
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		changes, last := 2, "on\n"
		change := func(state string) {
			time.Sleep(120 * time.Millisecond)
			changes++
			write(t, h, "sys/class/net/eth0/operstate", state)
			write(t, h, "sys/class/net/eth0/carrier_changes", fmt.Sprintln(changes))
		}
		for ctx.Err() == nil {
			now, err := os.ReadFile(filepath.Join(h.Root, "ethtool/eth0/eee"))
			if err == nil && len(now) > 0 && string(now) != last {
				last = string(now)
				change("down\n")
				change("up\n")
			}
			time.Sleep(time.Millisecond)
		}
	}()
	p := plan(t, h, tune.Inputs{Role: db.Forwarder}, "nic.eth0.eee")
	m := &late{t: t, last: "on", sets: 1, fake: fake{host: h, rates: map[string]float64{"nic.eth0.eee=off": 120}}}
	found, err := h.Measure(t.Context(), p, tune.MeasureOptions{Measurers: []tune.Measurer{m}, Rounds: 3})
	stop()
	<-gone
	if m.sets < 2 || err != nil || len(found) != 1 || !found[0].Kept {
		t.Errorf("%d values: %+v, %v", m.sets, found, err)
	}
}
