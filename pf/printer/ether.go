package printer

import (
	"fmt"
	"io"
	"net"

	"weir/pf/ast"
)

// ether prints an ether rule or an ether anchor, with the line end.
func ether(w io.Writer, e *ast.Ether) {
	fmt.Fprint(w, Ether(e))
	block(w, e.Anchor)
	fmt.Fprintln(w)
}

// Ether returns the text of an ether rule, or that of an anchor without its rules.
func Ether(e *ast.Ether) string {
	c := clauses{"ether"}
	switch {
	case e.Anchor != nil:
		c.add(anchor(e.Anchor))
	default:
		c.add([...]string{ast.Pass: "pass", ast.Block: "block", ast.Match: "match"}[e.Action])
	}
	c.add(direction(e.Direction))
	c.addIf(e.Quick, "quick")
	c.addIf(len(e.On) > 0, "on", list(e.On, onInterface))
	if e.BridgeTo != nil {
		c.add("bridge-to", name(e.BridgeTo.Text))
	}
	c.addIf(len(e.Types) > 0, "proto", list(e.Types, func(t *ast.EtherType) string { return fmt.Sprintf("0x%04x", t.Number) }))
	if len(e.FromMACs) == 0 && len(e.ToMACs) == 0 {
		c.add("all")
	} else {
		c.add("from", macs(e.FromMACs), "to", macs(e.ToMACs))
	}
	if !anywhere(&e.From) || !anywhere(&e.To) {
		c.add("l3")
		fromTo(&c, &e.Rule)
	}
	if e.Queue != nil {
		c.add("queue", name(e.Queue.Text))
	}
	dummynet(&c, e.Dummynet)
	names(&c, e.Label, e.MoreLabels, e.Identifier)
	if e.Tag != nil {
		c.add("tag", name(e.Tag.Text))
	}
	if e.Tagged != nil {
		c.addIf(e.Tagged.Not, "!")
		c.add("tagged", name(e.Tagged.Name.Text))
	}
	return c.String()
}

func macs(all []ast.MAC) string {
	if len(all) == 0 {
		return "any"
	}
	return list(all, mac)
}

func mac(m *ast.MAC) string {
	s := net.HardwareAddr(m.Addr[:]).String()
	switch bits := m.Bits(); {
	case bits < 0:
		s += " & " + net.HardwareAddr(m.Mask[:]).String()
	case bits < 48:
		s += fmt.Sprintf("/%d", bits)
	}
	if m.Not {
		return "! " + s
	}
	return s
}
