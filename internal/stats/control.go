package stats

import (
	"fmt"
	"math"
)

// maxControl is the difference of the control, as a share, beyond which a run
// says nothing about smaller ones.
const maxControl = 0.05

// Control is the same thing measured twice, as if it were two (A/A): the
// difference is what this run cannot tell from nothing.
type Control struct {
	Path       string  `json:"path"`
	Difference float64 `json:"difference"` // share; the largest of all pairs
	OK         bool    `json:"ok"`
	Why        string  `json:"why,omitempty"` // why not
}

// NewControl is one that nothing speaks against yet.
func NewControl() Control { return Control{OK: true} }

// Add takes one more pair of samples of the same thing.
func (c *Control) Add(path string, a, b Sample) {
	difference := Difference(a, b)
	if math.IsNaN(difference) || math.IsInf(difference, 0) { // neither is a number of a report
		c.Refuse(path + " was measured twice, and once nothing came of it")
		return
	}
	if difference >= c.Difference {
		c.Path, c.Difference = path, Round(difference)
	}
	if difference > maxControl {
		c.Refuse(fmt.Sprintf("%s differs from itself by %.1f %%", path, difference*100))
	}
}

// Refuse takes the verdict away for another reason.
func (c *Control) Refuse(why string) { c.OK, c.Why = false, why }

// String is the control's verdict on the run itself.
func (c Control) String() string {
	if c.Path == "" && !c.OK {
		return "control: no verdict: " + c.Why
	}
	text := fmt.Sprintf("control: %s measured twice differs by %.1f %%", c.Path, c.Difference*100)
	if c.OK {
		return text
	}
	return text + "; no verdict: " + c.Why
}
