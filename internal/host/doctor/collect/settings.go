package collect

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/vishvananda/netlink"

	"weir/internal/host/doctor"
	"weir/internal/host/netif"
)

func sortIRQs(irqs []doctor.IRQ) {
	slices.SortFunc(irqs, func(a, b doctor.IRQ) int { return cmp.Compare(a.Number, b.Number) })
}

// settings reads a device's ethtool settings. Virtual devices have few, which is not
// noted as missing.
func (r *reader) settings(n *doctor.Interface) {
	e := r.devices.cards
	read := func(what string, err error) bool {
		if err != nil && n.Kind == string(netif.Physical) {
			r.lacks("interfaces."+n.Name+"."+what, err)
		}
		return err == nil
	}
	n.Driver = netif.Driver(n.Name)
	if features, err := e.Features(n.Name); read("features", err) {
		n.Features = features
	}
	if c, err := e.GetChannels(n.Name); read("channels", err) {
		n.Channels = &doctor.Channels{Combined: int(c.CombinedCount), MaxCombined: int(c.MaxCombined),
			Rx: int(c.RxCount), MaxRx: int(c.MaxRx), Tx: int(c.TxCount), MaxTx: int(c.MaxTx)}
	}
	if g, err := e.GetRing(n.Name); read("rings", err) {
		n.Rings = &doctor.Rings{Rx: int(g.RxPending), MaxRx: int(g.RxMaxPending), Tx: int(g.TxPending), MaxTx: int(g.TxMaxPending)}
	}
	if p, err := e.GetPause(n.Name); read("pause", err) {
		n.Pause = &doctor.Pause{Autoneg: p.Autoneg != 0, Rx: p.RxPause != 0, Tx: p.TxPause != 0}
	}
	if c, err := e.GetCoalesce(n.Name); read("coalesce", err) {
		n.Coalesce = &doctor.Coalesce{Adaptive: c.UseAdaptiveRxCoalesce != 0, RxUsecs: int(c.RxCoalesceUsecs), RxFrames: int(c.RxMaxCoalescedFrames)}
	}
	if enabled, active, err := e.EEE(n.Name); read("eee", err) {
		n.EEE = &doctor.EEE{Enabled: enabled, Active: active}
	}
	if l, err := e.Link(n.Name); read("mbit", err) {
		n.Mbit, n.MaxMbit, n.Duplex = l.Mbit, l.MaxMbit, l.Duplex
		if l.MaxMbit > 0 {
			n.Offers = &doctor.Offers{Autoneg: l.Autoneg, Mbit: l.AdvertisedMbit, Partner: l.PartnerMbit, Common: l.CommonMbit, Reach: l.ReachMbit}
		}
		if l.Mbit == 0 {
			read("mbit", errors.New("no link, or the driver does not say"))
		}
	}
	r.spreading(n, read)
}

// spreading reads how received flows are spread over queues.
func (r *reader) spreading(n *doctor.Interface, read func(string, error) bool) {
	e, hash := r.devices.cards, map[string]string{}
	for _, protocol := range []string{"tcp4", "udp4", "tcp6", "udp6"} {
		fields, err := e.Hash(n.Name, protocol)
		if !read("rss", err) {
			return
		}
		hash[protocol] = fields
	}
	n.RSS = &doctor.RSS{Hash: hash}
	queues, err := e.Indirection(n.Name)
	if err != nil {
		return
	}
	for _, q := range queues {
		n.RSS.Indirection = append(n.RSS.Indirection, int(q))
	}
	if on, err := e.Symmetric(n.Name); err == nil {
		n.RSS.Symmetric = &on
	}
}

// disciplines adds the queueing disciplines, with their rates if they have one.
func (d *devices) disciplines(c *doctor.Counters, names map[int]string) error {
	all, err := d.netlink.QdiscList(nil)
	if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
		return err
	}
	c.Qdiscs = []doctor.Qdisc{}
	for _, q := range all {
		a := q.Attrs()
		one := doctor.Qdisc{Interface: names[a.LinkIndex], Kind: q.Type(), Handle: handle(a.Handle), Parent: handle(a.Parent)}
		if tbf, ok := q.(*netlink.Tbf); ok {
			one.RateBits = tbf.Rate * 8
		}
		if s := a.Statistics; s != nil {
			if s.Basic != nil {
				one.Bytes, one.Packets = s.Basic.Bytes, uint64(s.Basic.Packets)
			}
			if s.Queue != nil {
				one.Drops, one.Overlimits = uint64(s.Queue.Drops), uint64(s.Queue.Overlimits)
				one.Requeues, one.Backlog = uint64(s.Queue.Requeues), uint64(s.Queue.Backlog)
			}
		}
		c.Qdiscs = append(c.Qdiscs, one)
	}
	return d.shaperRates(c.Qdiscs, names)
}

// handle writes a number as tc does. The two special parents have names.
func handle(h uint32) string {
	switch h {
	case netlink.HANDLE_ROOT:
		return "root"
	case netlink.HANDLE_INGRESS:
		return "ingress"
	}
	return fmt.Sprintf("%x:%x", h>>16, h&0xffff)
}
