package gateway

import (
	"strings"
	"testing"
	"time"
)

// Each row is a series of samples, + answered and - lost, with D where the gateway must go
// down and U where it must come up, right after the sample that decides it.
func TestHealth(t *testing.T) {
	ten := strings.Repeat("+", 10)
	for name, series := range map[string]string{
		"answers":                  ten + ten + ten + ten,
		"four lost":                "++----++----++",
		"five lost":                "++-----D",
		"from the beginning":       "-----D",
		"up after ten":             "-----D" + ten + "U",
		"not up after nine":        "-----D+++++++++-" + ten + "U",
		"six of thirty":            "-++++-++++-++++-++++-++++-++++D",
		"five of thirty":           "-++++-++++-++++-++++-+++++++++" + ten + ten,
		"an old loss is forgotten": "-+++++++++-++++-++++-++++-++++++++++-++++",
		"up, and five lost":        "-----D" + ten + "U+-----D",
		"what was before is over":  "-----D" + ten + "U----+----+++++++++",
	} {
		var h health
		now := time.Unix(0, 0)
		for i, sample := range series {
			now = now.Add(time.Second)
			switch sample {
			case '+', '-':
				want := i+1 < len(series) && (series[i+1] == 'D' || series[i+1] == 'U')
				if changed := h.add(sample == '+', time.Millisecond, now); changed != want {
					t.Errorf("%s, after %s: changed: %v", name, series[:i+1], changed)
				}
			case 'D', 'U':
				if h.down != (sample == 'D') {
					t.Errorf("%s, after %s: down: %v", name, series[:i], h.down)
				}
			}
		}
	}
}

func TestLoss(t *testing.T) {
	var h health
	for i := range 40 {
		h.add(i < 20 || i%10 != 0, time.Duration(i)*time.Millisecond, time.Unix(int64(i), 0))
	}
	if h.down || h.loss() != 2.0/window {
		t.Errorf("down %v, loss %v, want up and %v", h.down, h.loss(), 2.0/window)
	}
	if h.answer < 20*time.Millisecond || h.answer > 39*time.Millisecond {
		t.Errorf("the mean of the last answers is %v", h.answer)
	}
}
