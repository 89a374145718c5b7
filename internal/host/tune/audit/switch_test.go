package audit_test

import (
	"fmt"
	"strings"
	"testing"

	"weir/internal/host/tune/audit"
)

// TestFirewallSwitches checks what is made of the switches of a card's offloads in config.xml:
// those that are there, those that pfSense sets and that are missing, those of one interface.
func TestFirewallSwitches(t *testing.T) {
	for _, c := range []struct {
		name, target, text string
		want               string // line:key=value verdict
		why                string // part of the last one's reason
	}{
		{"pfsense, as shipped", "pfsense-2.7", "<pfsense>\n<system>\n<hostname>a</hostname>\n<disablesegmentationoffloading/>\n<disablelargereceiveoffloading></disablelargereceiveoffloading>\n</system>\n</pfsense>\n",
			"4:disablesegmentationoffloading=1 the default now 5:disablelargereceiveoffloading=1 the default now", "Hardware Large Receive Offloading is off"},
		{"pfsense, boxes not checked", "pfsense-2.7", "<pfsense>\n<system>\n<hostname>a</hostname>\n<disablechecksumoffloading/>\n</system>\n</pfsense>\n",
			"4:disablechecksumoffloading=1 still valid 2:disablesegmentationoffloading=0 endpoint only 2:disablelargereceiveoffloading=0 dangerous", "panics"},
		{"pfsense, an excerpt", "pfsense-2.7", "<pfsense>\n<system>\n<timezone>UTC</timezone>\n</system>\n</pfsense>\n", "", ""},
		{"pfsense, says 0", "pfsense-2.7", "<pfsense>\n<system>\n<disablelargereceiveoffloading>0</disablelargereceiveoffloading>\n</system>\n</pfsense>\n",
			"3:disablelargereceiveoffloading=1 the default now", ""},
		{"opnsense, as shipped", "opnsense-24.7", "<opnsense>\n<system>\n<hostname>a</hostname>\n<disablevlanhwfilter>1</disablevlanhwfilter>\n<disablechecksumoffloading>1</disablechecksumoffloading>\n<disablesegmentationoffloading>1</disablesegmentationoffloading>\n<disablelargereceiveoffloading>1</disablelargereceiveoffloading>\n</system>\n</opnsense>\n",
			"4:disablevlanhwfilter=1 the default now 5:disablechecksumoffloading=1 the default now 6:disablesegmentationoffloading=1 the default now 7:disablelargereceiveoffloading=1 the default now", ""},
		{"opnsense, boxes not checked", "opnsense-24.7", "<opnsense>\n<system>\n<hostname>a</hostname>\n<disablevlanhwfilter>2</disablevlanhwfilter>\n<disablesegmentationoffloading>1</disablesegmentationoffloading>\n</system>\n</opnsense>\n",
			"4:disablevlanhwfilter=2 the default now 5:disablesegmentationoffloading=1 the default now 2:disablechecksumoffloading=0 still valid 2:disablelargereceiveoffloading=0 dangerous", "panics"},
		{"opnsense, an excerpt", "opnsense-24.7", "<opnsense>\n<system>\n<timezone>UTC</timezone>\n</system>\n</opnsense>\n", "", ""},
		{"opnsense, moved to the newer place", "opnsense-26.1", "<opnsense>\n<system>\n<hostname>a</hostname>\n</system>\n<OPNsense>\n<Interfaces><settings>\n<disablelargereceiveoffloading>1</disablelargereceiveoffloading>\n</settings></Interfaces></OPNsense>\n</opnsense>\n",
			"7:disablelargereceiveoffloading=1 the default now", ""},
		{"opnsense, the newer place in front", "opnsense-26.1", "<opnsense>\n<OPNsense><Interfaces><settings/></Interfaces></OPNsense>\n<system>\n<hostname>a</hostname>\n</system>\n</opnsense>\n", "", ""},
		{"opnsense, filtering of VLANs", "opnsense-24.7", "<opnsense>\n<OPNsense><Interfaces><settings>\n<disablevlanhwfilter>0</disablevlanhwfilter>\n</settings></Interfaces></OPNsense>\n</opnsense>\n",
			"3:disablevlanhwfilter=0 still valid", "Leave it off on bridges"},
		{"opnsense, its newer place", "opnsense-25.7", "<opnsense>\n<OPNsense><Interfaces><settings>\n<disablesegmentationoffloading>0</disablesegmentationoffloading>\n<disablelargereceiveoffloading/>\n<disablevlanhwfilter>2</disablevlanhwfilter>\n</settings></Interfaces></OPNsense>\n</opnsense>\n",
			"3:disablesegmentationoffloading=0 endpoint only 4:disablelargereceiveoffloading=0 dangerous 5:disablevlanhwfilter=2 the default now", "as the card has it: nothing is set"},
		{"opnsense, of an interface", "opnsense-24.7", "<opnsense>\n<interfaces>\n<wan>\n<if>igb0</if>\n<hw_settings_overwrite>1</hw_settings_overwrite>\n<disablesegmentationoffloading>1</disablesegmentationoffloading>\n<disablevlanhwfilter>2</disablevlanhwfilter>\n</wan>\n<lan>\n<if>igb1</if>\n<disablelargereceiveoffloading>1</disablelargereceiveoffloading>\n</lan>\n</interfaces>\n</opnsense>\n",
			"6:wan.disablesegmentationoffloading=1 the default now 7:wan.disablevlanhwfilter=2 the default now 3:wan.disablechecksumoffloading=0 still valid 3:wan.disablelargereceiveoffloading=0 dangerous", "for wan, "},
		{"opnsense, an excerpt of an interface", "opnsense-24.7", "<opnsense>\n<interfaces>\n<wan>\n<hw_settings_overwrite>1</hw_settings_overwrite>\n<disablechecksumoffloading>1</disablechecksumoffloading>\n</wan>\n</interfaces>\n</opnsense>\n",
			"5:wan.disablechecksumoffloading=1 the default now", "for wan, "},
		{"another system", "freebsd-14", "<pfsense>\n<system>\n<disablelargereceiveoffloading/>\n</system>\n</pfsense>\n", "3:disablelargereceiveoffloading=1 unknown", "a switch in config.xml"},
		{"an unknown version", "pfsense-3.1", "<pfsense>\n<system>\n<hostname>a</hostname>\n<disablesegmentationoffloading/>\n</system>\n</pfsense>\n",
			"4:disablesegmentationoffloading=1 version unknown 2:disablelargereceiveoffloading=0 dangerous", "panics"},
	} {
		lines, passed, err := audit.Read(strings.NewReader(c.text), "config.xml", func(string) bool { return false })
		if err != nil || len(passed) > 0 {
			t.Errorf("%s: %v, passed over %v", c.name, err, passed)
		}
		j := judge(t, c.target)
		var got []string
		last := ""
		for _, l := range lines {
			f := j.Check(l)
			got, last = append(got, fmt.Sprintf("%d:%s=%s %s", l.Line, l.Key, l.Value, f.Verdict)), f.Why
		}
		if got := strings.Join(got, " "); got != c.want || !strings.Contains(last, c.why) {
			t.Errorf("%s:\n got %s (%s)\nwant %s (%s)", c.name, got, last, c.want, c.why)
		}
	}
}
