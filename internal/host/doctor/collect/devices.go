package collect

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weir/internal/host/cpulist"
	"weir/internal/host/doctor"
	"weir/internal/host/irqname"
	"weir/internal/host/netif"
	"weir/internal/host/proc"
	"weir/internal/host/tune/nic"
)

// devices reads interfaces by netlink and ethtool, both in the process's network
// namespace.
type devices struct {
	netlink *netlink.Handle
	cards   *nic.Cards
}

func openDevices() (*devices, error) {
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("open netlink: %w", err)
	}
	c, err := nic.Open()
	if err != nil {
		h.Close()
		return nil, err
	}
	return &devices{h, c}, nil
}

func (d *devices) close() {
	d.netlink.Close()
	d.cards.Close()
}

// count adds the counters of links, of their queues and of their queueing disciplines.
func (d *devices) count(r *reader, c *doctor.Counters) error {
	all, err := d.netlink.LinkList()
	if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
		return fmt.Errorf("list interfaces: %w", err)
	}
	c.Links, c.Statistics = map[string]doctor.Link{}, map[string]map[string]uint64{}
	names := map[int]string{}
	for _, l := range all {
		a, s := l.Attrs(), l.Attrs().Statistics
		names[a.Index] = a.Name
		if s == nil {
			continue
		}
		c.Links[a.Name] = doctor.Link{
			RxPackets: s.RxPackets, TxPackets: s.TxPackets, RxBytes: s.RxBytes, TxBytes: s.TxBytes,
			RxErrors: s.RxErrors, TxErrors: s.TxErrors, RxDropped: s.RxDropped, TxDropped: s.TxDropped,
			RxMissed: s.RxMissedErrors, RxFIFO: s.RxFifoErrors, CarrierChanges: r.carrierChanges(a.Name, a.Index),
			TxTimeouts: r.sendTimeouts(a.Name, a.Index),
		}
		if stats, err := d.cards.Stats(a.Name); err == nil {
			c.Statistics[a.Name] = stats
		} else {
			r.lacks("statistics."+a.Name, err)
		}
	}
	if err := d.disciplines(c, names); err != nil {
		r.lacks("qdiscs", err)
	}
	return nil
}

// interfaces reads the interfaces' settings.
func (r *reader) interfaces() error {
	links, err := netif.Links()
	if err != nil {
		return err
	}
	raw, err := r.devices.netlink.LinkList()
	if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
		return fmt.Errorf("list interfaces: %w", err)
	}
	attributes, names := map[int]netlink.Link{}, map[int]string{}
	for _, l := range raw {
		attributes[l.Attrs().Index] = l
		names[l.Attrs().Index] = l.Attrs().Name
	}
	r.snapshot.Interfaces = []doctor.Interface{}
	for i := range links {
		l := &links[i]
		known, ok := attributes[l.Index]
		if !ok {
			continue // it was removed meanwhile
		}
		n := newInterface(l, known, names)
		r.settings(&n)
		r.files(&n, l.Index)
		r.snapshot.Interfaces = append(r.snapshot.Interfaces, n)
	}
	r.bonds(links, attributes)
	r.placeSessions()
	return nil
}

// switchPort is the kernel's kind of a port of a switch chip (DSA). Its parent is the device that
// carries the chip's frames.
const switchPort = "dsa"

func newInterface(l *netif.Link, raw netlink.Link, names map[int]string) doctor.Interface {
	a := raw.Attrs()
	n := doctor.Interface{
		Name: l.Name, Kind: string(l.Kind), MTU: l.MTU, MAC: l.MAC.String(), Master: names[l.Master], Parent: names[l.Parent],
		Up:       l.Up && a.OperState != netlink.OperDown && a.OperState != netlink.OperLowerLayerDown && a.OperState != netlink.OperNotPresent,
		TxQueues: a.NumTxQueues, RxQueues: netif.Queues(l), External: external(raw), TxQueueLen: &a.TxQLen,
	}
	if raw.Type() == switchPort {
		n.Parent = names[a.ParentIndex]
	}
	for _, address := range l.Addresses {
		n.Addresses = append(n.Addresses, address.Prefix)
	}
	if a.Xdp != nil && a.Xdp.Attached {
		n.XDP = map[uint32]string{xdpDriver: "native", xdpGeneric: "generic", xdpHardware: "offloaded"}[a.Xdp.AttachMode]
		if n.XDP == "" {
			n.XDP = "native" // several modes at once
		}
	}
	return n
}

// external reports whether a tunnel's far ends come with each packet.
func external(l netlink.Link) bool {
	switch l := l.(type) {
	case *netlink.Vxlan:
		return l.FlowBased
	case *netlink.Geneve:
		return l.FlowBased
	case *netlink.Gretap:
		return l.FlowBased
	case *netlink.Gretun:
		return l.FlowBased
	case *netlink.Iptun:
		return l.FlowBased
	case *netlink.Ip6tnl:
		return l.FlowBased
	}
	return false
}

// XDP_ATTACHED_DRV, _SKB and _HW of linux/if_link.h.
const (
	xdpDriver   = 1
	xdpGeneric  = 2
	xdpHardware = 3
)

// bonds adds the members. Only their masters' indices tell them.
func (r *reader) bonds(links []netif.Link, raw map[int]netlink.Link) {
	for i := range links {
		b, ok := raw[links[i].Index].(*netlink.Bond)
		if !ok {
			continue
		}
		bond := &doctor.Bond{Mode: b.Mode.String(), Hash: b.XmitHashPolicy.String(), Members: []string{}}
		for k := range links {
			if links[k].Master == links[i].Index {
				bond.Members = append(bond.Members, links[k].Name)
				joined(bond, links[k].Name, raw[links[k].Index])
			}
		}
		for k := range r.snapshot.Interfaces {
			if n := &r.snapshot.Interfaces[k]; n.Name == links[i].Name {
				n.Bond = bond
			}
		}
	}
}

// joined notes the aggregate that a member joined; 0: none, or the bond does without LACP.
func joined(bond *doctor.Bond, name string, member netlink.Link) {
	if member == nil {
		return
	}
	if slave, ok := member.Attrs().Slave.(*netlink.BondSlave); ok && slave.AggregatorId > 0 {
		if bond.Aggregates == nil {
			bond.Aggregates = map[string]int{}
		}
		bond.Aggregates[name] = int(slave.AggregatorId)
	}
}

// files reads what only sysfs has. Its /sys/class/net belongs to the namespace in which
// it was mounted, which may not be the process's.
func (r *reader) files(n *doctor.Interface, index int) {
	dir := "class/net/" + n.Name + "/"
	if r.of(dir+"ifindex") != strconv.Itoa(index) || n.MAC != "" && r.of(dir+"address") != n.MAC {
		r.lacks("interfaces."+n.Name+".rps", errors.New("/sys is of another network namespace"))
		return
	}
	if text := r.of(dir + "threaded"); text != "" {
		on := text != "0"
		n.Threaded = &on
	}
	n.NAPI = r.napi(n.Name, index)
	n.RPS = r.masks(dir+"queues/rx-%d/rps_cpus", n.Name)
	n.XPS = r.masks(dir+"queues/tx-%d/xps_cpus", n.Name)
	if n.Kind != string(netif.Physical) || r.number(dir+"ifindex") != index {
		return // only the mounted /sys has the bus address
	}
	target, err := filepath.EvalSymlinks(r.sysFile(dir, "device"))
	if err != nil {
		return
	}
	r.below[n.Name] = filepath.Base(target)
	r.bus(n, strings.TrimPrefix(target, r.sys+"/"))
}

// of returns the contents of a file in the network namespace's sysfs.
func (r *reader) of(name string) string {
	text, err := readFile(filepath.Join(r.net, name))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(text)
}

// carrierChanges returns 0 if sysfs is another namespace's. Only the growth matters.
func (r *reader) carrierChanges(name string, index int) uint64 {
	if r.of("class/net/"+name+"/ifindex") != strconv.Itoa(index) {
		return 0
	}
	n, err := strconv.ParseUint(r.of("class/net/"+name+"/carrier_changes"), 10, 64)
	if err != nil {
		return 0 // the kernel does not count them
	}
	return n
}

// sendTimeouts sums those of a device's send queues, as carrierChanges does.
func (r *reader) sendTimeouts(name string, index int) (sum uint64) {
	if r.of("class/net/"+name+"/ifindex") != strconv.Itoa(index) {
		return 0
	}
	for q := 0; ; q++ {
		n, err := strconv.ParseUint(r.of(fmt.Sprintf("class/net/%s/queues/tx-%d/tx_timeout", name, q)), 10, 64)
		if err != nil {
			return sum
		}
		sum += n
	}
}

// busErrors reads what the hardware of the cards' slots corrected. Only the mounted sysfs
// has the bus; its cards may be another namespace's.
func (r *reader) busErrors(c *doctor.Counters) {
	c.Bus = map[string]map[string]uint64{}
	files, err := filepath.Glob(r.sysFile("class/net/*/device/aer_dev_correctable"))
	if err != nil {
		return // cannot happen: the pattern is sound
	}
	for _, file := range files {
		name := filepath.Base(filepath.Dir(filepath.Dir(file)))
		text, err := readFile(file)
		if err != nil || r.of("class/net/"+name+"/ifindex") != r.text("class/net/"+name+"/ifindex") {
			continue
		}
		kinds := map[string]uint64{}
		for line := range strings.Lines(text) {
			f := strings.Fields(line)
			if len(f) != 2 || strings.HasPrefix(f[0], "TOTAL") {
				continue
			}
			if n, err := strconv.ParseUint(f[1], 10, 64); err == nil {
				kinds[f[0]] = n
			}
		}
		c.Bus[name] = kinds
	}
}

// sleeps reports whether a slot may sleep between transfers; nil: unknown.
func (r *reader) sleeps(dir string) *bool {
	files, err := filepath.Glob(r.sysFile(dir, "link/l*_aspm"))
	if err != nil || len(files) == 0 {
		return nil
	}
	on := false
	for _, file := range files {
		text, err := readFile(file)
		on = on || err == nil && strings.TrimSpace(text) == "1"
	}
	return &on
}

// masks reads the mask of each queue.
func (r *reader) masks(pattern, device string) (lists []string) {
	for i := 0; ; i++ {
		text, err := readFile(filepath.Join(r.net, fmt.Sprintf(pattern, i)))
		if err != nil {
			return lists
		}
		cpus, err := cpulist.ParseMask(text)
		if err != nil {
			r.lacks("interfaces."+device+".rps", err)
			return nil
		}
		if lists == nil {
			lists = []string{}
		}
		lists = append(lists, cpulist.Format(cpus))
	}
}

// bus reads the card's bus address. That of a virtio device is its parent's.
func (r *reader) bus(n *doctor.Interface, dir string) {
	if r.text(dir+"/bInterfaceNumber") != "" { // an interface of a device on USB, which has the speed
		n.USB = r.number(filepath.Dir(dir) + "/speed")
	}
	if r.text(dir+"/numa_node") == "" {
		dir = filepath.Dir(dir)
	}
	if node, err := strconv.Atoi(r.text(dir + "/numa_node")); err == nil {
		n.Node = &node
	}
	vendor, device := strings.TrimPrefix(r.text(dir+"/vendor"), "0x"), strings.TrimPrefix(r.text(dir+"/device"), "0x")
	if vendor == "" || device == "" {
		return
	}
	n.PCI = &doctor.PCI{
		Address: filepath.Base(dir), ID: vendor + ":" + device,
		Speed: transfers(r.text(dir + "/current_link_speed")), MaxSpeed: transfers(r.text(dir + "/max_link_speed")),
		Width: r.number(dir + "/current_link_width"), MaxWidth: r.number(dir + "/max_link_width"), ASPM: r.sleeps(dir),
	}
}

// transfers reads "8.0 GT/s PCIe". It returns 0 for other text.
func transfers(text string) float64 {
	f := strings.Fields(text)
	if len(f) == 0 {
		return 0
	}
	gt, err := strconv.ParseFloat(f[0], 64)
	if err != nil {
		return 0
	}
	return gt
}

// interrupts lists the interrupts that sysfs, or their names, attribute to the
// interfaces.
func (r *reader) interrupts() {
	_, names, err := proc.Interrupts(r.proc)
	if err != nil {
		r.lacks("irqs", err)
		return
	}
	owners := r.owners()
	r.usbOwners(owners, names)
	irqs := []doctor.IRQ{}
	for number, name := range names {
		owner := owners[number]
		if owner == "" {
			owner = r.namedAfter(name)
		}
		if owner == "" {
			continue
		}
		irq := doctor.IRQ{Number: number, Name: name, Interface: owner}
		irq.Affinity = r.affinity(number, "smp_affinity_list")
		irq.Effective = r.affinity(number, "effective_affinity_list")
		irqs = append(irqs, irq)
	}
	sortIRQs(irqs)
	r.snapshot.IRQs = irqs
}

// usbBus finds the bus of a card on USB in its path below /sys/devices.
var usbBus = regexp.MustCompile(`^(.*)/usb(\d+)/`)

// usbOwners adds the interrupts of the USB controllers that network cards hang on: these
// bring the cards' packets. If several cards share one, the first counts. PCI lists a controller's
// interrupts; that of others is named after the bus ("xhci-hcd:usb4").
func (r *reader) usbOwners(owners map[int]string, names map[int]string) {
	for i := range r.snapshot.Interfaces {
		n := &r.snapshot.Interfaces[i]
		target, err := filepath.EvalSymlinks(r.sysFile("class/net", n.Name, "device"))
		if err != nil || n.Kind != string(netif.Physical) || r.of("class/net/"+n.Name+"/ifindex") != r.text("class/net/"+n.Name+"/ifindex") {
			continue
		}
		bus := usbBus.FindStringSubmatch(target + "/")
		if bus == nil {
			continue
		}
		own := map[int]bool{}
		if files, err := filepath.Glob(bus[1] + "/msi_irqs/*"); err == nil {
			for _, file := range files {
				if irq, err := strconv.Atoi(filepath.Base(file)); err == nil {
					own[irq] = true
				}
			}
		}
		for number, name := range names {
			if own[number] || strings.HasSuffix(name, ":usb"+bus[2]) {
				if owners[number] == "" {
					owners[number] = n.Name
				}
			}
		}
	}
}

// namedAfter returns the card that an interrupt is named after, "" for none.
func (r *reader) namedAfter(name string) (owner string) {
	for i := range r.snapshot.Interfaces {
		// Another namespace's card may have a veth's name.
		n := &r.snapshot.Interfaces[i]
		card := irqname.Card{Name: n.Name, Device: r.below[n.Name]}
		if n.Kind == string(netif.Physical) && card.Owns(name) {
			owner = n.Name
		}
	}
	return owner
}

func (r *reader) affinity(irq int, file string) string {
	text, err := readFile(r.procFile("irq", strconv.Itoa(irq), file))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(text)
}

// owners returns the interfaces of message-signalled interrupts, by the cards'
// directories.
func (r *reader) owners() map[int]string {
	all := map[int]string{}
	for i := range r.snapshot.Interfaces {
		n := &r.snapshot.Interfaces[i]
		if n.PCI == nil {
			continue
		}
		files, err := filepath.Glob(r.sysFile("bus/pci/devices", n.PCI.Address, "msi_irqs/*"))
		if err != nil {
			continue
		}
		for _, file := range files {
			if irq, err := strconv.Atoi(filepath.Base(file)); err == nil {
				all[irq] = n.Name
			}
		}
	}
	return all
}
