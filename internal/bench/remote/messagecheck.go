package remote

import (
	"errors"
	"fmt"
	"math"
)

func (m *message) said() int {
	n := 0
	for _, set := range []bool{m.Hello != nil, m.Welcome != nil, m.Run != nil, m.Granted != nil, m.Refused != nil, m.Proof != nil,
		m.Proven != nil, m.Go != nil, m.Started != nil, m.Alive != nil, m.Sample != nil, m.Sent != nil, m.Done != nil, m.Bye != nil} {
		if set {
			n++
		}
	}
	return n
}

func (m *message) check() error {
	switch {
	case m.Hello != nil:
		return checkTexts(m.Hello.Program)
	case m.Welcome != nil:
		return m.Welcome.check()
	case m.Run != nil:
		return m.Run.check()
	case m.Granted != nil:
		return m.Granted.check()
	case m.Refused != nil:
		return checkTexts(m.Refused.Why)
	case m.Proof != nil:
		return checkTickets(m.Proof.Ticket, m.Proof.Cookie)
	case m.Sample != nil:
		return m.Sample.Check()
	case m.Sent != nil:
		return m.Sent.check()
	case m.Done != nil:
		return m.Done.check()
	}
	return nil
}

func (w *welcome) check() error {
	if w.Machine.Cores < 0 || w.Machine.Cores > 1<<16 {
		return fmt.Errorf("%d cores", w.Machine.Cores)
	}
	return errors.Join(w.Limits.Check(), checkTickets(w.Probe),
		checkTexts(w.Program, w.Router, w.Without, w.Machine.Name, w.Machine.CPU, w.Machine.Kernel))
}

func (g *granted) check() error {
	if err := g.Run.check(); err != nil {
		return err
	}
	wanted := 1
	if g.Run.Protocol == TCP {
		wanted = g.Run.flows()
	}
	if len(g.Tickets) != wanted || len(g.Cut) > 16 {
		return fmt.Errorf("%d tickets where %d are needed", len(g.Tickets), wanted)
	}
	return errors.Join(checkTickets(g.Tickets...), checkTexts(g.Cut...))
}

func (o *outcome) check() error {
	if !within(o.Process, 0, math.MaxUint32) {
		return fmt.Errorf("%g s of cores", o.Process)
	}
	return errors.Join(o.Sent.check(), o.Received.check(), checkTexts(o.Ended))
}

func (s *sent) check() error {
	if s == nil {
		return nil
	}
	return checkCounts(s.Packets, s.Bytes, s.Retransmits)
}

func (r *received) check() error {
	switch {
	case r == nil:
		return nil
	case r.Window < 0 || r.Window > 2*maxRun || len(r.Series) > maxSeries:
		return fmt.Errorf("%d intervals in %s", len(r.Series), r.Window)
	case r.Jitter < 0 || r.Jitter > maxRun:
		return fmt.Errorf("a jitter of %s", r.Jitter)
	case r.Reordered > r.Packets:
		return fmt.Errorf("%d of %d datagrams out of order", r.Reordered, r.Packets)
	}
	for _, v := range r.Series {
		if !within(v, 0, 1e15) {
			return fmt.Errorf("a rate of %g", v)
		}
	}
	return checkCounts(r.Bytes, r.Packets, r.Reordered, r.Overflow)
}

// maxCount is more than the bytes of any run: the highest rate for twice the
// longest time.
const maxCount = 1e15

func checkCounts(counts ...uint64) error {
	for _, n := range counts {
		if n > maxCount {
			return fmt.Errorf("a count of %d", n)
		}
	}
	return nil
}

func checkTexts(texts ...string) error {
	for _, t := range texts {
		if len(t) > maxText {
			return fmt.Errorf("a text of %d bytes", len(t))
		}
	}
	return nil
}

func checkTickets(texts ...string) error {
	for _, t := range texts {
		if _, err := parseTicket(t); err != nil {
			return err
		}
	}
	return nil
}
