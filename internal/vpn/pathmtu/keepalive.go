package pathmtu

import "time"

// A peer that has received data and sends none itself sends a keepalive after 10 s: section 6.5 of the WireGuard paper.
// It tells that the data has come, whatever that was. Nothing else may come or go meanwhile, or it tells nothing.
const (
	keepEarly = 9500 * time.Millisecond // what comes before is no answer
	keepLate  = 11500 * time.Millisecond
	keepLook  = 250 * time.Millisecond
	keepBytes = 32 // of a keepalive
	keepTwice = 2  // a keepalive of another kind may come at that time once
	keepTries = 4
	keepStep  = 8 // each size takes more than 20 s
)

// An answer to whether data was answered.
type answer int

const (
	no answer = iota
	yes
	unsure
)

// keeps reports whether data of a size is answered by keepalives.
func (m *measure) keeps(size int) bool {
	a := m.kept(size)
	m.unclear = m.unclear || a == unsure
	return a == yes
}

// kept finds out whether data of a size is answered: twice, or twice not.
func (m *measure) kept(size int) answer {
	var count [unsure]int
	for range keepTries {
		if m.unclear || m.ctx.Err() != nil {
			return unsure
		}
		a := m.keep(size)
		if a == unsure {
			continue
		}
		if count[a]++; count[a] == keepTwice {
			return a
		}
	}
	return unsure
}

// keep sends data of a size once, and looks what comes.
func (m *measure) keep(size int) answer {
	before, came, ok := m.path.Bytes()
	if !ok {
		return unsure
	}
	begun := time.Now()
	m.path.Ask(m.ctx, m.target, size, 0)
	if sent, _, ok := m.path.Bytes(); ok && sent == before {
		return no // it is too long to be sent at all
	}
	for time.Since(begun) < keepLate && m.ctx.Err() == nil {
		time.Sleep(keepLook)
		sent, received, ok := m.path.Bytes()
		switch {
		case !ok || sent < before || received < came || sent-before > uint64(size+3*keepBytes):
			return unsure // something else was sent: the answer would be to that
		case received == came:
		case received-came != keepBytes || time.Since(begun) < keepEarly:
			return unsure
		default:
			return yes
		}
	}
	return no
}
