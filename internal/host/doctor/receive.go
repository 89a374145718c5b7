package doctor

import (
	"fmt"
	"strings"

	"weir/internal/units"
)

// collapses is the share of the segments for this box which, copied together in full receive buffers, cost as much as
// receiving them.
const collapses = 0.1

// fullReceivers finds receive buffers of TCP that are full of small pieces: for each segment that comes, the kernel
// copies the whole queue together (tcp_collapse), in softirq. The larger the buffer, the longer it takes. What fills it
// is a program that reads more slowly than its far end sends: a proxy before slow clients.
func (v *view) fullReceivers(o *outcome) {
	collapsed, came := v.counted("TcpExt.TCPRcvCollapsed"), v.counted("Tcp.InSegs")
	dropped := v.counted("TcpExt.RcvPruned", "TcpExt.OfoPruned", "TcpExt.TCPRcvQDrop")
	share := float64(collapsed) / float64(max(1, came))
	if collapsed < few || share < collapses {
		return
	}
	f := Finding{
		Severity: Notice, core: -1, weight: share, kind: "receive", bites: true,
		Says: "receive buffers of this box's own TCP are full, and the kernel copies their pieces together again and again: their programs read more slowly than their far ends send",
		Evidence: []string{fmt.Sprintf("TcpExt.TCPRcvCollapsed: %s (of %s segments received), PruneCalled: %s, dropped: %s in %s", units.Thousands(int(collapsed)), units.Thousands(int(came)),
			units.Thousands(int(v.counted("TcpExt.PruneCalled"))), units.Thousands(int(dropped)), seconds(v.Seconds))},
		Remedies: []Remedy{{Command: "ss -tmn | grep -B1 'skmem:(r[0-9]\\{6,\\}'", Text: "see whose buffers are full (Recv-Q): a proxy that passes on more slowly than it gets"}},
		Expect:   "the core has that time for packets",
	}
	var loaded []*core
	for _, c := range v.cores {
		if c.softirq >= muchSoftirq && c.busy >= working {
			loaded = append(loaded, c)
			f.Evidence = append(f.Evidence, c.line())
		}
	}
	if len(loaded) > 0 {
		f.Severity, f.core, f.cores = Warning, loaded[0].ID, idsOf(loaded)
		f.Says = fmt.Sprintf("%s, on %s", f.Says, cpuNames(loaded))
	}
	const limit, usual = "net.ipv4.tcp_rmem", 6 << 20
	var least, first, most int
	if n, _ := fmt.Sscan(v.Sysctls[limit], &least, &first, &most); n == 3 {
		f.Evidence = append(f.Evidence, limit+" = "+strings.Join(strings.Fields(v.Sysctls[limit]), " "))
		f.Remedies = append(f.Remedies, Remedy{Command: fmt.Sprintf("sysctl -w %s='%d %d %d'", limit, least, first, max(first, min(most/4, usual))),
			Text: "a smaller last figure: what is copied is less (the kernel's own is 6 MiB). It also limits single connections from far away, to that much for each round trip"})
	} else {
		f.Remedies = append(f.Remedies, Remedy{Text: "a smaller last figure of " + limit + " (the kernel's own is 6 MiB): what is copied is less"})
	}
	o.add(f)
}
