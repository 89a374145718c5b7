package resolve

import "weir/pf/ast"

// icmpName is the name of a type, or of a code of a type.
type icmpName struct {
	name       string
	kind, code uint8
}

// The names of ICMP types and codes in pf.conf(5). If a number has several names, the
// first is printed.
var icmp4Types = []icmpName{
	{"echoreq", 8, 0}, {"echorep", 0, 0}, {"unreach", 3, 0}, {"squench", 4, 0}, {"redir", 5, 0},
	{"althost", 6, 0}, {"routeradv", 9, 0}, {"routersol", 10, 0}, {"timex", 11, 0}, {"paramprob", 12, 0},
	{"timereq", 13, 0}, {"timerep", 14, 0}, {"inforeq", 15, 0}, {"inforep", 16, 0}, {"maskreq", 17, 0},
	{"maskrep", 18, 0}, {"trace", 30, 0}, {"dataconv", 31, 0}, {"mobredir", 32, 0}, {"ipv6-where", 33, 0},
	{"ipv6-here", 34, 0}, {"mobregreq", 35, 0}, {"mobregrep", 36, 0}, {"skip", 39, 0}, {"photuris", 40, 0},
}

var icmp4Codes = []icmpName{
	{"net-unr", 3, 0}, {"host-unr", 3, 1}, {"proto-unr", 3, 2}, {"port-unr", 3, 3}, {"needfrag", 3, 4},
	{"srcfail", 3, 5}, {"net-unk", 3, 6}, {"host-unk", 3, 7}, {"isolate", 3, 8}, {"net-prohib", 3, 9},
	{"host-prohib", 3, 10}, {"net-tos", 3, 11}, {"host-tos", 3, 12}, {"filter-prohib", 3, 13},
	{"host-preced", 3, 14}, {"cutoff-preced", 3, 15}, {"redir-net", 5, 0}, {"redir-host", 5, 1},
	{"redir-tos-net", 5, 2}, {"redir-tos-host", 5, 3}, {"normal-adv", 9, 0}, {"common-adv", 9, 16},
	{"transit", 11, 0}, {"reassemb", 11, 1}, {"badhead", 12, 0}, {"optmiss", 12, 1}, {"badlen", 12, 2},
	{"unknown-ind", 40, 0}, {"auth-fail", 40, 1}, {"decrypt-fail", 40, 2},
}

var icmp6Types = []icmpName{
	{"unreach", 1, 0}, {"toobig", 2, 0}, {"timex", 3, 0}, {"paramprob", 4, 0}, {"echoreq", 128, 0},
	{"echorep", 129, 0}, {"groupqry", 130, 0}, {"listqry", 130, 0}, {"grouprep", 131, 0}, {"listenrep", 131, 0},
	{"groupterm", 132, 0}, {"listendone", 132, 0}, {"routersol", 133, 0}, {"routeradv", 134, 0},
	{"neighbrsol", 135, 0}, {"neighbradv", 136, 0}, {"redir", 137, 0}, {"routrrenum", 138, 0},
	{"wrureq", 139, 0}, {"wrurep", 140, 0}, {"fqdnreq", 139, 0}, {"fqdnrep", 140, 0}, {"niqry", 139, 0},
	{"nirep", 140, 0}, {"mtraceresp", 200, 0}, {"mtrace", 201, 0}, {"listenrepv2", 143, 0},
}

var icmp6Codes = []icmpName{
	{"admin-unr", 1, 1}, {"noroute-unr", 1, 0}, {"beyond-unr", 1, 2}, {"notnbr-unr", 1, 2}, {"addr-unr", 1, 3},
	{"port-unr", 1, 4}, {"transit", 3, 0}, {"reassemb", 3, 1}, {"badhead", 4, 0}, {"nxthdr", 4, 1},
	{"redironlink", 137, 0}, {"redirrouter", 137, 1},
}

func icmpTypes(f ast.Family) []icmpName {
	if f == ast.Inet6 {
		return icmp6Types
	}
	return icmp4Types
}

func icmpCodes(f ast.Family) []icmpName {
	if f == ast.Inet6 {
		return icmp6Codes
	}
	return icmp4Codes
}

// icmpTypeByName returns the number of a type.
func icmpTypeByName(f ast.Family, name string) (uint8, bool) {
	for _, t := range icmpTypes(f) {
		if t.name == name {
			return t.kind, true
		}
	}
	return 0, false
}

// icmpTypeName returns the name of a type, or "".
func icmpTypeName(f ast.Family, kind uint8) string {
	for _, t := range icmpTypes(f) {
		if t.kind == kind {
			return t.name
		}
	}
	return ""
}

// icmpCodeByName returns the number of a code of a type.
func icmpCodeByName(f ast.Family, kind uint8, name string) (uint8, bool) {
	for _, c := range icmpCodes(f) {
		if c.kind == kind && c.name == name {
			return c.code, true
		}
	}
	return 0, false
}

// icmpCodeName returns the name of a code of a type, "" if it has none.
func icmpCodeName(f ast.Family, kind, code uint8) string {
	for _, c := range icmpCodes(f) {
		if c.kind == kind && c.code == code {
			return c.name
		}
	}
	return ""
}

// icmpNames returns names for suggestions: those of types, or those of the codes of a
// type.
func icmpNames(list []icmpName, kind int) []string {
	var names []string
	for _, n := range list {
		if kind < 0 || int(n.kind) == kind {
			names = append(names, n.name)
		}
	}
	return names
}
