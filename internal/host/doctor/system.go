package doctor

import (
	"fmt"
	"slices"
	"strings"
)

func systemChecks() []Check {
	return []Check{
		{ID: "IRQ-4", Title: "irqbalance moves interrupts", Reads: []string{"services", "irqs"}, Worst: Notice, needs: []need{noServices}, run: balancer},
		{ID: "UNDO-1", Title: "a service may undo settings", Reads: []string{"services"}, Worst: Notice, needs: []need{noServices}, run: undoers},
		{ID: "VER-1", Title: "files set keys that this kernel does not have", Reads: []string{"unknown_sysctls"}, Worst: Notice, run: unknownKeys},
		{ID: "NAPI-1", Title: "receiving runs in kernel threads", Reads: []string{"interfaces.threaded_napi"}, Worst: Notice, needs: []need{(*view).noNICs}, run: eachNIC(threads)},
		{ID: "LOG-1", Title: "the kernel logs single packets", Reads: []string{"sysctls"}, Worst: Warning, run: loggedPackets},
		{ID: "COST-1", Title: "doctor itself was held up", Reads: []string{"seconds", "wished_seconds", "cost"}, Worst: Warning, needs: []need{noTimes}, run: starved},
	}
}

func balancer(v *view) (o outcome) {
	if !slices.Contains(v.Services, "irqbalance") {
		return o
	}
	o.add(Finding{
		Severity: Notice, core: -1,
		Says:     "irqbalance runs: every 10 s it moves interrupts according to their load, and does not know which queues belong together",
		Evidence: []string{"program irqbalance runs"},
		Remedies: []Remedy{{Command: "systemctl disable --now irqbalance", Text: "before you set affinities by hand; otherwise it undoes them"}},
		Expect:   "affinities stay as set",
	})
	return o
}

// meddlers are services that change settings made by an admin or by weir tune.
var meddlers = map[string]struct {
	does    string
	command string // with %s for an interface
	text    string
}{
	"tuned": {"applies its profile's sysctls, governor and offloads at its start and at changes of hardware",
		"tuned-adm off", "or put lasting settings into a profile of your own"},
	"NetworkManager": {"sets MTU, offloads and addresses of the interfaces that it manages each time they come up",
		"nmcli device set %s managed no", "repeat for each of the router's interfaces; or put lasting settings into its connections"},
	"systemd-networkd": {"sets forwarding, accept_ra and MTU of the interfaces that it manages each time they come up",
		"networkctl status %s", "shows the interface's file (Network File): put lasting settings there"},
}

func undoers(v *view) (o outcome) {
	for _, s := range v.Services {
		if m, meddles := meddlers[s]; meddles {
			o.add(Finding{
				Severity: Notice, core: -1, Subject: s,
				Says:     fmt.Sprintf("%s runs: it %s", s, m.does),
				Evidence: []string{"program " + s + " runs"},
				Remedies: []Remedy{{Command: strings.ReplaceAll(m.command, "%s", v.someCard()), Text: m.text}},
				Expect:   "settings survive a link change",
			})
		}
	}
	return o
}

// someCard returns the name of a card that is up, for a command that has to be repeated
// for each.
func (v *view) someCard() string {
	if len(v.nics) == 0 {
		return "eth0"
	}
	return v.nics[0].Name
}

// unknownKeys finds settings meant for another kernel. Whoever wrote the line believes
// that it works.
func unknownKeys(v *view) (o outcome) {
	switch {
	case v.Unknown == nil && v.Unreadable["unknown_sysctls"] == "":
		o.absent = "no files that set sysctls were read"
		return o
	case v.Unknown == nil:
		o.lacks(v, "unknown_sysctls")
		return o
	case len(v.Unknown) == 0:
		return o
	}
	const shown = 5
	f := Finding{
		Severity: Notice, core: -1,
		Says:     fmt.Sprintf("%s set by %s: this kernel has no such key", v.Unknown[0].Key, v.Unknown[0].At),
		Remedies: []Remedy{{Command: "weir tune audit --target linux " + fileOf(v.Unknown[0].At), Text: "shows for each line whether the key was renamed, removed or never there; then remove the line"}},
		Expect:   "the file matches the kernel's settings; nothing else changes",
	}
	if n := len(v.Unknown); n > 1 {
		f.Says = fmt.Sprintf("%d lines of files set keys that this kernel does not have: the first is %s by %s", n, v.Unknown[0].Key, v.Unknown[0].At)
	}
	for i, l := range v.Unknown {
		if i == shown {
			f.Evidence = append(f.Evidence, fmt.Sprintf("and %d more", len(v.Unknown)-shown))
			break
		}
		f.Evidence = append(f.Evidence, l.At+": "+l.Key)
	}
	o.add(f)
	return o
}

// fileOf returns the file of "file:line".
func fileOf(at string) string {
	if i := strings.LastIndexByte(at, ':'); i > 0 {
		return at[:i]
	}
	return at
}

// threads matter if a core is full: a thread can move to an idle core, a softirq cannot.
func threads(v *view, n *nic, o *outcome) {
	if n.Threaded == nil {
		o.lacks(v, "interfaces."+n.Name+".threaded_napi")
		return
	}
	c := v.load(n)
	if *n.Threaded || n.queueCount() != 1 || c == nil || c.busy < full || !c.forwards() {
		return
	}
	o.add(Finding{
		Severity: Notice, Subject: n.Name, core: c.ID,
		Says:     fmt.Sprintf("%s has one queue, and %s, which serves it, is full: it could receive in a thread that the scheduler can move", n.Name, c.name()),
		Evidence: []string{n.Name + ": threaded NAPI is off", c.line()},
		Remedies: []Remedy{{Command: "echo 1 > /sys/class/net/" + n.Name + "/threaded", Text: "run it in a thread, so that programs and other interrupts do not share its core"}},
		Expect:   "the core has all its time for packets; a queue still uses one core",
	})
}

// starved reports a finding if doctor itself waited for the processor. On a saturated box,
// programs get no time (a stall of 53 s has been seen).
func starved(v *view) (o outcome) {
	if late := v.Seconds - v.Wished; late >= 1 && v.Seconds >= 1.5*v.Wished {
		o.add(Finding{
			Severity: Warning, core: -1, weight: late,
			Says:     fmt.Sprintf("doctor asked for %s and got the processor back only after %s: programs on this box get too little time", seconds(v.Wished), seconds(v.Seconds)),
			Evidence: []string{fmt.Sprintf("%s late", seconds(late))},
			Remedies: []Remedy{v.forPrograms()},
			Expect:   "logins, routing daemons and weir's own commands answer under load",
		})
	}
	return o
}

// forPrograms takes all queues off the last core that has some.
func (v *view) forPrograms() Remedy {
	leave := Remedy{Command: "weir affinity", Text: "see which cores receive, and leave one to programs: take it out of the interrupts' affinity (weir affinity set)"}
	by := v.places(&outcome{})
	cores := sortedKeys(by)
	if len(cores) < 2 {
		return leave
	}
	last, to := cores[len(cores)-1], cores[0]
	command := "weir affinity set"
	for _, p := range by[last] {
		command += fmt.Sprintf(" %s:%d=%d", p.nic.Name, p.queue.n, to)
	}
	return Remedy{Command: command, Text: fmt.Sprintf("leave cpu%d to programs", last)}
}
