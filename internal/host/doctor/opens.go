package doctor

import (
	"fmt"

	"weir/internal/units"
)

// staleClocks finds connections that TCP refuses because the time stamp of the other end goes back. With
// tcp_tw_recycle, kernels before 4.12 remember one clock for each address: hosts behind one address (translation, a
// balancer) have a clock each, and most of their connections get no answer.
func (v *view) staleClocks(o *outcome) {
	const recycle = "net.ipv4.tcp_tw_recycle"
	refused, opened := v.counted("TcpExt.PAWSPassive"), v.counted("Tcp.PassiveOpens")
	share := float64(refused) / float64(max(1, refused+opened))
	if refused < fewLost || share < lossHurts {
		return
	}
	f := Finding{
		Severity: Warning, core: -1, weight: share, kind: "stamp",
		Says:     fmt.Sprintf("TCP refuses %s of the new connections of this box, without an answer: their time stamps go back, as those of several hosts behind one address do", percent(share)),
		Evidence: []string{fmt.Sprintf("TcpExt.PAWSPassive: %s; Tcp.PassiveOpens: %s in %s", units.Thousands(int(refused)), units.Thousands(int(opened)), seconds(v.Seconds))},
		Expect:   "connections from behind one address open at once",
	}
	if share >= held {
		f.Severity = Critical
	}
	now, known := v.number(recycle)
	if known {
		f.Evidence = append(f.Evidence, fmt.Sprintf("%s = %d", recycle, now))
	}
	f.Remedies = []Remedy{{Command: "sysctl -w " + recycle + "=0", Text: "it takes the clocks of all hosts behind one address for one (Linux 4.12 no longer has it); remove its line from /etc/sysctl.conf, too. tcp_tw_reuse does no such harm"}}
	if known && now == 0 {
		f.Remedies = []Remedy{{Command: "ip tcp_metrics flush", Text: "forget the clocks that were remembered while " + recycle + " was on"}}
	}
	o.add(f)
}
