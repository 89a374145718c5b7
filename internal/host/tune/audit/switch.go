package audit

import (
	"fmt"
	"slices"
	"strings"
)

// firewallSwitches are the elements of a firewall's config.xml that switch a card's offloads off,
// with the options of ifconfig that they stand for. 1 is off, 0 is on as far as the card can.
var firewallSwitches = map[string]struct {
	off, on string // options of ifconfig
	name    string // the box in the web interface
}{
	"disablechecksumoffloading":     {"-rxcsum", "rxcsum", "Hardware Checksum Offloading"},
	"disablesegmentationoffloading": {"-tso", "tso", "Hardware TCP Segmentation Offloading"},
	"disablelargereceiveoffloading": {"-lro", "lro", "Hardware Large Receive Offloading"},
	"disablevlanhwfilter":           {"-vlanhwfilter", "vlanhwfilter", "VLAN Hardware Filtering"},
}

// shippedSwitches are the switches that a firewall sets when it is installed.
var shippedSwitches = map[string][]string{
	"pfsense":  {"disablesegmentationoffloading", "disablelargereceiveoffloading"},
	"opnsense": {"disablevlanhwfilter", "disablechecksumoffloading", "disablesegmentationoffloading", "disablelargereceiveoffloading"},
}

// splitSwitch returns the switch that a key names, and the interface that it is for; "": all.
func splitSwitch(key string) (name, on string, found bool) {
	on, name, single := strings.Cut(key, ".")
	if !single {
		on, name = "", key
	}
	_, found = firewallSwitches[name]
	return name, on, found
}

// firewallSwitch judges a switch of config.xml.
func (j *Auditor) firewallSwitch(l Line) (f Finding, found bool) {
	name, on, found := splitSwitch(l.Key)
	s := firewallSwitches[name]
	family := j.Target.Family()
	if !found {
		return f, false
	}
	f.Line = l
	if shippedSwitches[family] == nil {
		f.Verdict, f.Why = Unknown, "a switch in config.xml of pfSense and OPNsense"
		return f, true
	}
	off := l.Value == "1"
	option, state := s.on, "on"
	if off {
		option, state = s.off, "off"
	}
	o := interfaceOptions[option]
	f.Verdict, f.Why = o.verdict, o.why
	if r := j.optionRecord(o.record); r != nil && f.Why == "" {
		f.Why = r.Rationale + " " + r.Risk + " Evidence: " + string(r.Grade()) + "."
	}
	shipped := slices.Contains(shippedSwitches[family], name)
	switch {
	case name == "disablevlanhwfilter" && l.Value == "2":
		f.Verdict, f.Why, state = IsDefault, "nothing is set.", "as the card has it"
	case name == "disablesegmentationoffloading" && !off:
		f.Verdict, f.Why = EndpointOnly, "the card splits large packets of the box's own connections only; forwarded packets are never that large. Drivers get it wrong at times, and netmap (inline IPS, Zenarmor) does not work with it."
	case name == "disablevlanhwfilter" && !off && shipped:
		f.Verdict, f.Why = Valid, "the card passes only frames of the VLANs that the box has, and handles their tags. Leave it off on bridges and with netmap (inline IPS, Zenarmor)."
	case off == shipped:
		f.Verdict = IsDefault
	case name == "disablechecksumoffloading" && !off:
		f.Verdict, f.Why = Valid, "the card computes checksums, which saves CPU. Leave it off on vtnet, on cards that compute wrong ones (some of Realtek's), and with netmap (inline IPS, Zenarmor)."
	}
	f.Why = fmt.Sprintf("%s is %s: %s", s.name, state, f.Why)
	if on != "" {
		f.Why = "for " + on + ", " + f.Why
	}
	return f, true
}
