package dataplane

// Rejects counts the rejects of blocked packets.
type Rejects struct {
	RST, ICMP Counter // rejects sent
	Limited   Counter // not sent: the core had reached its limit
	Failed    Counter // not sent: the reject could not be made
}

// Indexes of counters: enum rejected of bpf/path/reject.h.
const (
	rejectedRST = iota
	rejectedICMP
	rejectedLimit
	rejectedNot
	rejectedCount
)

// Rejects returns how many rejects were sent, and how many were not.
func (v *View) Rejects() (Rejects, error) {
	var a Rejects
	values, err := newPerCPU[xdpCounter]()
	if err != nil {
		return a, err
	}
	for index, counter := range map[uint32]*Counter{
		rejectedRST: &a.RST, rejectedICMP: &a.ICMP, rejectedLimit: &a.Limited, rejectedNot: &a.Failed,
	} {
		if *counter, err = sumCounter(v.tables.maps[mapRejectCounters], index, values); err != nil {
			return a, err
		}
	}
	return a, nil
}
