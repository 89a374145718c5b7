package stats

import (
	"fmt"
	"math"
)

// maxControl is the largest difference of a control, as a share. Above it, a run says
// nothing about smaller differences.
const maxControl = 0.05

// Control is the same thing measured twice, as if it were two (A/A). Its difference is
// what this run cannot distinguish from no difference.
type Control struct {
	Path       string  `json:"path"`
	Difference float64 `json:"difference"` // share; the largest of all pairs
	OK         bool    `json:"ok"`
	Why        string  `json:"why,omitempty"` // why not
}

// NewControl returns a control that has not failed.
func NewControl() Control { return Control{OK: true} }

// Add adds a pair of samples of the same thing.
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

// Refuse makes the control fail for another reason.
func (c *Control) Refuse(why string) { c.OK, c.Why = false, why }

// String returns the control's verdict on the run itself.
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
