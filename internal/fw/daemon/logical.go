package daemon

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"weir/internal/fw/dataplane"
	"weir/internal/host/netif"
)

// parentHook says how XDP treats a VLAN device's frames.
type parentHook struct {
	by  string // device whose XDP program handles them; "": TCX of the VLAN device does
	why string // why no XDP program handles them
}

// decidedFramesWait is how long TCX of a VLAN device still trusts XDP's decisions after
// XDP has ceased to take its frames. Frames that wait between the two (GRO, a core's
// backlog) would otherwise be judged again, half translated.
const decidedFramesWait = 50 * time.Millisecond

// updateLogicals updates the set of VLAN devices whose frames XDP handles. Devices that
// lose XDP are removed first, new ones are added last. TCX handles the frames in between.
func (b *box) updateLogicals(m *machine) error {
	wanted, before := b.chooseLogicals(m), b.dp.Logicals()
	kept := slices.DeleteFunc(slices.Clone(before), func(index int) bool {
		return !slices.Contains(wanted, index) && !m.isForeignLogical(index)
	})
	if err := b.setLogicals(kept); err != nil {
		return err
	}
	if len(kept) < len(before) {
		time.Sleep(decidedFramesWait)
	}
	if err := b.setVLANs(m); err != nil {
		return err
	}
	for _, index := range wanted {
		if !slices.Contains(kept, index) {
			kept = append(kept, index)
		}
	}
	if err := b.setLogicals(kept); err != nil {
		return err
	}
	return b.setVLANs(m) // some found no room
}

// isForeignLogical reports whether XDP takes tagged frames for an interface that is no
// VLAN device. Something else entered it, such as a benchmark.
func (m *machine) isForeignLogical(index int) bool {
	return slices.ContainsFunc(m.links, func(l netif.Link) bool { return l.Index == index && !isLogical(&l) })
}

// isLogical reports whether another interface carries a link's frames, and XDP may handle them there.
func isLogical(l *netif.Link) bool { return l.Kind == netif.VLAN || l.Kind == netif.PPPoE }

func (b *box) setVLANs(m *machine) error {
	for i := range m.links {
		l := &m.links[i]
		if _, ok := b.hooks[l.Index]; !ok || !isLogical(l) {
			continue
		}
		if err := b.setInterface(l); err != nil {
			return err
		}
	}
	return nil
}

func (b *box) setLogicals(indexes []int) error {
	left, err := b.dp.SetLogicals(indexes)
	if err != nil {
		return fmt.Errorf("update the VLAN devices: %w", err)
	}
	for _, index := range left {
		h := b.hooks[index]
		h.parent = parentHook{why: "there are too many tags or VLAN devices for XDP"}
		b.hooks[index] = h
	}
	return nil
}

// chooseLogicals chooses the VLAN devices whose frames XDP handles, and returns their
// indexes.
func (b *box) chooseLogicals(m *machine) []int {
	links := make(map[int]*netif.Link, len(m.links))
	for i := range m.links {
		links[m.links[i].Index] = &m.links[i]
	}
	var chosen []int
	for _, l := range links {
		h, ok := b.hooks[l.Index]
		if !ok || !isLogical(l) {
			continue
		}
		h.parent = b.parentHookOf(l, links)
		b.hooks[l.Index] = h
		if h.parent.by != "" {
			chosen = append(chosen, l.Index)
		}
	}
	slices.Sort(chosen)
	return chosen
}

// parentHookOf finds the device below a VLAN device whose XDP program can handle the VLAN
// device's frames. It can if the stack would deliver the frames to that VLAN device
// unchanged.
func (b *box) parentHookOf(l *netif.Link, links map[int]*netif.Link) parentHook {
	if !isLogical(l) {
		if b.hooks[l.Index].Hook == XDP {
			return parentHook{by: l.Name}
		}
		return parentHook{why: "TCX handles what comes in by " + l.Name}
	}
	parent := links[l.Parent]
	if l.Kind == netif.PPPoE && l.Parent == 0 {
		return parentHook{why: "it has no session"}
	}
	if parent == nil {
		return parentHook{why: "its parent is in another namespace"}
	}
	if why := whyStack(l, parent); why != "" {
		return parentHook{why: why}
	}
	return b.parentHookOf(parent, links)
}

// whyStack says why a VLAN device's frames must go to the stack. It returns "" if they
// need not.
func whyStack(l, parent *netif.Link) string {
	const vlanID = 0x0fff
	switch {
	case l.Index >= dataplane.MaxIfindex:
		return unknownIndex(l)
	case !l.Up:
		return l.Name + " is down"
	case l.Master != 0:
		return fmt.Sprintf("%s is a port of %s", l.Name, oneOf(l.MasterOf))
	case l.Shared:
		return fmt.Sprintf("other devices share %s (macvlan, ipvlan)", l.Name)
	case !bytes.Equal(l.MAC, parent.MAC):
		return fmt.Sprintf("%s has another MAC address than %s", l.Name, parent.Name)
	case l.KeepsTag:
		return l.Name + " leaves tags in its frames (reorder_hdr off)"
	case l.Kind == netif.VLAN && l.Tag&vlanID == 0:
		return "a tag with VLAN id 0 is a priority"
	}
	return ""
}
