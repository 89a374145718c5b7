package collect

import (
	"encoding/binary"
	"syscall"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"weir/internal/host/doctor"
)

// cakeRate is TCA_CAKE_BASE_RATE64 (linux/pkt_sched.h): bytes per second, 0 if it does
// not shape.
const cakeRate = 2

// shaperRates adds the rates, which each discipline reports differently. HTB's rate is
// the sum of its topmost classes' ceilings. CAKE's is an option that the library does not
// know.
func (d *devices) shaperRates(all []doctor.Qdisc, names map[int]string) error {
	cakes, err := cakeRates()
	if err != nil {
		return err
	}
	for i := range all {
		q := &all[i]
		for index, name := range names {
			if name != q.Interface {
				continue
			}
			switch q.Kind {
			case "cake":
				q.RateBits = cakes[cake{index, q.Handle}]
			case "ingress", "clsact":
				q.Policers = d.policers(index)
			case "htb":
				if err := d.htbClasses(index, q); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// policers counts the filters at ingress that drop above a rate; nil: unknown. Filters of
// kinds that the library does not know are not among those it returns.
func (d *devices) policers(index int) *int {
	link, err := d.netlink.LinkByIndex(index)
	if err != nil {
		return nil
	}
	filters, err := d.netlink.FilterList(link, netlink.HANDLE_MIN_INGRESS)
	if err != nil {
		return nil
	}
	count := 0
	for _, filter := range filters {
		var actions []netlink.Action
		switch f := filter.(type) {
		case *netlink.U32:
			actions = f.Actions
			if f.Police != nil {
				count++
			}
		case *netlink.MatchAll:
			actions = f.Actions
		case *netlink.Flower:
			actions = f.Actions
		case *netlink.FwFilter:
			if f.Police != nil {
				count++
			}
		}
		for _, action := range actions {
			if _, polices := action.(*netlink.PoliceAction); polices {
				count++
			}
		}
	}
	return &count
}

// htbClasses reads the classes of an HTB. Its rate is the sum of the topmost ones'
// ceilings.
func (d *devices) htbClasses(index int, q *doctor.Qdisc) error {
	link, err := d.netlink.LinkByIndex(index)
	if err != nil {
		return err
	}
	classes, err := d.netlink.ClassList(link, 0)
	if err != nil {
		return err
	}
	for _, c := range classes {
		htb, ok := c.(*netlink.HtbClass)
		if !ok || handle(htb.Handle&0xffff0000) != q.Handle {
			continue
		}
		if htb.Parent == netlink.HANDLE_ROOT {
			q.RateBits += htb.Ceil * 8
		}
		one := doctor.Class{Handle: handle(htb.Handle), CeilingBits: htb.Ceil * 8}
		if st := htb.Statistics; st != nil && st.Basic != nil && st.Queue != nil {
			one.Bytes, one.Drops = st.Basic.Bytes, uint64(st.Queue.Drops)
		}
		q.Classes = append(q.Classes, one)
	}
	return nil
}

// cake identifies a CAKE discipline by its interface and handle.
type cake struct {
	index  int
	handle string
}

// cakeRates returns the rates of all CAKE disciplines, in bits per second.
func cakeRates() (map[cake]uint64, error) {
	request := nl.NewNetlinkRequest(unix.RTM_GETQDISC, unix.NLM_F_DUMP)
	request.AddData(&nl.TcMsg{Family: unix.AF_UNSPEC})
	messages, err := request.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWQDISC)
	if err != nil {
		return nil, err
	}
	rates := map[cake]uint64{}
	for _, m := range messages {
		head := nl.DeserializeTcMsg(m)
		attributes, err := nl.ParseRouteAttr(m[head.Len():])
		if err != nil {
			return nil, err
		}
		if rate := cakeRateOf(attributes); rate > 0 {
			rates[cake{int(head.Ifindex), handle(head.Handle)}] = 8 * rate
		}
	}
	return rates, nil
}

// cakeRateOf returns bytes per second; 0 for another discipline.
func cakeRateOf(attributes []syscall.NetlinkRouteAttr) uint64 {
	kind := ""
	for _, a := range attributes {
		switch a.Attr.Type {
		case nl.TCA_KIND:
			kind = string(a.Value)
		case nl.TCA_OPTIONS:
			options, err := nl.ParseRouteAttr(a.Value)
			if err != nil || kind != "cake\x00" {
				return 0
			}
			for _, option := range options {
				if option.Attr.Type == cakeRate && len(option.Value) >= 8 {
					return binary.NativeEndian.Uint64(option.Value)
				}
			}
		}
	}
	return 0
}
