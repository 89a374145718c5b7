package igd

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"weir/internal/portmap/mapping"
)

// Faults of port mappings.
var (
	errArrayIndex      = &fault{713, "SpecifiedArrayIndexInvalid"}
	errNoSuchEntry     = &fault{714, "NoSuchEntryInArray"}
	errWildcardPort    = &fault{716, "WildCardNotPermittedInExtPort"}
	errConflict        = &fault{718, "ConflictInMappingEntry"}
	errNoPortMaps      = &fault{728, "NoPortMapsAvailable"}
	errNotFound        = &fault{730, "PortMappingNotFound"}
	errInconsistent    = &fault{733, "InconsistentParameters"}
	mostDescription    = 64 // characters that are kept
	errNoInternalPort0 = &fault{732, "WildCardNotPermittedInIntPort"}
)

// faultOf returns UPnP's number for why a mapping is refused.
func faultOf(err error) error {
	switch {
	case errors.Is(err, mapping.ErrNotAllowed), errors.Is(err, mapping.ErrOthers):
		return errNotAuthorized
	case errors.Is(err, mapping.ErrTaken):
		return errConflict
	case errors.Is(err, mapping.ErrFull), errors.Is(err, mapping.ErrQuota), errors.Is(err, mapping.ErrFilters):
		return errNoPortMaps
	case errors.Is(err, mapping.ErrNone):
		return errNoSuchEntry
	}
	return err
}

func (c *call) protocol() (mapping.Protocol, error) {
	switch strings.ToUpper(strings.TrimSpace(c.text("NewProtocol"))) {
	case "TCP":
		return mapping.TCP, nil
	case "UDP":
		return mapping.UDP, nil
	}
	return 0, errInvalidArgs
}

// key reads what names an entry.
func (c *call) key() (p mapping.Protocol, external uint16, remote []mapping.Filter, err error) {
	if p, err = c.protocol(); err != nil {
		return p, 0, nil, err
	}
	n, err := c.number("NewExternalPort", 16)
	if err != nil {
		return p, 0, nil, err
	}
	text := strings.TrimSpace(c.text("NewRemoteHost"))
	if text == "" || text == "*" || text == "0.0.0.0" {
		return p, uint16(n), nil, nil
	}
	from, err := netip.ParseAddr(text)
	if err != nil || !from.Is4() {
		return p, 0, nil, errInvalidArgs
	}
	return p, uint16(n), []mapping.Filter{{From: netip.PrefixFrom(from, 32)}}, nil
}

// request reads the arguments of AddPortMapping and AddAnyPortMapping.
func (c *call) request() (*mapping.Request, error) {
	p, external, remote, err := c.key()
	if err != nil {
		return nil, err
	}
	port, err := c.number("NewInternalPort", 16)
	if err != nil {
		return nil, err
	}
	if port == 0 {
		return nil, errNoInternalPort0
	}
	lease, err := c.lease("NewLeaseDuration")
	if err != nil {
		return nil, err
	}
	if enabled, err := c.truth("NewEnabled"); err != nil || !enabled {
		return nil, errInvalidArgs // a mapping that is not enabled is none
	}
	host, err := c.internal(c.text("NewInternalClient"))
	if err != nil {
		return nil, err
	}
	lease.Description = printable(c.text("NewPortMappingDescription"))
	return &mapping.Request{
		By: mapping.UPnP, Protocol: p, Internal: netip.AddrPortFrom(host, uint16(port)), External: external,
		Lease: lease, Filters: remote, Filtered: true,
	}, nil
}

// internal reads the host that a mapping is for: the one that asks.
func (c *call) internal(text string) (netip.Addr, error) {
	host, err := netip.ParseAddr(strings.TrimSpace(text))
	if err != nil || host.Is4() != c.host.Is4() || host.Zone() != "" || host.Is4In6() {
		return host, errInvalidArgs
	}
	if host == c.host || c.Others && c.Local(host) || host.Is6() && c.Local(host) && c.Same(host, c.host) {
		return host, nil
	}
	return host, errNotAuthorized
}

// lease reads a time in seconds. Version 1 has mappings for ever, version 2 for a week.
func (c *call) lease(name string) (mapping.Lease, error) {
	seconds, err := c.number(name, 32)
	if err != nil {
		return mapping.Lease{}, err
	}
	week := uint64(longest.Seconds())
	if seconds == 0 && c.version == 1 {
		return mapping.Lease{}, nil
	}
	if seconds == 0 || seconds > week {
		seconds = week
	}
	now, _ := c.Clock()
	return mapping.Lease{Ends: now + int64(seconds)}, nil
}

// printable is a description as it is kept: it comes from a host and is shown to people.
func printable(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r == '\ufffd' {
			return -1
		}
		return r
	}, text)
	if r := []rune(text); len(r) > mostDescription {
		text = string(r[:mostDescription])
	}
	return text
}

func (c *call) addPortMapping() error {
	r, err := c.request()
	if err != nil {
		return err
	}
	if r.External == 0 {
		return errWildcardPort
	}
	r.Exactly = true
	_, err = c.add(r)
	return err
}

func (c *call) addAnyPortMapping() error {
	r, err := c.request()
	if err != nil {
		return err
	}
	m, err := c.add(r)
	if err != nil {
		return err
	}
	c.give(m.External)
	return nil
}

func (c *call) add(r *mapping.Request) (m mapping.Mapping, err error) {
	if !r.Internal.Addr().Is6() && !c.External().IsValid() {
		return m, errActionFailed
	}
	err = c.Change(c.ctx, func(t *mapping.Table) (err error) {
		m, err = t.Add(r)
		return err
	})
	return m, faultOf(err)
}

// own reports whether the host that asks may end a mapping.
func (c *call) own(m *mapping.Mapping) bool {
	host := m.Internal.Addr()
	return c.Others || host == c.host || host.Is6() && c.host.Is6() && c.Same(host, c.host)
}

func (c *call) deletePortMapping() error {
	p, external, _, err := c.key()
	if err != nil {
		return err
	}
	return faultOf(c.Change(c.ctx, func(t *mapping.Table) error {
		m, ok := t.At(p, external)
		if !ok || m.Leases[mapping.UPnP] == nil {
			return mapping.ErrNone
		}
		if !c.own(&m) {
			return mapping.ErrOthers
		}
		t.Release(mapping.UPnP, func(one *mapping.Mapping) bool {
			return one.Protocol == p && one.External == external && one.Internal == m.Internal
		})
		return nil
	}))
}

// entries returns the mappings of the external address, with UPnP's lease or another.
func (c *call) entries() (all []mapping.Mapping) {
	for _, m := range c.Table().All() {
		if m.Internal.Addr().Is4() {
			all = append(all, m)
		}
	}
	return all
}

// leaseOf returns the lease to show.
func leaseOf(m *mapping.Mapping) *mapping.Lease {
	for _, l := range m.Leases {
		if l != nil {
			return l
		}
	}
	return &mapping.Lease{}
}

func remoteOf(m *mapping.Mapping) string {
	if len(m.Filters) == 1 && m.Filters[0].From.IsSingleIP() {
		return m.Filters[0].From.Addr().String()
	}
	return ""
}

func (c *call) giveEntry(m *mapping.Mapping) {
	now, _ := c.Clock()
	l := leaseOf(m)
	c.give(m.Internal.Port(), m.Internal.Addr(), 1, l.Description, l.Left(now))
}

func (c *call) genericEntry() error {
	n, err := c.number("NewPortMappingIndex", 16)
	if err != nil {
		return err
	}
	all := c.entries()
	if n >= uint64(len(all)) {
		return errArrayIndex
	}
	m := &all[n]
	c.give(remoteOf(m), m.External, strings.ToUpper(m.Protocol.String()))
	c.giveEntry(m)
	return nil
}

func (c *call) specificEntry() error {
	p, external, _, err := c.key()
	if err != nil {
		return err
	}
	m, ok := c.Table().At(p, external)
	if !ok {
		return errNoSuchEntry
	}
	c.giveEntry(&m)
	return nil
}

// ports reads a range of external ports.
func (c *call) ports() (is func(*mapping.Mapping) bool, err error) {
	p, err := c.protocol()
	if err != nil {
		return nil, err
	}
	first, err := c.number("NewStartPort", 16)
	if err != nil {
		return nil, err
	}
	last, err := c.number("NewEndPort", 16)
	if err != nil {
		return nil, err
	}
	if first > last {
		return nil, errInconsistent
	}
	manage, err := c.truth("NewManage")
	if err != nil {
		return nil, err
	}
	return func(m *mapping.Mapping) bool {
		return m.Internal.Addr().Is4() && m.Protocol == p && uint64(m.External) >= first && uint64(m.External) <= last && (manage && c.Others || m.Internal.Addr() == c.host)
	}, nil
}

func (c *call) deletePortMappingRange() error {
	is, err := c.ports()
	if err != nil {
		return err
	}
	err = c.Change(c.ctx, func(t *mapping.Table) error {
		if len(t.Release(mapping.UPnP, is)) == 0 {
			return mapping.ErrNone
		}
		return nil
	})
	if errors.Is(err, mapping.ErrNone) {
		return errNotFound
	}
	return faultOf(err)
}

// listPortMappings answers with a document within the document.
func (c *call) listPortMappings() error {
	is, err := c.ports()
	if err != nil {
		return err
	}
	most, err := c.number("NewNumberOfPorts", 16)
	if err != nil {
		return err
	}
	now, _ := c.Clock()
	var b strings.Builder
	n := uint64(0)
	for _, m := range c.entries() {
		if !is(&m) || most != 0 && n == most {
			continue
		}
		n++
		l := leaseOf(&m)
		fmt.Fprintf(&b, "<p:PortMappingEntry><p:NewRemoteHost>%s</p:NewRemoteHost><p:NewExternalPort>%d</p:NewExternalPort><p:NewProtocol>%s</p:NewProtocol>"+
			"<p:NewInternalPort>%d</p:NewInternalPort><p:NewInternalClient>%s</p:NewInternalClient><p:NewEnabled>1</p:NewEnabled>"+
			"<p:NewDescription>%s</p:NewDescription><p:NewLeaseTime>%d</p:NewLeaseTime></p:PortMappingEntry>\n",
			remoteOf(&m), m.External, strings.ToUpper(m.Protocol.String()), m.Internal.Port(), m.Internal.Addr(), escape(l.Description), l.Left(now))
	}
	if n == 0 {
		return errNotFound
	}
	c.give(`<p:PortMappingList xmlns:p="urn:schemas-upnp-org:gw:WANIPConnection" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" ` +
		`xsi:schemaLocation="urn:schemas-upnp-org:gw:WANIPConnection http://www.upnp.org/schemas/gw/WANIPConnection-v2.xsd">` + "\n" + b.String() + "</p:PortMappingList>")
	return nil
}

func (d *Device) linkStatus() string {
	if d.External().IsValid() {
		return "Up"
	}
	return "Down"
}

func (d *Device) connectionStatus() string {
	if d.External().IsValid() {
		return "Connected"
	}
	return "Disconnected"
}

func (d *Device) externalText() string {
	if a := d.External(); a.IsValid() {
		return a.String()
	}
	return ""
}
