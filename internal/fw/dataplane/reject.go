package dataplane

// Answers count blocked packets whose rule has their sender told.
type Answers struct {
	RST, ICMP Counter // told so
	Limited   Counter // not told: the core had given as many answers as it may
	Failed    Counter // not told: the answer could not be made
}

// Numbers of counters: enum rejected of bpf/path/reject.h.
const (
	answeredRST = iota
	answeredICMP
	answeredLimit
	answeredNot
	answeredCount
)

// Answers returns how many answers were given, and not given.
func (v *View) Answers() (Answers, error) {
	var a Answers
	values, err := newPerCPU[xdpCounter]()
	if err != nil {
		return a, err
	}
	for index, counter := range map[uint32]*Counter{
		answeredRST: &a.RST, answeredICMP: &a.ICMP, answeredLimit: &a.Limited, answeredNot: &a.Failed,
	} {
		if *counter, err = sumCounter(v.tables.maps[mapRejectCounters], index, values); err != nil {
			return a, err
		}
	}
	return a, nil
}
