package doctor

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"weir/internal/pattern"
	"weir/internal/units"
)

// Names of FreeBSD's sysctls by card: what the card's hardware has counted since the start, and
// the interrupts of each receive queue (em, igb, igc and ix).
var (
	bsdCounter = pattern.New(`^dev\.([a-z]+\.\d+)\.mac_stats\.([a-z_]+)$`)
	bsdIRQs    = pattern.New(`^dev\.([a-z]+\.\d+)\.queue_rx_(\d+)\.rx_irq$`)
	bsdTaken   = pattern.New(`^dev\.([a-z]+\.\d+)\.iflib\.rxq\d+\.rxq_fl0\.cidx$`)
)

// bsdCard is what FreeBSD's sysctls tell of a card.
type bsdCard struct {
	counters   map[string]uint64 // of mac_stats
	interrupts map[int]float64   // of receive queues
	taken      uint64            // places of the rings that the driver has emptied last
	rings      int               // rings that tell so
}

// bsdCards reads the cards that count what they receive.
func (v *view) bsdCards() map[string]*bsdCard {
	cards := map[string]*bsdCard{}
	of := func(device string) *bsdCard {
		if cards[device] == nil {
			cards[device] = &bsdCard{counters: map[string]uint64{}, interrupts: map[int]float64{}}
		}
		return cards[device]
	}
	for name, value := range v.Sysctls {
		n, err := strconv.ParseUint(value, 10, 64)
		if err != nil {
			continue
		}
		if m := bsdCounter.FindStringSubmatch(name); m != nil {
			of(m[1]).counters[m[2]] = n
		} else if m := bsdIRQs.FindStringSubmatch(name); m != nil {
			of(m[1]).interrupts[whole(m[2])] = float64(n)
		} else if m := bsdTaken.FindStringSubmatch(name); m != nil {
			of(m[1]).taken, of(m[1]).rings = of(m[1]).taken+n, of(m[1]).rings+1
		}
	}
	return cards
}

// bsdMerges matches counts of packets that a card or its driver has merged (LRO).
var bsdMerges = pattern.New(`^dev\.([a-z]+\.\d+)\..*\blro_(?:packets|queued|flushed)$`)

// bsdMerged looks for cards that have merged packets since the start on a FreeBSD that forwards.
func (v *view) bsdMerged() (o outcome) {
	if v.Sysctls == nil {
		o.lacks(v, "sysctls")
		return o
	}
	if v.Sysctls["net.inet.ip.forwarding"] != "1" && v.Sysctls["net.inet6.ip6.forwarding"] != "1" {
		o.absent = "the box does not forward"
		return o
	}
	merged := map[string]uint64{}
	for name, value := range v.Sysctls {
		if m := bsdMerges.FindStringSubmatch(name); m != nil {
			if n, err := strconv.ParseUint(value, 10, 64); err == nil {
				merged[m[1]] += n
			}
		}
	}
	for _, device := range sortedKeys(merged) {
		if merged[device] < few {
			continue
		}
		card := bsdName(device)
		o.add(Finding{
			Severity: Warning, Subject: device, core: -1, weight: float64(merged[device]),
			Says:     fmt.Sprintf("%s has merged received packets (LRO) since the start although the box forwards: merged packets cannot be forwarded unchanged, and some cards send them very slowly", card),
			Evidence: []string{fmt.Sprintf("dev.%s.…lro_*: %s since the start", device, units.Thousands(int(merged[device])))},
			Remedies: []Remedy{{Command: "ifconfig " + card + " -lro -tso", Text: "at once; on pfSense and OPNsense: Disable hardware large receive offload, and TCP segmentation offload, which keeps it"}},
			Expect:   "no packets above the MTU, and no retransmissions because of them",
		})
	}
	if len(merged) == 0 {
		o.lacks(v, "sysctls.dev.*.lro_packets")
	}
	return o
}

// received returns the frames that came without damage.
func (c *bsdCard) received() uint64 {
	return max(c.counters["good_pkts_recvd"], c.counters["good_pkts_rcvd"])
}

// lost returns the frames that found no room, and their share of all.
func (c *bsdCard) lost() (n uint64, share float64) {
	n = max(c.counters["missed_packets"], c.counters["rx_missed_packets"])
	return n, float64(n) / float64(max(1, n+c.received()))
}

// deaf reports whether the driver takes hardly anything of what the hardware counts: it got
// next to no interrupts, and its rings are where they began.
func (c *bsdCard) deaf() bool {
	var interrupts float64
	for _, n := range c.interrupts {
		interrupts += n
	}
	lost, share := c.lost()
	return lost >= fewLost && share >= garbled && len(c.interrupts) > 0 && interrupts < fewLost && c.taken == 0 && c.rings > 0
}

// bsdLosses checks what cards of FreeBSD have lost and received damaged since the start.
func bsdLosses(v *view) (o outcome) {
	cards := v.bsdCards()
	counted := false
	for _, device := range sortedKeys(cards) {
		c := cards[device]
		if c.counters == nil || c.received() == 0 {
			continue
		}
		counted = true
		v.bsdLost(&o, device, c)
		if bad := c.counters["crc_errs"]; bad >= fewLost && float64(bad)/float64(bad+c.received()) >= lossHurts {
			o.add(Finding{
				Severity: Warning, Subject: device, core: -1, weight: float64(bad), kind: "damage",
				Says:     fmt.Sprintf("%s of the frames that %s has received since the start were damaged: its cable, its transceiver or the other port", percent(float64(bad)/float64(bad+c.received())), bsdName(device)),
				Evidence: []string{fmt.Sprintf("dev.%s.mac_stats.crc_errs = %s, frames without damage: %s", device, units.Thousands(int(bad)), units.Thousands(int(c.received())))},
				Remedies: []Remedy{{Command: "ifconfig -v " + bsdName(device), Text: "see the speed and, of a transceiver, the light; change the cable, then try another port"}},
				Expect:   "the counter no longer grows",
			})
		}
	}
	if !counted {
		o.lacks(v, "sysctls.dev.*.mac_stats")
	}
	return o
}

func (v *view) bsdLost(o *outcome, device string, c *bsdCard) {
	lost, share := c.lost()
	if lost < fewLost || share < lossHurts {
		return
	}
	f := Finding{
		Severity: Warning, Subject: device, core: -1, weight: share,
		Says:     fmt.Sprintf("%s has lost %s of its packets since the start: its ring had no room", bsdName(device), percent(share)),
		Evidence: []string{fmt.Sprintf("dev.%s.mac_stats: %s missed, %s received", device, units.Thousands(int(lost)), units.Thousands(int(c.received())))},
		Remedies: []Remedy{
			{Command: "top -HSP", Text: "see under load whether a core is full of the card's interrupts or of netisr: then a longer ring only adds delay"},
			{Command: "netstat -m", Text: "see whether mbufs were denied or delayed (kern.ipc.nmbclusters)"},
			{Command: fmt.Sprintf("echo 'dev.%s.iflib.override_nrxds=\"4096\"' >> /boot/loader.conf.local", device), Text: "if neither: a longer ring for bursts; needs a reboot"},
		},
		Expect: "the counter no longer grows; two readings some time apart tell whether it does already",
	}
	if strings.HasPrefix(device, "igc.") {
		f.Remedies = append(f.Remedies, Remedy{Command: "pciconf -lvc " + bsdName(device), Text: "see ASPM and L1 substates: an I225 or I226 whose slot sleeps in L1.2 loses packets while it wakes. Switch ASPM, or its L1 substates, off for that slot in the firmware; newer drivers clear the bit themselves"})
	}
	if c.deaf() {
		f.weight, f.bites = 1, true
		f.Says = fmt.Sprintf("the driver of %s takes nothing of what its hardware receives: %s of the frames were lost, and no interrupt comes", bsdName(device), percent(share))
		f.Evidence = append(f.Evidence, fmt.Sprintf("rings of dev.%s.iflib: nothing taken out (cidx 0)", device))
		f.Remedies = []Remedy{
			{Command: fmt.Sprintf("echo 'dev.%s.iflib.disable_msix=\"1\"' >> /boot/loader.conf.local", device), Text: "try it without MSI-X: the card's interrupts do not arrive; needs a reboot"},
			{Command: "bectl list", Text: "if that does not help, boot the release before the upgrade, and report it: it is the driver"},
		}
		f.Expect = "the card receives"
	}
	o.add(f)
}

// oneInterrupt looks for cards of which one queue has nearly all interrupts, and which have lost
// packets: PPPoE comes by one queue, whatever the card does. The stack can spread it.
func (v *view) oneInterrupt(o *outcome) (counted bool) {
	cards := v.bsdCards()
	for _, device := range sortedKeys(cards) {
		c := cards[device]
		if len(c.interrupts) > 0 {
			counted = true
		}
		var sum, most float64
		at := 0
		for _, q := range sortedKeys(c.interrupts) {
			sum += c.interrupts[q]
			if c.interrupts[q] > most {
				at, most = q, c.interrupts[q]
			}
		}
		lost, share := c.lost()
		if len(c.interrupts) < 2 || sum < few || most/sum < streamed || lost < fewLost || share < lossHurts {
			continue
		}
		f := Finding{
			Severity: Warning, Subject: device, core: -1, weight: share, bites: true,
			Says: fmt.Sprintf("nearly all interrupts of %s (%s) are those of queue %d, and it has lost %s of its packets: one core receives them, as with PPPoE", bsdName(device), percent(most/sum), at, percent(share)),
			Evidence: []string{
				fmt.Sprintf("dev.%s.queue_rx_%d.rx_irq = %s of %s", device, at, units.Thousands(int(most)), units.Thousands(int(sum))),
				fmt.Sprintf("net.isr.dispatch = %s, net.isr.maxthreads = %s, hw.ncpu = %s", cmp.Or(v.Sysctls["net.isr.dispatch"], "not read"), cmp.Or(v.Sysctls["net.isr.maxthreads"], "not read"), cmp.Or(v.Sysctls["hw.ncpu"], "not read")),
			},
			Expect: "the core that receives only hands over, and others do the work",
		}
		if v.Sysctls["net.isr.dispatch"] == "deferred" {
			f.Remedies = []Remedy{{Command: "netstat -Q", Text: "net.isr.dispatch=deferred is set already: see whether one thread has all packets (net.isr.maxthreads=-1 at boot), and whether its queue drops (QDrops)"}}
		} else {
			f.Remedies = []Remedy{
				{Command: "sysctl net.isr.dispatch=deferred", Text: "the stack hands packets to a thread for each core, by their addresses inside PPPoE"},
				moreNetisr,
			}
		}
		o.add(f)
	}
	return counted
}

// bsdName returns an interface's name: igb0 for the device igb.0.
func bsdName(device string) string { return strings.Replace(device, ".", "", 1) }
