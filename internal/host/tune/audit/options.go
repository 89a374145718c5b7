package audit

import (
	"net"
	"net/netip"
	"slices"
	"strings"

	"weir/internal/host/tune/db"
	"weir/internal/pattern"
)

// options judges the options of ifconfig in a line of rc.conf that also has addresses.
// The verdict is the worst of theirs.
func (j *Auditor) options(l Line) Finding {
	f := Finding{Line: l}
	worst := len(severity)
	var why []string
	var strange []string
	words := strings.Fields(l.Value)
	for i := 0; i < len(words); i++ {
		word := words[i]
		o, known := interfaceOptions[word]
		if i+1 < len(words) {
			if text := argument(strings.ToLower(word), words[i+1]); text != "" {
				why = append(why, word+" "+words[i+1]+": "+text)
				if at := slices.Index(severity, Valid); at < worst {
					worst, f.Verdict = at, Valid
				}
			}
		}
		if !known {
			if arguments, configures := addressWords[strings.ToLower(word)]; configures {
				i += arguments
			} else if _, err := netip.ParsePrefix(word); err != nil && !isAddress(word) {
				strange = append(strange, word)
			}
			continue
		}
		verdict, text := o.verdict, o.why
		if r := j.optionRecord(o.record); r != nil {
			text = r.Rationale + " " + r.Risk
			if o.why != "" {
				text = o.why
			}
			text += " Evidence: " + string(r.Grade()) + "."
		}
		why = append(why, word+": "+text)
		if at := slices.Index(severity, verdict); at < worst {
			worst, f.Verdict = at, verdict
		}
	}
	if strange != nil {
		why = append(why, "weir does not know "+strings.Join(strange, ", ")+".")
		if at := slices.Index(severity, Unknown); at < worst {
			f.Verdict = Unknown
		}
	}
	if why == nil {
		f.Verdict, f.Why = Elsewhere, "addresses are configuration, not tuning"
		return f
	}
	f.Why = strings.Join(why, " ")
	return f
}

// argument says what to think of a word's argument, if more is to be said than that it is configuration.
func argument(word, value string) string {
	if word == "media" && fixedMedia.MatchString(value) {
		return "a fixed speed or duplex ends the negotiation: unless the other end is set alike, it takes half duplex, and frames collide."
	}
	return ""
}

// fixedMedia are media of copper that are slower than what the ends negotiate by themselves.
var fixedMedia = pattern.New(`^100?base(?:T|TX|T4)`)

// severity lists the options' verdicts, worst first.
var severity = []Verdict{Dangerous, Contradicted, EndpointOnly, Unknown, Valid, IsDefault}

// isAddress reports whether a word is an address, of IP or of Ethernet, or a mask.
func isAddress(word string) bool {
	_, notIP := netip.ParseAddr(word)
	_, notEthernet := net.ParseMAC(word)
	return notIP == nil || notEthernet == nil || strings.HasPrefix(word, "0x")
}

// addressWords are the words of ifconfig and rc.conf that give an interface its addresses,
// its VLAN, its ports and so on, with how many words each takes. They tune nothing.
var addressWords = map[string]int{
	"dhcp": 0, "syncdhcp": 0, "nosyncdhcp": 0, "noauto": 0, "wpa": 0, "hostap": 0, "none": 0, "up": 0, "down": 0, "create": 0,
	"inet": 0, "inet6": 0, "alias": 0, "-alias": 0, "add": 0, "delete": 0, "netmask": 1, "prefixlen": 1, "broadcast": 1,
	"accept_rtadv": 0, "-accept_rtadv": 0, "auto_linklocal": 0, "-auto_linklocal": 0, "ifdisabled": 0, "-ifdisabled": 0,
	"no_radr": 0, "-no_radr": 0, "eui64": 0, "no_dad": 0, "-no_dad": 0, "anycast": 0, "autoconf": 0, "no_prefer_iface": 0,
	"mtu": 1, "metric": 1, "fib": 1, "tunnelfib": 1, "name": 1, "group": 1, "-group": 1, "description": 1, "descr": 1,
	"ether": 1, "lladdr": 1, "link": 1, "media": 1, "mediaopt": 1, "-mediaopt": 1, "mode": 1, "instance": 1,
	"vlan": 1, "vlandev": 1, "vlanproto": 1, "vlanpcp": 1, "laggproto": 1, "laggport": 1, "lagghash": 1, "lacp_fast_timeout": 0,
	"-lacp_fast_timeout": 0, "addm": 1, "deletem": 1, "stp": 1, "-stp": 1, "edge": 1, "private": 1, "maxaddr": 1, "tunnel": 2, "powersave": 0, "-powersave": 0, "regdomain": 1, "authmode": 1, "channel": 1, "txpower": 1,
	"vhid": 1, "advbase": 1, "advskew": 1, "pass": 1, "state": 1, "peer": 1, "ssid": 1, "country": 1, "wlandev": 1,
	"vxlanid": 1, "vxlanlocal": 1, "vxlanremote": 1, "vxlangroup": 1, "vxlandev": 1, "vxlanport": 1,
}

// interfaceOptions maps the options of ifconfig that weir knows to their records. A text
// given here replaces the record's.
var interfaceOptions = map[string]struct {
	record, why string
	verdict     Verdict
}{
	"-lro": {record: "-lro", verdict: Valid},
	"lro": {record: "-lro", verdict: Dangerous,
		why: "LRO merges packets that a router must send as they came; Intel's driver notes warn of panics if the host forwards."},
	"-tso": {record: "-tso -vlanhwtso", verdict: Valid}, "-tso4": {record: "-tso -vlanhwtso", verdict: Valid},
	"-tso6": {record: "-tso -vlanhwtso", verdict: Valid}, "-vlanhwtso": {record: "-tso -vlanhwtso", verdict: Valid},
	"tso": {verdict: IsDefault, why: "on by default if the card supports it."}, "tso4": {verdict: IsDefault, why: "on by default if the card supports it."},
	"tso6": {verdict: IsDefault, why: "on by default if the card supports it."}, "vlanhwtso": {verdict: IsDefault, why: "on by default if the card supports it."},
	"-rxcsum": {record: "-rxcsum -rxcsum6", verdict: Valid}, "-rxcsum6": {record: "-rxcsum -rxcsum6", verdict: Valid},
	"-txcsum": {record: "-txcsum -txcsum6", verdict: Valid}, "-txcsum6": {record: "-txcsum -txcsum6", verdict: Valid},
	"rxcsum": {verdict: IsDefault, why: "on by default if the card supports it."}, "txcsum": {verdict: IsDefault, why: "on by default if the card supports it."},
	"rxcsum6": {verdict: IsDefault, why: "on by default if the card supports it."}, "txcsum6": {verdict: IsDefault, why: "on by default if the card supports it."},
	"-vlanhwtag":    {verdict: Valid, why: "The CPU inserts VLAN tags instead of the card; netmap and some traffic shapers need it."},
	"-vlanhwfilter": {verdict: Valid, why: "The card passes all VLANs; bridges and netmap need it."},
	"toe":           {verdict: EndpointOnly, why: "The card handles the host's own connections; packets of these pass no firewall. A router has no use for it."},
	"toe4":          {verdict: EndpointOnly, why: "The card handles the host's own connections; packets of these pass no firewall. A router has no use for it."},
	"toe6":          {verdict: EndpointOnly, why: "The card handles the host's own connections; packets of these pass no firewall. A router has no use for it."},
	"-toe":          {verdict: IsDefault, why: "off by default."},
	"-polling":      {verdict: IsDefault, why: "off by default."},
	"vlanhwtag":     {verdict: IsDefault, why: "on by default if the card supports it."},
	"vlanhwfilter":  {verdict: IsDefault, why: "on by default if the card supports it."},
	"-vlanhwcsum":   {verdict: Valid, why: "The CPU computes the checksums of tagged frames; netmap needs it."},
	"vlanhwcsum":    {verdict: IsDefault, why: "on by default if the card supports it."},
	"-wol":          {verdict: Valid, why: "The card does not wake the machine; no effect on packets."},
	"-txrtlmt":      {verdict: Valid, why: "The card does not pace the host's own connections; no effect on forwarded packets."},
	"-mextpg":       {verdict: Valid, why: "The card takes no unmapped buffers, which only sendfile and TLS in the kernel use; no effect on forwarded packets."},
	"-rxtls":        {verdict: Valid, why: "No TLS in the card; no effect on forwarded packets."},
	"-txtls":        {verdict: Valid, why: "No TLS in the card; no effect on forwarded packets."},
	"promisc":       {verdict: Valid, why: "The card passes frames for all addresses; bridges set it by themselves, and each foreign frame costs CPU."},
	"-linkstate":    {verdict: Valid, why: "Changes of the link are not reported; routes over a dead link stay."},
	"polling": {record: "polling", verdict: Contradicted,
		why: "Device polling adds delay and costs one core; cards that moderate their interrupts do not need it."},
}

// optionRecord returns the record of an option, nil for none.
func (j *Auditor) optionRecord(key string) *db.Record {
	for _, r := range j.DB.ByKey(key) {
		if r.System == "freebsd" {
			return r
		}
	}
	return nil
}
