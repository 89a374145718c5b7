package doctor

import (
	"cmp"
	"fmt"
	"strings"
)

// sessionPatience is for how many seconds a session may be on its way.
const sessionPatience = 15

// A step is one of PPPoE, where attempts end.
type step struct {
	means   string // what it means when they do
	command string // {session} and {below} stand for the names of the interface, and of the one below
	text    string
}

const readLog = "weir pppoe log {session}"

var steps = map[string]step{
	"PADI":           {"no concentrator answers", "tcpdump -eni {below} pppoed", "see whether PADI leave and PADO come: if none come, the modem does not bridge, or the provider wants a VLAN (pppoe … on eth0.7)"},
	"PADR":           {"a concentrator offers, and gives no session", readLog, "see what it says; some give none before an old session has timed out, others want service or host-uniq"},
	"LCP":            {"the two ends do not agree on the link", readLog, "see which option is refused; with an mtu above 1492, leave it out"},
	"authentication": {"the provider does not take the name or the password", "weir pppoe reconnect {session}", "after user and password file have been corrected; some providers lock a line after wrong passwords, so attempts are far apart"},
	"IPCP":           {"the provider gives no address", readLog, "see what it says; inet or inet6 asks for one family only"},
	"session":        {"the session has ended, and there is no other yet", readLog, "see who ended it, and how often: PADT or Terminate-Request, or no answers to echo requests"},
}

// sessions checks the PPPoE sessions of weir. What it says is from their logs.
func sessions(v *view) (o outcome) {
	if v.Weir == nil || len(v.Weir.Sessions) == 0 {
		o.absent = "weir has no PPPoE interface"
		if v.Unreadable["weir.sessions"] != "" {
			o.lacks(v, "weir.sessions")
		}
		return o
	}
	for i := range v.Weir.Sessions {
		v.session(&o, &v.Weir.Sessions[i])
	}
	return o
}

func (v *view) session(o *outcome, s *WeirSession) {
	f := Finding{
		Severity: Critical, Subject: s.Name, core: -1,
		Evidence: []string{fmt.Sprintf("%s on %s: %s for %s", s.Name, s.On, s.State, seconds(s.Seconds))},
	}
	for _, quirk := range s.Quirks {
		f.Evidence = append(f.Evidence, "the provider: "+quirk)
	}
	switch s.State {
	case "up":
		if len(s.Quirks) == 0 {
			return
		}
		f.Severity = Notice
		f.Says = fmt.Sprintf("%s is up, but its provider does what others do not: %s", s.Name, s.Quirks[len(s.Quirks)-1])
		f.Remedies = []Remedy{{Command: "weir pppoe log " + s.Name, Text: "see what was said"}}
		f.Expect = "to know what to ask the provider"
	case "down":
		f.Severity = Notice
		f.Says = fmt.Sprintf("%s is down by command", s.Name)
		f.Remedies = []Remedy{{Command: "weir pppoe reconnect " + s.Name, Text: "make a session"}}
		f.Expect = "a session"
	case "failed":
		f.Says = fmt.Sprintf("%s has no PPPoE session: the box is not ready for it: %s", s.Name, s.Why)
		f.Remedies = []Remedy{{Command: "ip -br link show " + s.On, Text: "the interface below has to be there and up, and the password file to be readable by its owner alone"}}
		f.Expect = "a session within seconds"
	default:
		if s.Seconds < sessionPatience && s.State == "starting" && s.Why == "" {
			return
		}
		at, known := steps[s.Step]
		if !known {
			at = step{"it is on its way", readLog, "see how far it comes"}
		}
		f.Says = fmt.Sprintf("%s has no PPPoE session: attempts end at %s, %s", s.Name, cmp.Or(s.Step, "the start"), at.means)
		if s.Why != "" {
			f.Evidence = append(f.Evidence, "said last: "+s.Why)
		}
		names := strings.NewReplacer("{session}", s.Name, "{below}", s.On)
		f.Remedies = []Remedy{{Command: names.Replace(at.command), Text: at.text}}
		f.Expect = "a session"
	}
	o.add(f)
}
