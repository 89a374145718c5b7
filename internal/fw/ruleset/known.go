package ruleset

import (
	"errors"
	"fmt"
	"reflect"

	"weir/pf/ast"
	"weir/pf/resolve"
)

// known refuses parts of a rule that the programs do not implement. Rules that were read
// for enforcement contain none.
func known(r *resolve.Rule) error {
	if name := r.Unenforced(); name != "" {
		return notKnown(name)
	}
	for _, err := range []error{
		knownInterface(r.Interface), knownInterface(r.ReceivedOn.On), knownAnchor(r), knownTranslation(r.Nat), knownTranslation(r.Rdr), knownRoute(r.Route), knownAfTo(r),
	} {
		if err != nil {
			return err
		}
	}
	if r.Divert.Kind != resolve.NoDivert && !r.DivertsToSocket() && !r.DivertsPackets() {
		return notKnown("Divert")
	}
	if t := r.Rdr; t != nil && r.Proto == sctp && t.PortLow != 0 && !(r.To.Port.Op == ast.PortEqual && r.To.Port.Low == t.PortLow && t.PortHigh <= t.PortLow) {
		return notKnown("another port for SCTP")
	}
	return nil
}

// knownInterface clears the known fields of a copy. Whatever is left, such as a new
// field, is not known.
func knownInterface(on resolve.Interface) error {
	on.Any, on.Not, on.Group, on.Name, on.RDomain = false, false, false, "", nil
	if name := firstSet(on); name != "" {
		return notKnown(name)
	}
	return nil
}

func notKnown(name string) error { return fmt.Errorf("%s is not supported", name) }

// firstSet returns the name of the first non-zero field of a struct.
func firstSet(of any) string {
	v := reflect.ValueOf(of)
	for i := range v.NumField() {
		if !v.Field(i).IsZero() {
			return v.Type().Field(i).Name
		}
	}
	return ""
}

// knownAnchor refuses parts of an anchor that are not known.
func knownAnchor(r *resolve.Rule) error {
	if r.Anchor == nil {
		return nil
	}
	rest := *r.Anchor
	rest.Path, rest.End, rest.Quick, rest.Flat, rest.Braces = "", 0, false, false, false
	if name := firstSet(rest); name != "" {
		return notKnown(name)
	}
	return nil
}

// knownTranslation refuses parts of a translation.
func knownTranslation(t *resolve.Translation) error {
	if t == nil {
		return nil
	}
	rest := *t
	rest.Addrs, rest.PortLow, rest.PortHigh, rest.StaticPort, rest.Stride, rest.Block, rest.EndpointIndependent = nil, 0, 0, false, 0, 0, false
	rest.Choice = resolve.Choice{}
	if name := firstSet(rest); name != "" {
		return notKnown(name)
	}
	return nil
}

// knownRoute refuses networks of the other family.
func knownRoute(r *resolve.Route) error {
	switch {
	case r == nil:
		return nil
	case r.PreferIPv6 && r.Choice.Type == resolve.Bitmask:
		return notKnown("prefer-ipv6-nexthop with bitmask")
	}
	return nil
}

// knownAfTo refuses parts of af-to.
func knownAfTo(r *resolve.Rule) error {
	if r.AfTo == nil {
		return nil
	}
	if what, _ := r.AfToRefused(); what != "" {
		return notKnown(what)
	}
	return errors.Join(knownTranslation(r.AfTo.From), knownTranslation(r.AfTo.To))
}
