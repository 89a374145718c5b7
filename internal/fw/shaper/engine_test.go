package shaper_test

import (
	"testing"

	"weir/internal/fw/shaper"
)

func TestChoose(t *testing.T) {
	line := func(s shaper.Shaper, bits uint64) *shaper.Shaper {
		s.Interface = "wan0"
		s.Classes = []shaper.Class{{Parent: -1, Max: shaper.Rate{Bytes: bits / 8}}}
		return &s
	}
	for _, c := range []struct {
		name     string
		shaper   *shaper.Shaper
		measured bool
		want     shaper.Choice
	}{
		{"the default", line(shaper.Shaper{}, 1e9), false, shaper.Choice{Engine: shaper.Phantom, Why: "no queue of a modem is known behind wan0"}},
		{"a modem", line(shaper.Shaper{Modem: true}, 1e9), false, shaper.Choice{Engine: shaper.Queue, Why: "a modem is behind wan0: its queue stays empty if packets wait here"}},
		{"a measured queue", line(shaper.Shaper{}, 1e9), true, shaper.Choice{Engine: shaper.Queue, Why: "a queue was measured behind wan0: it stays empty if packets wait here"}},
		{"too fast for one core", line(shaper.Shaper{Modem: true}, 1e9+8), false, shaper.Choice{Engine: shaper.Phantom, Why: "the line has 1Gbit/s, and one core holds the packets of 1Gbit/s at most"}},
		{"what comes in", line(shaper.Shaper{Modem: true, In: true}, 1e6), true, shaper.Choice{Engine: shaper.Phantom, Why: "what comes in has passed the queue of its line already"}},
		{"phantom, said", line(shaper.Shaper{Modem: true, Engine: shaper.Phantom}, 1e6), true, shaper.Choice{Engine: shaper.Phantom, Why: "the file says so"}},
		{"queue, said", line(shaper.Shaper{Engine: shaper.Queue}, 40e9), false, shaper.Choice{Engine: shaper.Queue, Why: "the file says so"}},
	} {
		if got := c.shaper.Choose(c.measured); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestEngineText(t *testing.T) {
	for _, e := range []shaper.Engine{shaper.Auto, shaper.Phantom, shaper.Queue} {
		var back shaper.Engine
		text, err := e.MarshalText()
		if err != nil || back.UnmarshalText(text) != nil || back != e {
			t.Errorf("%v becomes %s and then %v", e, text, back)
		}
	}
	var e shaper.Engine
	if e.UnmarshalText([]byte("cake")) == nil {
		t.Error("cake is an engine")
	}
}
