package resolve

import "weir/pf/ast"

// ProtocolNumber returns the number of the IP protocol of that name in the
// built-in table.
func ProtocolNumber(name string) (uint8, bool) { return protocolByName(name) }

// ICMPTypeNumber returns the number of the ICMP type (ICMPv6 for Inet6) of that
// name in pf.conf.
func ICMPTypeNumber(f ast.Family, name string) (uint8, bool) { return icmpTypeByName(f, name) }

// ICMPCodeNumber returns the number of a code by its name in pf.conf, for messages of a
// type.
func ICMPCodeNumber(f ast.Family, kind uint8, name string) (uint8, bool) {
	return icmpCodeByName(f, kind, name)
}
