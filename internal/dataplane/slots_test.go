package dataplane

import (
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
