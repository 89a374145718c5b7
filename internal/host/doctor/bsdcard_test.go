package doctor

import (
	"fmt"
	"strings"
	"testing"
)

// bsdBox is a FreeBSD router with two cards, each with two queues, as sysctl prints them.
const bsdBox = "kern.osrelease: 14.1-RELEASE\nnet.inet.ip.forwarding: 1\nnet.inet.ip.redirect: 0\nnet.inet6.ip6.forwarding: 1\nnet.inet6.ip6.redirect: 0\n" +
	"net.inet.ip.intr_queue_drops: 0\nnet.inet.ip.intr_queue_maxlen: 256\nhw.ncpu: 4\nnet.isr.dispatch: %s\n" +
	"dev.igb.0.mac_stats.good_pkts_recvd: 9000000\ndev.igb.0.mac_stats.missed_packets: %d\ndev.igb.0.mac_stats.crc_errs: %d\ndev.igb.0.mac_stats.checksum_errs: 900000\n" +
	"dev.igb.0.queue_rx_0.rx_irq: %d\ndev.igb.0.queue_rx_1.rx_irq: %d\ndev.igb.0.iflib.rxq0.rxq_fl0.cidx: %d\n" +
	"dev.ix.1.mac_stats.good_pkts_rcvd: 9000000\ndev.ix.1.mac_stats.rx_missed_packets: 0\n"

// TestFreeBSDCards checks what is said of FreeBSD's cards: a ring without room, one queue for
// all, a driver that takes nothing, and damaged frames; and that nothing is said of cards that are well.
func TestFreeBSDCards(t *testing.T) {
	for _, c := range []struct {
		name             string
		dispatch         string
		missed, damaged  int
		first, second    int // interrupts of the queues
		place            int // that the driver took last
		check            string
		says, remedy     string
		under, elsewhere string // a check whose finding waits; one that finds nothing
	}{
		{name: "well", dispatch: "direct", first: 300000, second: 310000, place: 12},
		{name: "a few were missed", dispatch: "direct", missed: 9, damaged: 9, first: 900000, second: 900, place: 12},
		{name: "one queue, and nothing missed", dispatch: "direct", first: 900000, second: 900, place: 12},
		{name: "bursts", dispatch: "direct", missed: 40000, first: 300000, second: 310000, place: 12, check: "BSD-4", says: "igb0 has lost 0.44 %", remedy: "override_nrxds", elsewhere: "BSD-3"},
		{name: "PPPoE", dispatch: "direct", missed: 2000000, first: 900000, second: 900, place: 12, check: "BSD-3", says: "one core receives them", remedy: "sysctl net.isr.dispatch=deferred", under: "BSD-4"},
		{name: "PPPoE, deferred", dispatch: "deferred", missed: 2000000, first: 900000, second: 900, place: 12, check: "BSD-3", says: "one core receives them", remedy: "netstat -Q", under: "BSD-4"},
		{name: "deaf", dispatch: "direct", missed: 30000000, first: 2, second: 1, check: "BSD-4", says: "takes nothing", remedy: "disable_msix", elsewhere: "BSD-3"},
		{name: "damaged", dispatch: "direct", damaged: 5000, first: 300000, second: 310000, place: 12, check: "BSD-4", says: "were damaged", remedy: "ifconfig -v igb0", elsewhere: "BSD-3"},
	} {
		r := examine(t, fmt.Sprintf(bsdBox, c.dispatch, c.missed, c.damaged, c.first, c.second, c.place))
		if r.Verdict.Check != c.check {
			t.Errorf("%s: %q: %s; want %q", c.name, r.Verdict.Check, r.Verdict.Sentence, c.check)
			continue
		}
		if c.check == "" {
			continue
		}
		f := r.Findings[0]
		if f.Severity != Warning || !strings.Contains(f.Says, c.says) || len(f.Remedies) == 0 || !strings.Contains(fmt.Sprint(f.Remedies), c.remedy) {
			t.Errorf("%s: %+v", c.name, f)
		}
		asTuneSays(t, c.name, f.Remedies)
		if c.under != "" && (findingOf(r, c.under) == nil || findingOf(r, c.under).Because != c.check) {
			t.Errorf("%s: %+v", c.name, r.Findings)
		}
		if c.elsewhere != "" && findingOf(r, c.elsewhere) != nil {
			t.Errorf("%s: %+v", c.name, findingOf(r, c.elsewhere))
		}
	}
}
