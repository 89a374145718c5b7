package dataplane

import "fmt"

// An Forecast says what Commit will do with the existing connections.
type Forecast struct {
	Converts bool  // they have another version's layout
	States   int   // how many there are; 0 if they cannot be read
	Lost     int   // how many cannot be converted
	Why      error // why some or all are lost; nil: none is
	Rest     bool  // lost are those that an interrupted Commit had not copied yet
}

// Forecast returns what Commit will do with the existing connections.
func (d *Dataplane) Forecast() Forecast {
	if d.lost != nil {
		return Forecast{Why: d.lost}
	}
	if d.restLost != nil {
		return Forecast{Why: d.restLost, Rest: true}
	}
	if d.old == nil || !d.old.other {
		return Forecast{}
	}
	o := Forecast{Converts: true}
	var s xdpState
	for _, err := range d.old.states.all(&s) {
		o.States++
		if err != nil {
			o.Lost++
			o.Why = err
		}
	}
	return o
}

// LosesAny reports whether connections will be lost.
func (o Forecast) LosesAny() bool { return o.Why != nil }

// String says what will be lost.
func (o Forecast) String() string {
	switch {
	case o.Why == nil:
		return "all connections go on"
	case o.Rest:
		return fmt.Sprintf("connections that an interrupted start or load had not copied yet will be lost: their states cannot be read (%v)", o.Why)
	case o.States == 0:
		return fmt.Sprintf("all connections will be lost: this version cannot read their states (%v)", o.Why)
	}
	return fmt.Sprintf("%d of %d connections will be lost: this version cannot hold their states (%v)", o.Lost, o.States, o.Why)
}
