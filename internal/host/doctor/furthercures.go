package doctor

import (
	"cmp"
	"strings"
)

// furtherCures are what else has ended such a loss elsewhere, where the finding's own remedies do not: a cause that a
// counter shows has several cures, and no counter tells which. By check, and kind where that matters; %s is the
// interface. They come last, as one remedy, in the order in which they are worth trying.
var furtherCures = map[string]string{
	"HANG-1/send":  "without pause frames (ethtool -A %s rx off tx off), without EEE (ethtool --set-eee %s eee off), without checksums by the card (ethtool -K %s tx off rx off); another release of its driver, its firmware and the board's (BIOS); one queue, or interrupts of another kind; without deep sleep of the cores (intel_idle.max_cstate=1), iommu=pt; in a guest: another model of card",
	"RING-1":       "without deep sleep of the core and at its full clock (cpupower frequency-set -g performance; intel_idle.max_cstate=1); more packets per round (net.core.netdev_budget=600, netdev_budget_usecs=8000); more queues, each on a core of its own; pause frames on or off at both ends; another release of the driver, or of the card's firmware; in a guest: the ring of its card on the host, too",
	"MEM-1":        "a shorter ring, fewer queues, the ordinary MTU; more memory, or less for caches (vm.vfs_cache_pressure); another release of the driver",
	"ERR-1/damage": "without EEE (ethtool --set-eee %s eee off); a slower link (ethtool -s %s advertise …); both ends negotiate; the delays of the board's device tree (phy-mode rgmii-id); the MTU, where frames are too long; another release of the driver",
	"ERR-1/flap":   "without EEE (ethtool --set-eee %s eee off); a slower link (ethtool -s %s advertise …), or the same fixed one at both ends; the slot awake (pcie_aspm=off); another release of its driver and firmware; another supply",
	"ERR-1/send":   "without segmentation and checksums by the card (ethtool -K %s tso off gso off tx off); another release of its driver and firmware",
	"QDISC-1":      "a longer queue (ip link set dev %s txqueuelen 1000) and send ring (ethtool -G %s tx …); another discipline (tc qdisc replace dev %s root fq_codel, or pfifo limit 1000); more send queues",
	"SOCK-1":       "raise both net.core.rmem_max and net.core.rmem_default, and what the program asks for (SO_RCVBUF); more threads or sockets (SO_REUSEPORT); net.core.netdev_max_backlog; net.ipv4.udp_mem",
	"SOCK-2":       "net.core.somaxconn and the program's own backlog together; net.ipv4.tcp_max_syn_backlog; more workers that accept; net.ipv4.tcp_abort_on_overflow=0; keep connections open",
	"NEIGH-1":      "smaller networks, or a router between them; entries that are kept shorter (gc_stale_time, gc_interval); in containers: each network namespace has a table of its own, and the host's limits count",
	"CT-1":         "shorter timeouts (nf_conntrack_tcp_timeout_established=7440, …_close_wait, …_time_wait, nf_conntrack_udp_timeout); more buckets (nf_conntrack_buckets: a quarter of the limit, or as many); no tracking for what needs none (notrack in raw or prerouting); nf_conntrack_tcp_be_liberal=1 where the two ways differ",
	"SQZ-1":        "more packets per round (net.core.netdev_budget=600, netdev_budget_usecs=8000); RPS over more cores, or queues of the card; GRO on",
	"PATH-1":       "one MTU on all ports and hosts of the network, or the tunnel's MTU lowered by its headers (WireGuard 60 or 80 bytes, VXLAN 50, GRE 24, IPsec up to 80, PPPoE 8); let ICMP \"fragmentation needed\" and \"packet too big\" through; net.ipv4.tcp_mtu_probing=1",
	"PATH-2":       "one at a time: ethtool -K %s tso off gso off; gro off; rx off tx off; tx-udp_tnl-segmentation off for tunnels; without EEE; pause frames; a slower link; another release of the driver. Compare nstat TcpRetransSegs before and after",
	"IRQ-1":        "more queues (ethtool -L …); RPS where interrupts cannot move",
	"CPU-2":        "flow offload for established connections (a flowtable of nftables, with flags offload where the card or switch chip can; OpenWrt: hardware flow offloading); fewer rules, and nothing that counts or shapes each packet; a faster processor",
	"RPS-1":        "flow offload for established connections (a flowtable of nftables; OpenWrt: hardware flow offloading); more queues from below (the hypervisor's queues for the card, the driver's parameter); interrupts and RPS on different cores; a card with several queues",
	"TUN-1":        "the kernel's way in place of a program's (WireGuard's module, OpenVPN's DCO); a cipher that the processor helps with (AES-GCM with AES-NI, else ChaCha20); several tunnels; larger packets (MTU, GRO); parallel work (IPsec: pcrypt)",
	"SHAPE-1":      "a burst and quantum in proportion to the rate; a rate a little lower; a simpler discipline (fq_codel in place of cake); interrupts, RPS and the shaper on different cores; hardware acceleration (flow offload) passes by a shaper: off, or no shaper",
	"LINK-1":       "negotiation on at both ends; another cable with all four pairs, and the other port; without EEE; another release of its driver and firmware; a power-saving that lowers the speed (SmartSpeed, WoL) off",
	"FC-1":         "find who sends them: a host behind the switch that is slower, hangs or sleeps; pause frames off at both ends (ethtool -A %s rx off tx off)",
	"WIFI-1":       "another channel, a narrower one (20 or 40 MHz), less far; without power saving (iw dev %s set power_save off); another release of firmware and driver; a cable",
	"VIRT-2":       "a larger size of machine; fewer and larger packets (MTU 9001, GRO); connections spread over more machines",
	"OFF-1":        "gro off, lro off, and rx-gro-hw off, at each card under the bridge or tunnel",
	"OFF-2":        "gro on, tso on, sg on, at both ends of a veth and in the guest, too",
	"STORM-1":      "storm control at the switch; spanning tree on all bridges; multicast_snooping and a querier (or multicast_snooping=0 where none exists)",
	"MEM-2":        "a smaller largest buffer (net.ipv4.tcp_rmem, the third figure), or a larger limit (net.ipv4.tcp_mem); fewer orphans (net.ipv4.tcp_max_orphans, tcp_fin_timeout)",
	"IPSEC-2":      "a lower MTU and MSS; without the card's encryption (ethtool -K %s esp-hw-offload off); a wider replay-window; xfrm4_gc_thresh on old kernels",
	"SUM-1":        "ethtool -K %s rx off tx off, and tx-udp_tnl-csum-segmentation off for tunnels, at sender and receiver",
	"BSD-3":        "net.isr.dispatch=deferred with net.isr.maxthreads=-1 and net.isr.bindthreads=1 (PPPoE); the cards' queues (hw.…num_queues, dev.….iflib.override_nrxqs); net.inet.rss.enabled where the system has it",
	"BSD-4":        "longer rings (hw.…rxd, dev.….iflib.override_nrxds); hardware offloads off (ifconfig -tso -lro -rxcsum -txcsum); the slot's sleep off (ASPM); flow control off (dev.….fc=0); another release of the driver",
}

// addFurther adds to each finding that hurts what else has helped elsewhere.
func (r *Report) addFurther() {
	for i := range r.Findings {
		f := &r.Findings[i]
		text := cmp.Or(furtherCures[f.Check+"/"+f.kind], furtherCures[f.Check])
		if f.Severity == Notice || f.Because != "" || f.relief || len(f.Remedies) == 0 || text == "" {
			continue
		}
		f.Remedies = append(f.Remedies, Remedy{Text: "if it stays, this has helped others: " + strings.ReplaceAll(text, "%s", cmp.Or(f.Subject, "…"))})
	}
}
