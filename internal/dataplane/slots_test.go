package dataplane

import (
	"errors"
	"testing"

	"weir/internal/bpfload"
)

// Programs that few need are loaded when they are needed: those of the XDP hook
// by the first interface that has it, those that capture by the first reader,
// and by a new generation at once while somebody reads.
func TestProgramsWhenNeeded(t *testing.T) {
	n := newNet(t)
	cfg := n.config()
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
	expect(d, map[string]bool{"weir_tc_in": true, "weir_tc_out_turn": true, "weir_xdp": false, "weir_xdp_miss": false, "weir_tc_in_capture": false, "weir_adopt": false})
	check(t, d.CapturePreparation()())
	expect(d, map[string]bool{"weir_tc_in_capture": false}) // nobody who reads the programs meanwhile sees one come
	check(t, d.SetCapture(64, []CaptureFilter{{Readers: 1, All: true}}))
	expect(d, map[string]bool{"weir_tc_in_capture": true, "weir_tc_out_capture": true, "weir_xdp": false, "weir_xdp_capture": false})
	check(t, d.Attach(n.attachments(true)[1]))
	expect(d, map[string]bool{"weir_xdp": true, "weir_xdp_turn": true, "weir_xdp_capture": true})
	for _, e := range entries {
		for i, slot := range slotNames {
			if id := programIn(t, d.objects.Maps[e.slots], uint32(i)); id == 0 {
				t.Errorf("%s: no program in slot %s", e.slots, slot)
			}
		}
	}
	next := build(t, cfg)
	expect(next, map[string]bool{"weir_tc_in_capture": true, "weir_tc_out_capture": true, "weir_xdp": false})
	check(t, d.SetCapture(0, nil))
}

// programIn returns the number of the program in a slot, 0 for none.
func programIn(t *testing.T, slots *bpfload.Map, i uint32) uint32 {
	t.Helper()
	var id uint32
	if err := slots.Lookup(i, &id); err != nil {
		return 0
	}
	return id
}

// Where the kernel refuses the programs of the XDP hook, that is an error of the
// interface that should have it; with TCX all goes on.
func TestXDPIsRefused(t *testing.T) {
	n := newNet(t)
	cfg := n.config()
	cfg.specs = func() ([]*bpfload.Spec, error) {
		specs, err := loadSpecs()
		for _, s := range specs {
			if p := s.Programs["weir_xdp_turn"]; p != nil {
				p.Instructions = p.Instructions[:1] // it runs off its end
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
