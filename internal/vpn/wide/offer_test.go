package wide

import (
	"bytes"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/vpn/key"
)

func offer(lanes int) *Offer {
	o := &Offer{Boot: 1, Number: 2, Port: 51820, Generation: 3, With: 4, Ask: true, Moved: true, Known: true}
	for i := range lanes {
		o.Lanes = append(o.Lanes, Offered{51821 + uint16(i), key.NewPrivate().Public()})
	}
	return o
}

// What is written is read, with and without padding, and every change of its form is refused.
func TestOffer(t *testing.T) {
	for _, o := range []*Offer{offer(1), offer(3), offer(MostPorts - 1), {Boot: 9, Number: 1, Port: 7, Known: true}} {
		note := o.Append(nil)
		if len(note) > 576 {
			t.Errorf("an offer has %d bytes", len(note))
		}
		for range padding {
			got, err := ParseOffer(note)
			if diff := cmp.Diff(o, got); err != nil || diff != "" {
				t.Fatalf("%v (-want +got)\n%s", err, diff)
			}
			note = append(note, 0)
		}
		if _, err := ParseOffer(note); err == nil {
			t.Errorf("an offer with %d bytes of padding is taken", padding)
		}
	}
	for name, spoil := range map[string]func(b []byte) []byte{
		"empty":           func([]byte) []byte { return nil },
		"short":           func(b []byte) []byte { return b[:len(b)-1] },
		"head only":       func(b []byte) []byte { return b[:lanesAt] },
		"version of IP":   func(b []byte) []byte { b[0] = 0x45; return b },
		"kind":            func(b []byte) []byte { b[kindAt] = 9; return b },
		"flag":            func(b []byte) []byte { b[flagsAt] |= 8; return b },
		"reserved":        func(b []byte) []byte { b[zeroAt] = 1; return b },
		"more lanes":      func(b []byte) []byte { b[countAt]++; return b },
		"too many":        func(b []byte) []byte { b[countAt] = 255; return b },
		"length":          func(b []byte) []byte { b[lengthAt+1]++; return b },
		"padding":         func(b []byte) []byte { return append(b, 0, 1) },
		"no boot":         func(b []byte) []byte { clear(b[bootAt:numberAt]); return b },
		"no generation":   func(b []byte) []byte { clear(b[genAt:withAt]); return b },
		"moved with none": func(b []byte) []byte { clear(b[withAt:lanesAt]); return b },
		"no port":         func(b []byte) []byte { clear(b[lanesAt : lanesAt+2]); return b },
		"first port":      func(b []byte) []byte { copy(b[lanesAt:], b[portAt:portAt+2]); return b },
		"port twice":      func(b []byte) []byte { copy(b[lanesAt+laneSize:], b[lanesAt:lanesAt+2]); return b },
		"no key":          func(b []byte) []byte { clear(b[lanesAt+2 : lanesAt+laneSize]); return b },
		"key twice":       func(b []byte) []byte { copy(b[lanesAt+laneSize+2:], b[lanesAt+2:lanesAt+laneSize]); return b },
	} {
		if _, err := ParseOffer(spoil(offer(3).Append(nil))); err == nil {
			t.Errorf("an offer with a wrong %s is taken", name)
		}
	}
}

func TestProbe(t *testing.T) {
	for _, p := range []*Probe{{Number: 7, Size: leastProbe}, {Answer: true, Number: 1<<64 - 1, Size: 1420}, {Size: mostProbe}, {Deaf: true, Number: 8, Size: 100}} {
		got, err := ParseProbe(append(p.Append(nil), 0, 0))
		if diff := cmp.Diff(p, got); err != nil || diff != "" {
			t.Errorf("%v (-want +got)\n%s", err, diff)
		}
	}
	good := (&Probe{Number: 7, Size: 100}).Append(nil)
	for _, spoil := range []func(b []byte) []byte{
		func(b []byte) []byte { return b[:99] },
		func(b []byte) []byte { return b[:leastProbe-1] },
		func(b []byte) []byte { b[99] = 1; return b },
		func(b []byte) []byte { b[portAt] = 1; return b },
		func(b []byte) []byte { b[flagsAt] = 2; return b },
		func(b []byte) []byte { b[flagsAt], b[kindAt] = flagDeaf, kindAnswer; return b },
		func(b []byte) []byte { return append(b, make([]byte, padding)...) },
		func(b []byte) []byte { b[kindAt] = kindOffer; return b },
	} {
		if _, err := ParseProbe(spoil(bytes.Clone(good))); err == nil {
			t.Error("a probe that is none is taken")
		}
	}
}

// Whatever is read is written again as it was, but for padding, and is never both an offer and a probe.
func FuzzNote(f *testing.F) {
	f.Add(offer(1).Append(nil))
	f.Add(offer(MostPorts - 1).Append(nil))
	f.Add((&Offer{Boot: 9, Number: 1, Port: 7}).Append(nil))
	f.Add((&Probe{Number: 7, Size: 40}).Append(nil))
	f.Add((&Probe{Deaf: true, Number: 7, Size: 40}).Append(nil))
	f.Fuzz(func(t *testing.T, note []byte) {
		before := slices.Clone(note)
		o, notOffer := ParseOffer(note)
		p, notProbe := ParseProbe(note)
		var again []byte
		switch {
		case notOffer == nil && notProbe == nil:
			t.Fatal("it is an offer and a probe")
		case notOffer == nil:
			again = o.Append(nil)
		case notProbe == nil:
			again = p.Append(nil)
		default:
			return
		}
		if !bytes.HasPrefix(note, again) || len(note)-len(again) >= padding || !bytes.Equal(note, before) {
			t.Errorf("%x is written as %x", note, again)
		}
	})
}
