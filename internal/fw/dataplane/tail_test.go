package dataplane

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/fw/bpfload"
)

// Programs that few users need are loaded when they are needed: those of the XDP hook by
// the first interface that has it, the capture programs by the first reader. A new
// generation loads them at once while there is a reader.
func TestProgramsWhenNeeded(t *testing.T) {
	n := newNet(t)
	cfg := n.blank()
	cfg.XDP = false
	d := build(t, cfg)
	commit(t, d, n.attachments(false)[:1])
	expect := func(d *Dataplane, want map[string]bool) {
		t.Helper()
		for name, loaded := range want {
			if is := d.objects.Programs[name] != nil; is != loaded {
				t.Errorf("%s is loaded: %v, want %v", name, is, loaded)
			}
		}
	}
	expect(d, map[string]bool{"weir_tc_in": true, "weir_tc_out_slow": true, "weir_xdp": false, "weir_xdp_miss": false, "weir_tc_in_capture": false, "weir_import": false})
	check(t, d.CapturePreparation()())
	expect(d, map[string]bool{"weir_tc_in_capture": false}) // nobody who reads the programs meanwhile sees one come
	check(t, d.SetCapture(64, []CaptureFilter{{Readers: 1, All: true}}))
	expect(d, map[string]bool{"weir_tc_in_capture": true, "weir_tc_out_capture": true, "weir_xdp": false, "weir_xdp_capture": false})
	check(t, d.Attach(n.attachments(true)[1]))
	expect(d, map[string]bool{"weir_xdp": true, "weir_xdp_slow": true, "weir_xdp_capture": true})
	for _, e := range entries {
		for i, slot := range tailNames {
			id := programIn(t, d.objects.Maps[e.tails], uint32(i))
			if want := slot == tailCapture || !slices.Contains(rareTails, slot); (id != 0) != want { // rules without af-to and the like
				t.Errorf("%s: slot %s has a program: %v, want %v", e.tails, slot, id != 0, want)
			}
		}
	}
	next := build(t, cfg)
	expect(next, map[string]bool{"weir_tc_in_capture": true, "weir_tc_out_capture": true, "weir_xdp": false})
	check(t, d.SetCapture(0, nil))
}

// programIn returns the id of the program in a tail-call slot, or 0 if there is none.
func programIn(t *testing.T, slots *bpfload.Map, i uint32) uint32 {
	t.Helper()
	var id uint32
	if err := slots.Lookup(i, &id); err != nil {
		return 0
	}
	return id
}

// If the kernel refuses the programs of the XDP hook, the error belongs to the interface
// that wants it. With TCX everything goes on.
func TestXDPIsRefused(t *testing.T) {
	n := newNet(t)
	cfg := n.config()
	cfg.specs = func() ([]*bpfload.Spec, error) {
		specs, err := copiedSpecs()
		for _, s := range specs {
			if p := s.Programs["weir_xdp_slow"]; p != nil {
				p.Instructions = p.Instructions[:1] // it runs past its end
			}
		}
		return specs, err
	}
	d := build(t, cfg)
	xdp := n.attachments(true)
	refused := func(err error) {
		t.Helper()
		var failed *AttachError
		if !errors.As(err, &failed) || failed.Attachment != xdp[0] || !errors.Is(err, ErrNative) {
			t.Errorf("err = %v; want that lan0 cannot have XDP", err)
		}
	}
	_, err := d.Commit(xdp)
	refused(err)
	commit(t, d, n.attachments(false))
	refused(d.Attach(xdp[0]))
	check(t, d.Attach(n.attachments(false)[0]))
}

// If the kernel refuses a program of the next generation, that generation is not built.
// The old one stays complete: its links and its pins. Another one can follow.
func TestLoadIsRefused(t *testing.T) {
	n := newNet(t)
	commit(t, build(t, n.blank()), n.attachments(true))
	links, pins := linkIDs(t, n.dir), list(t, n.dir)
	blank := n.blank()
	for _, name := range []string{"weir_tc_in", "weir_tc_in_miss", "weir_tc_out"} {
		cfg := blank
		cfg.specs = func() ([]*bpfload.Spec, error) {
			specs, err := blank.specs()
			for _, s := range specs {
				if p := s.Programs[name]; p != nil {
					p.Instructions = p.Instructions[:1] // it runs past its end
				}
			}
			return specs, err
		}
		_, err := Build(cfg)
		var refused *bpfload.Refusal
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), name) {
			t.Errorf("err = %v; want that %s is refused", err, name)
		}
		if diff := cmp.Diff(links, linkIDs(t, n.dir)); diff != "" {
			t.Errorf("links after %s (-before +after):\n%s", name, diff)
		}
		if diff := cmp.Diff(pins, list(t, n.dir)); diff != "" {
			t.Errorf("pins after %s (-before +after):\n%s", name, diff)
		}
	}
	if r := commit(t, build(t, n.blank()), n.attachments(true)); r.Generation != 2 {
		t.Errorf("generation %d, want 2", r.Generation)
	}
}
