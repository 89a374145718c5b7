package dataplane

import "fmt"

// An Outlook says what Commit will do with the existing connections.
type Outlook struct {
	Converts bool  // they have another version's layout
	States   int   // how many there are; 0 if they cannot be read
	Lost     int   // how many cannot be converted
	Why      error // why some or all are lost; nil: none is
}

// Outlook returns what Commit will do with the existing connections.
func (d *Dataplane) Outlook() Outlook {
	if d.lost != nil {
		return Outlook{Why: d.lost}
	}
	if d.old == nil || !d.old.other {
		return Outlook{}
	}
	o := Outlook{Converts: true}
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

// Loses reports whether connections will be lost.
func (o Outlook) Loses() bool { return o.Why != nil }

// String says what will be lost.
func (o Outlook) String() string {
	switch {
	case o.Why == nil:
		return "all connections go on"
	case o.States == 0:
		return fmt.Sprintf("all connections will be lost: this version cannot read their states (%v)", o.Why)
	}
	return fmt.Sprintf("%d of %d connections will be lost: this version has no room for what their states hold (%v)", o.Lost, o.States, o.Why)
}
