package daemon

import (
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"strings"

	"weir/internal/fw/dataplane"
	"weir/pf/ast"
	"weir/pf/resolve"
)

// filterHead turns a filter into a rule. A match rule implies nothing that is not
// written.
const filterHead = "match "

// errFilter is the error for a filter that uses more than addresses and ports.
var errFilter = errors.New("filter: write it like this part of a rule: \"inet proto … from … port … to … port …\"")

// parseFilter reads a filter, which is part of a rule, for a machine. Its error shows
// each fault with its place. Lists are alternatives. With replies, each filter also gets
// its mirror image.
func parseFilter(text string, replies bool, host *resolve.Host) ([]dataplane.CaptureFilter, error) {
	if strings.TrimSpace(text) == "" {
		return []dataplane.CaptureFilter{{All: true}}, nil
	}
	if strings.ContainsAny(text, "\r\n") {
		return nil, errFilter
	}
	rules, list := resolve.Load("filter", []byte(filterHead+text+"\n"), host)
	list.Enforce()
	if err := list.Err(); err != nil {
		return nil, err
	}
	var all []dataplane.CaptureFilter
	for _, r := range rules.Rules {
		if !onlyAddresses(r) {
			return nil, errFilter
		}
		alternatives, err := captureFilters(r, host)
		if err != nil {
			return nil, err
		}
		all = append(all, alternatives...)
	}
	if len(all) == 0 {
		return nil, errors.New("filter: no packet can match it")
	}
	if replies {
		for _, f := range all {
			f.Src, f.Dst = f.Dst, f.Src
			all = append(all, f)
		}
	}
	return all, nil
}

// onlyAddresses reports whether a rule uses only conditions that a filter may have.
func onlyAddresses(r *resolve.Rule) bool {
	asked := resolve.Rule{
		Nr: r.Nr, Pos: r.Pos, Origin: r.Origin, Stmt: r.Stmt, Text: r.Text, Action: r.Action, State: r.State,
		Interface: resolve.Interface{Any: true}, Family: r.Family, Proto: r.Proto, From: r.From, To: r.To,
	}
	return reflect.DeepEqual(*r, asked)
}

// captureFilters converts a rule to the dataplane's form. An interface that stands for
// its addresses becomes alternatives.
func captureFilters(r *resolve.Rule, host *resolve.Host) ([]dataplane.CaptureFilter, error) {
	from, err := captureEnds(&r.From, r.Family, host)
	if err != nil {
		return nil, err
	}
	to, err := captureEnds(&r.To, r.Family, host)
	if err != nil {
		return nil, err
	}
	var all []dataplane.CaptureFilter
	for _, src := range from {
		for _, dst := range to {
			all = append(all, dataplane.CaptureFilter{Family: uint8(r.Family), Proto: r.Proto, Src: src, Dst: dst})
		}
	}
	return all, nil
}

func captureEnds(e *resolve.Endpoint, family ast.Family, host *resolve.Host) ([]dataplane.CaptureEnd, error) {
	ports, ok := capturePorts(e.Port)
	if !ok {
		return nil, nil
	}
	switch e.Addr.Kind {
	case resolve.AnyAddress:
		return []dataplane.CaptureEnd{ports}, nil
	case resolve.PrefixAddress:
		ports.Prefix, ports.Not = e.Addr.Prefix.Masked(), e.Addr.Not
		return []dataplane.CaptureEnd{ports}, nil
	case resolve.InterfaceAddress:
		return interfaceEnds(&e.Addr, ports, family, host)
	default:
		return nil, errors.New("filter: it takes only addresses, networks and interfaces")
	}
}

// interfaceEnds returns the present addresses of an interface, or its networks.
func interfaceEnds(a *resolve.Address, end dataplane.CaptureEnd, family ast.Family, host *resolve.Host) ([]dataplane.CaptureEnd, error) {
	if a.Modifier != resolve.NoModifier && a.Modifier != resolve.NetworkModifier {
		return nil, errors.New("filter: interfaces take only the modifiers :network and :0")
	}
	var all []dataplane.CaptureEnd
	for _, i := range host.Interfaces {
		if a.Interface != resolve.Self && a.Interface != i.Name {
			continue
		}
		for _, prefix := range i.Addresses {
			if family != 0 && (family == ast.Inet) != prefix.Addr().Is4() {
				continue
			}
			if a.Modifier != resolve.NetworkModifier {
				prefix = netip.PrefixFrom(prefix.Addr(), prefix.Addr().BitLen())
			}
			end.Prefix, end.Not = prefix.Masked(), a.Not
			all = append(all, end)
		}
	}
	if a.Not && len(all) > 1 {
		return nil, fmt.Errorf("filter: ! (%s) has %d addresses; name one of them", a.Interface, len(all))
	}
	return all, nil
}

// capturePorts converts a port condition to one range. ok is false if no port matches.
func capturePorts(p resolve.PortRange) (end dataplane.CaptureEnd, ok bool) {
	low, high := int(p.Low), int(p.High)
	switch p.Op {
	case ast.AnyPort:
		return end, true
	case ast.PortEqual, ast.PortNotEqual:
		high = low
	case ast.PortLess:
		low, high = 0, low-1
	case ast.PortLessEqual:
		low, high = 0, low
	case ast.PortGreater:
		low, high = low+1, 65535
	case ast.PortGreaterEqual:
		high = 65535
	case ast.PortInside:
		low, high = low+1, high-1
	}
	if low > high {
		return end, false
	}
	end.Ports, end.PortLow, end.PortHigh = true, uint16(low), uint16(high)
	end.PortsNot = p.Op == ast.PortNotEqual || p.Op == ast.PortOutside
	return end, true
}
