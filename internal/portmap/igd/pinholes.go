package igd

import (
	"errors"
	"net/netip"
	"strings"

	"weir/internal/portmap/mapping"
)

// Faults of pinholes (WANIPv6FirewallControl:1).
var (
	errPinholeSpace     = &fault{701, "PinholeSpaceExhausted"}
	errProtocol         = &fault{705, "ProtocolNotSupported"}
	errInternalWildcard = &fault{706, "InternalPortWildcardingNotAllowed"}
	errAnyProtocol      = &fault{707, "ProtocolWildcardingNotAllowed"}
	errNoPinhole        = &fault{704, "NoSuchEntry"}
)

func pinholeFault(err error) error {
	switch {
	case errors.Is(err, mapping.ErrFull), errors.Is(err, mapping.ErrQuota), errors.Is(err, mapping.ErrFilters):
		return errPinholeSpace
	case errors.Is(err, mapping.ErrNone):
		return errNoPinhole
	}
	return faultOf(err)
}

// addPinhole opens a port of an IPv6 host. Only the host itself may ask, over IPv6, by any of
// its addresses: it may use one that changes every day for what it sends.
func (c *call) addPinhole() error {
	r, err := c.pinholeRequest()
	if err != nil {
		return err
	}
	var m mapping.Mapping
	err = c.Change(c.ctx, func(t *mapping.Table) (err error) {
		if known, ok := t.Of(mapping.UPnP, r.Protocol, r.Internal); ok {
			for _, f := range known.Filters { // one host's port is one mapping: further pinholes add to it
				if len(r.Filters) > 0 && f != r.Filters[0] {
					r.Filters = append(r.Filters, f)
				}
			}
			if len(known.Filters) == 0 {
				r.Filters = nil
			}
		}
		m, err = t.Add(r)
		return err
	})
	if err != nil {
		return pinholeFault(err)
	}
	c.give(m.ID)
	return nil
}

func (c *call) pinholeRequest() (*mapping.Request, error) {
	protocol, err := c.number("Protocol", 16)
	if err != nil {
		return nil, err
	}
	switch mapping.Protocol(protocol) {
	case mapping.TCP, mapping.UDP:
	default:
		if protocol == 65535 {
			return nil, errAnyProtocol
		}
		return nil, errProtocol
	}
	internal, err := c.number("InternalPort", 16)
	if err != nil {
		return nil, err
	}
	if internal == 0 {
		return nil, errInternalWildcard
	}
	if !c.host.Is6() {
		return nil, errNotAuthorized
	}
	host, err := c.internal(c.text("InternalClient"))
	if err != nil {
		return nil, err
	}
	lease, err := c.pinholeLease("LeaseTime")
	if err != nil {
		return nil, err
	}
	remote, err := c.remote()
	if err != nil {
		return nil, err
	}
	return &mapping.Request{
		By: mapping.UPnP, Protocol: mapping.Protocol(protocol), Internal: netip.AddrPortFrom(host, uint16(internal)), External: uint16(internal),
		Lease: lease, Filters: remote, Filtered: true, Pinhole: true,
	}, nil
}

// remote reads who may come through a pinhole.
func (c *call) remote() ([]mapping.Filter, error) {
	port, err := c.number("RemotePort", 16)
	if err != nil {
		return nil, err
	}
	text := strings.TrimSpace(c.text("RemoteHost"))
	if text == "" || text == "*" || text == "::" {
		if port == 0 {
			return nil, nil
		}
		return []mapping.Filter{{From: netip.MustParsePrefix("::/0"), Port: uint16(port)}}, nil
	}
	from, err := netip.ParseAddr(text)
	if err != nil || !from.Is6() || from.Is4In6() || from.Zone() != "" {
		return nil, errInvalidArgs
	}
	return []mapping.Filter{{From: netip.PrefixFrom(from, 128), Port: uint16(port)}}, nil
}

// pinholeLease reads a time, which cannot be for ever.
func (c *call) pinholeLease(name string) (mapping.Lease, error) {
	seconds, err := c.number(name, 32)
	if err != nil || seconds == 0 {
		return mapping.Lease{}, errInvalidArgs
	}
	now, _ := c.Clock()
	return mapping.Lease{Ends: now + int64(min(seconds, 24*60*60))}, nil
}

// pinhole finds the pinhole that a host names.
func (c *call) pinhole(t *mapping.Table, id uint64) (mapping.Mapping, error) {
	m, ok := t.Pinhole(uint16(id))
	if !ok {
		return m, mapping.ErrNone
	}
	if !c.own(&m) {
		return m, mapping.ErrOthers
	}
	return m, nil
}

func (c *call) updatePinhole() error {
	id, err := c.number("UniqueID", 16)
	if err != nil {
		return err
	}
	lease, err := c.pinholeLease("NewLeaseTime")
	if err != nil {
		return err
	}
	return pinholeFault(c.Change(c.ctx, func(t *mapping.Table) error {
		m, err := c.pinhole(t, id)
		if err != nil {
			return err
		}
		_, err = t.Add(&mapping.Request{By: mapping.UPnP, Protocol: m.Protocol, Internal: m.Internal, External: m.External, Lease: lease})
		return err
	}))
}

func (c *call) deletePinhole() error {
	id, err := c.number("UniqueID", 16)
	if err != nil {
		return err
	}
	return pinholeFault(c.Change(c.ctx, func(t *mapping.Table) error {
		m, err := c.pinhole(t, id)
		if err != nil {
			return err
		}
		t.Release(mapping.UPnP, func(one *mapping.Mapping) bool { return one.ID == m.ID })
		return nil
	}))
}
