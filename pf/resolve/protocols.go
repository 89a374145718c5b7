package resolve

import "strings"

// protocols are the names of IP protocols as in OpenBSD. If a number has several names,
// the first is printed.
var protocols = []struct {
	number uint8
	names  []string
}{
	{0, []string{"ip"}},
	{1, []string{"icmp"}},
	{2, []string{"igmp"}},
	{3, []string{"ggp"}},
	{4, []string{"ipencap", "ipip", "ip-encap"}},
	{5, []string{"st"}},
	{6, []string{"tcp"}},
	{7, []string{"cbt"}},
	{8, []string{"egp"}},
	{9, []string{"igp"}},
	{12, []string{"pup"}},
	{16, []string{"chaos"}},
	{17, []string{"udp"}},
	{20, []string{"hmp"}},
	{22, []string{"xns-idp"}},
	{27, []string{"rdp"}},
	{29, []string{"iso-tp4"}},
	{33, []string{"dccp"}},
	{36, []string{"xtp"}},
	{37, []string{"ddp"}},
	{38, []string{"idpr-cmtp"}},
	{41, []string{"ipv6"}},
	{43, []string{"ipv6-route"}},
	{44, []string{"ipv6-frag"}},
	{45, []string{"idrp"}},
	{46, []string{"rsvp"}},
	{47, []string{"gre"}},
	{50, []string{"esp"}},
	{51, []string{"ah"}},
	{55, []string{"mobile"}},
	{57, []string{"skip"}},
	{58, []string{"ipv6-icmp", "icmp6"}},
	{59, []string{"ipv6-nonxt"}},
	{60, []string{"ipv6-opts"}},
	{73, []string{"rspf"}},
	{81, []string{"vmtp"}},
	{88, []string{"eigrp"}},
	{89, []string{"ospf", "ospfigp"}},
	{93, []string{"ax.25"}},
	{97, []string{"etherip"}},
	{98, []string{"encap"}},
	{103, []string{"pim"}},
	{108, []string{"ipcomp"}},
	{112, []string{"carp", "vrrp"}},
	{115, []string{"l2tp"}},
	{124, []string{"isis"}},
	{132, []string{"sctp"}},
	{133, []string{"fc"}},
	{135, []string{"mobility-header"}},
	{136, []string{"udplite"}},
	{137, []string{"mpls", "mpls-in-ip"}},
	{138, []string{"manet"}},
	{139, []string{"hip"}},
	{140, []string{"shim6"}},
	{141, []string{"wesp"}},
	{142, []string{"rohc"}},
	{240, []string{"pfsync"}},
}

// protocolByName returns a protocol's number. As in the files of BSD systems, a name may also be
// in capitals.
func protocolByName(name string) (uint8, bool) {
	if name == strings.ToUpper(name) {
		name = strings.ToLower(name)
	}
	for _, p := range protocols {
		for _, n := range p.names {
			if n == name {
				return p.number, true
			}
		}
	}
	return 0, false
}

// protocolName returns the name that is printed, or "" if there is none.
func protocolName(number uint8) string {
	for _, p := range protocols {
		if p.number == number {
			return p.names[0]
		}
	}
	return ""
}

// protocolNames returns all names, for suggestions.
func protocolNames() []string {
	var names []string
	for _, p := range protocols {
		names = append(names, p.names...)
	}
	return names
}
