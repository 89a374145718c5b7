package doctor

import (
	"slices"

	"weir/internal/pattern"
)

// logRules are what Linux and FreeBSD say when they lose packets or time. The first that fits counts: what one
// driver says stands before what many say in their own words.
var logRules = slices.Concat(namedLogRules, cardLogRules, stackLogRules)

// silentCard is what helps where a card, or its firmware, stops and nothing tells why.
var silentCard = Remedy{Text: "one at a time: the card's firmware and its driver from one release (newer, or the one before); the board's firmware (BIOS); without power saving of the slot (pcie_aspm=off pcie_port_pm=off among the kernel's parameters) and of the card; heat; another slot or card"}

// usbRemedies are what helps a card whose USB port fails.
var usbRemedies = []Remedy{
	{Text: "another port, without a hub, and another cable or supply: the card gets too little power, or its line is bad"},
	{Command: "cat /sys/module/usbcore/parameters/autosuspend", Text: "let it not sleep (usbcore.autosuspend=-1 among the kernel's parameters; udev's power/control=on for the card)"},
	{Text: "then its driver: the maker's release in place of the kernel's (r8152), or this in place of a general one (cdc_ncm, cdc_ether); a rate that the controller keeps up with"},
}

// noneOnUSB reports whether no card is on USB, as far as is known: then it is another device.
func (v *view) noneOnUSB() bool {
	return !slices.ContainsFunc(v.Interfaces, func(i Interface) bool { return i.USB > 0 || usbDriver.MatchString(i.Driver) })
}

// usbDriver matches drivers of cards on USB.
var usbDriver = pattern.New(`^(?:r815\d|ax88179_178a|asix|cdc_ncm|cdc_ether|cdc_mbim|qmi_wwan|smsc\d+xx|lan78xx|aqc111|rndis_host|dm9601)$`)

// cardLogRules are families of what drivers say of their card. Each driver has words of its own; the families are
// the words that they share.
var cardLogRules = []logRule{
	{words: []string{"alicious", "driver issue detected", "imeout", "imed out", "hang", "hung", "stuck", "stall", "ockup", "wasn't completed", "is not a head"},
		form:  pattern.New(deviceSays + `(?:(?i:.*\b(?:tx|transmit|xmit|txq|tdr)\b.*(?:time-?out|timed[- ]?out|\bhang|hung|stuck|stall|lock-?up|wasn't completed on time|driver issue detected)|.*malicious driver detection|\S*id \d+ is not a head))`),
		check: "HANG-1", kind: "send", says: "%s stopped sending", expect: "the card sends without a pause",
		remedies: []Remedy{
			{Command: "ethtool -K %s tso off gso off", Text: "without segmentation by the card first (FreeBSD: ifconfig %s -tso)"}, silentCard,
		}},
	{words: []string{"status -", "may have been dropped", "egister", "EPROTO"},
		form:  pattern.New(deviceSays + `(?:(?:Stop submitting intr, status|[TR]x status|intr status|[Ff]ailed to (?:read|write|get|set).*(?:reg|stat).*)(?: |: |=)*-(?:19|32|71|75|108|110)\b|kevent \d+ may have been dropped)`),
		check: "HANG-1", kind: "usb", least: 2, says: "transfers between %s and its USB controller fail", expect: "no further message",
		remedies: usbRemedies},
	{words: []string{"USB device number"}, form: pattern.New(`^usb (\S+): reset \S+ USB device number`), check: "HANG-1", kind: "usb", least: 3, mild: (*view).noneOnUSB,
		says: "a device at USB port %s is reset again and again", expect: "no further message", remedies: usbRemedies},
	{words: []string{"irmware", "icrocode", "SYS_ASSERT", "dminq", "dminQ", "ealth", "restart was requested", "Message ", "mbox", "mailbox", "command", "fw_"},
		form:  pattern.New(deviceSays + `(?:(?i:.*(?:firmware|microcode|\bfw\b).*(?:crash|assert|sw error|fatal|hang|hung|not respond|unrespons|died|stopped|recover)|hardware restart was requested|.*(?:admin ?q|mailbox|mbox|message [0-9a-f]+|command|cmd)\b.*(?:time-?out|timed out|no response)|.*health.*(?:compromised|fatal|unhealthy)))`),
		check: "HANG-1", kind: "firmware", says: "the firmware of %s crashed, or does not answer", expect: "no further message",
		remedies: []Remedy{{Command: "ethtool -i %s", Text: "see driver and firmware: " + silentCard.Text}}},
	{words: []string{"nobody cared", "Disabling IRQ"}, form: pattern.New(`irq \d+: nobody cared|Disabling IRQ #\d+`), check: "HANG-1", kind: "irq",
		says: "the kernel switched an interrupt off that no driver wanted (\"nobody cared\"): cards on that line stand still, or are asked only now and then", expect: "no further message",
		remedies: []Remedy{{Command: "cat /proc/interrupts", Text: "see which devices share that number: give the card interrupts of its own (MSI; not pci=nomsi), or unload the other's driver; then the board's firmware; irqpoll among the kernel's parameters only helps for a while"}}},
	{words: []string{"DMAR", "IO_PAGE_FAULT", "SMMU", "smmu"}, form: pattern.New(`DMAR: \[(?:INTR|DMA)|IO_PAGE_FAULT|arm-smmu.*(?:[Uu]nhandled|context fault)`), check: "HANG-1", kind: "dma",
		says: "the IOMMU refused a device's access to memory", expect: "no further message",
		remedies: []Remedy{{Command: "cat /proc/cmdline", Text: "the number of the slot is named there (lspci): try iommu=pt, then intel_iommu=off or amd_iommu=off; its driver or the board's firmware is at fault"}}},
	{words: []string{"overheat", "over heat", "igh temperature", "emperature warning", "ver-temp"}, form: pattern.New(deviceSays + `(?:(?i:.*(?:overheat|over heat|over-temp|high temperature|temperature warning)))`), check: "THR-1", kind: "card",
		says: "%s became too hot, and slowed down or stopped", expect: "no further message",
		remedies: []Remedy{{Command: "sensors", Text: "air for the card: a fan, a free slot beside it, a heat sink; transceivers for copper at 10 Gbit/s are the hottest"}}},
	{words: []string{"AER: ", "PCIe Bus Error"}, form: pattern.New(`PCIe Bus Error: severity=|AER: (?:Multiple )?(?:Corrected|Uncorrect)`), check: "PCI-2", least: 2,
		says: "transfers of a slot were damaged, and repeated (\"PCIe Bus Error\")", expect: "no further message",
		remedies: []Remedy{
			{Command: "lspci -tv", Text: "the slot is named there: seat the card anew, clean its contacts, then another slot, riser or card"},
			{Text: "keep the slot awake (pcie_aspm=off among the kernel's parameters), or run it one generation slower (the board's firmware); pci=noaer only hides it"},
		}},
	{words: []string{"not sufficient for optimal", "nsufficient power", "nsufficient PCI"}, form: pattern.New(deviceSays + `(?:.*(?:not sufficient for optimal|[Ii]nsufficient (?:power|PCI))|PCI-Express bandwidth available for this card is not sufficient)`), check: "PCI-1", kind: "said",
		says: "the slot of %s gives it less than it needs", expect: "the card's full rate",
		remedies: []Remedy{{Command: "lspci -vv", Text: "compare LnkSta with LnkCap: a slot with more lanes or a newer generation (the board's manual; its firmware may split or slow slots)"}}},
	{words: []string{"lloc", "out of buffers", "queeze, dropping", "refill", "RXBUF"},
		form:  pattern.New(deviceSays + `(?:(?i:(?:.*\b(?:rx|receive|skb|buffers?|refill)\b.*(?:alloc\w*.*fail|fail\w*.*alloc)|.*(?:fail\w*|can'?t|unable to|could ?n[o']t) (?:to )?(?:re)?(?:alloc\w*|fill|refill).*\b(?:rx|receive|skb|buffers?|pages?|ring)\b|.*out of (?:rx )?buffers|.*memory squeeze, dropping|.*no[_ ]?rx[_ ]?bu?f)))`),
		check: "MEM-1", kind: "buffers", says: "%s got no memory for received packets", expect: "no further message",
		remedies: []Remedy{
			{Command: "sysctl vm.min_free_kbytes", Text: "set it to four times as much, at most a twentieth of the memory: the kernel then keeps more free for what cannot wait"},
			{Text: "or let the card need less at a time: a shorter ring (ethtool -G %s rx …), fewer queues (ethtool -L), the ordinary MTU in place of jumbo frames, no hardware LRO"},
		}},
	{words: []string{"verflow", "verrun", "ring full", "FIFO", "ifo full"}, form: pattern.New(deviceSays + `(?:(?i:.*\b(?:rx|receive|rxfifo|rx-fifo|fifo|swba|beacon)\b.*(?:overflow|overrun|\bfull)))`), check: "RING-1", kind: "said", least: 2,
		says: "%s had no room for what it received", expect: "no further message",
		remedies: []Remedy{{Command: "ethtool -g %s; ethtool -a %s", Text: "a longer ring, and pause frames (ethtool -A %s autoneg on rx on tx on), if it can; then the core that serves it: its load, its clock and its sleep (weir affinity)"}}},
	{words: []string{"unsupported SFP", "nsupported module", "ransmit fault", "module fault", "tx_fault", "TX_FAULT", "EEPROM"},
		form:  pattern.New(deviceSays + `(?:(?i:.*(?:unsupported (?:sfp|module|qsfp)|module transmit fault|tx[_ ]fault|module fault|sfp.*eeprom.*(?:fail|bad|inval))))`),
		check: "ERR-1", kind: "module", says: "%s does not take its transceiver", expect: "the link comes up, and stays",
		remedies: []Remedy{{Command: "ethtool -m %s", Text: "another transceiver or cable (DAC), coded for this maker's cards; some drivers allow others (ixgbe allow_unsupported_sfp=1); set the speed at both ends; a newer kernel knows more modules (quirks)"}}},
	{words: []string{"ink down", "ink Down", "ink is ", "definitely down", "ost carrier", "stopped DISTRIBUTING", "arrier lost", "arrier off"},
		form:  pattern.New(`([\w.][\w.@-]*): (?:NIC )?(?:\w+ )?[Ll]ink (?:is )?[Dd]own|link status definitely down for interface ([\w.@-]+)|([\w.][\w.@-]*): (?:[Ll]ost carrier|[Cc]arrier (?:lost|off)|Interface stopped DISTRIBUTING)`),
		check: "ERR-1", kind: "flap", least: 3, says: linkDown.says, expect: linkDown.expect, remedies: linkDown.remedies},
	{words: []string{"firmware load for", "o load firmware", "oading firmware"}, form: pattern.New(`([\w.:-]+): (?:Direct firmware load for|[Uu]nable to load firmware|[Ff]ailed to load firmware|error .*loading firmware)(?: patch)?:? "?(?:rtl_nic|tigon|bnx2|cxgb|mellanox|netronome|qed|intel/ice|aquantia|ath1|brcm|mediatek|rtlwifi|rtw8|mrvl|nxp)`), check: "DOC-1", kind: "firmware",
		says: "%s runs without its firmware, which was not found", expect: "all that the card can do",
		remedies: []Remedy{{Command: "ls /lib/firmware", Text: "install the package with firmware (linux-firmware; Debian: firmware-realtek, firmware-misc-nonfree and others), and load the driver anew"}}},
}

// stackLogRules are families of what the stack says.
var stackLogRules = []logRule{
	{words: []string{"over-mtu packet"}, form: pattern.New(deviceSays + `(?:dropped over-mtu packet)`), check: "PATH-1", kind: "wide",
		says: "%s dropped packets that are larger than its MTU (\"dropped over-mtu packet\")", expect: "no further message",
		remedies: []Remedy{{Command: "ip -d link show", Text: "one MTU on all ports of that bridge (ip link set dev %s mtu …); if they are equal, the card merges what is too large to be forwarded: ethtool -K … gro off lro off on the port that receives"}}},
	{words: []string{"suspect GRO"}, form: pattern.New(deviceSays + `(?:Driver has suspect GRO)`), check: "OFF-1", kind: "suspect",
		says: "what %s merges is of another size than TCP sent it (\"suspect GRO implementation\"): TCP slows down", expect: "TCP's full rate",
		remedies: []Remedy{{Command: "ethtool -K %s gro off lro off", Text: "without merging; a newer driver is the lasting cure (a tunnel with another MTU than its card says the same)"}}},
	{words: []string{"csum failure"}, form: pattern.New(deviceSays + `(?:hw csum failure)`), check: "SUM-1", kind: "card",
		says: "%s reports wrong sums of what it receives (\"hw csum failure\")", expect: "no further message",
		remedies: []Remedy{{Command: "ethtool -K %s rx off", Text: "let the kernel check: the sums of the card are wrong for some packets (VLANs, tunnels, padding); a newer driver is the lasting cure"}}},
	{words: []string{"bad_offload", "caps=(", "bad gso"}, form: pattern.New(`skb_warn_bad_offload|^([\w.@-]+): caps=\(0x|bad gso: type`), check: "PATH-2", kind: "offload", least: 1,
		says: "a card was given packets to cut that it does not know how to cut (\"bad offload\")", expect: "no further message",
		remedies: []Remedy{{Command: "ethtool -K %s tso off gso off sg off tx off", Text: "without segmentation and checksums by the card, or without merging where the packets come in (gro off, lro off): tunnels and bridges hand over what was merged"}}},
	{words: []string{"bucket table overflow"}, form: pattern.New(`time wait bucket table overflow`), check: "SOCK-2", kind: "timewait",
		says: "the table of closed connections was full (\"time wait bucket table overflow\")", expect: "no further message",
		remedies: []Remedy{{Command: "sysctl net.ipv4.tcp_max_tw_buckets", Text: "set it to twice as much; or keep connections open (keep-alive), so that fewer are closed; net.ipv4.tcp_tw_reuse=1 for this box's own"}}},
	{words: []string{"Listen queue overflow"}, form: pattern.New(`sonewconn: .*Listen queue overflow`), check: "SOCK-2", kind: "full",
		says: "a listening socket's queue was full (\"Listen queue overflow\")", expect: "no further message",
		remedies: []Remedy{{Command: "netstat -Lan", Text: "see which: its program accepts too slowly, or asks for a short queue (kern.ipc.soacceptqueue, and the program's own backlog)"}}},
	{words: []string{"dropping packet"}, form: pattern.New(`nf_ct_(\w+): dropping packet`), check: "CT-1", kind: "helper",
		says: "a helper of connection tracking (%s) drops packets that it does not understand", expect: "no further message",
		remedies: []Remedy{{Command: "modprobe -r nf_nat_%s nf_conntrack_%s", Text: "without the helper (the \"ALG\" of routers): today's programs do without; or no rule that assigns it"}}},
}

// otherDevice matches messages of what is no network card. Their drivers use the same words.
var otherDevice = pattern.New(`^(?:Bluetooth|bluetooth|ata\d|sd |scsi|nvme|amdgpu|i915|xe |nouveau|radeon|\[?drm|mmc|i2c|spi|uas|usb-storage|xhci|ehci|snd|soc|tpm|ipmi|mei|EXT4|XFS|BTRFS|md|audit|ACPI|hub |INFO: task|systemd|ahci|mpt\dsas|megaraid|hpsa|aacraid|dwc2|rtc|thermal|qla|lpfc|rtsx|btusb|hid|ucsi|typec|thunderbolt|psmouse|cros|ast |nvidia|NVRM|virtio_blk|virtio_scsi|ceph|libceph|nfs|NFS|CIFS)`)

// linkDown is what a link that goes down again and again means.
var linkDown = logRule{
	says: "the link of %s goes down again and again", expect: "the link stays up",
	remedies: []Remedy{{Text: "if somebody set the card up anew at those times (a program at XDP, ethtool, ip link, a restart), that was it. Else: the cable or transceiver of %s first, then its other end; EEE off at both (Linux: ethtool --set-eee %s eee off); a fixed power-saving of the port"},
		{Text: "if %s is on USB: let it not sleep (usbcore.autosuspend=-1 among the kernel's parameters), and give it a port and a supply of its own"}},
}
