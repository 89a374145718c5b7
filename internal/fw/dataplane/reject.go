package dataplane

// Answers counts the rejects of blocked packets.
type Answers struct {
	RST, ICMP Counter // rejects sent
	Limited   Counter // not sent: the core had reached its limit
	Failed    Counter // not sent: the reject could not be made
}

// Indexes of counters: enum rejected of bpf/path/reject.h.
const (
	answeredRST = iota
	answeredICMP
	answeredLimit
	answeredNot
	answeredCount
)

// Answers returns how many rejects were sent, and how many were not.
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
