package audit

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"weir/internal/host/tune/db"
	"weir/internal/host/tune/target"
	"weir/internal/pattern"
)

// NoVersion reports whether weir does not know which keys the target has.
func (j *Auditor) NoVersion() bool { return j.Target.Family() != linux && j.Target.Base == "" }

// anyVersion judges a line for a target of unknown version. It says what the value does,
// because that holds for every version. It does not say whether the key exists and what
// its default is.
func (j *Auditor) anyVersion(r *db.Record, l Line) (Verdict, string) {
	if r.Account == db.Elsewhere || r.Account == db.Refused && isAdvised(r, l.Value) {
		if verdict, why := j.verdict(r, l.Value); verdict != IsDefault && verdict != Valid {
			return verdict, why
		}
	}
	why := "not checked, because weir does not know " + j.Target.Name + ". "
	switch {
	case r.Renamed != "":
		why += fmt.Sprintf("FreeBSD %s is the last known to have it; it was replaced by %s. ", r.Until, ofDriver(r.Renamed, l.Key))
	case r.Until != "":
		why += fmt.Sprintf("FreeBSD %s is the last known to have it. ", r.Until)
	case r.Since != "":
		why += fmt.Sprintf("FreeBSD %s is the first known to have it. ", r.Since)
	}
	return VersionUnknown, why + sentence(r)
}

// iflibForm is a device's key of iflib(4).
var iflibForm = pattern.New(`^dev\.([a-z0-9_]+?)\.[0-9%d]+\.iflib\.`)

// missing judges a key that the target does not have yet, or not for the driver that it
// names.
func (j *Auditor) missing(r *db.Record, l Line) (verdict Verdict, detail, why string, missing bool) {
	if r.System == linux {
		return "", "", "", false
	}
	first, err := strconv.Atoi(r.Since)
	if err == nil && j.Target.Major() < first {
		return Added, "FreeBSD " + r.Since, j.tooOld() + sentence(r), true
	}
	m := iflibForm.FindStringSubmatch(l.Key)
	if m == nil {
		return "", "", "", false
	}
	known, err := target.FindIflib(j.Target, m[1])
	switch {
	case err != nil || known.Drives:
		return "", "", "", false
	case known.Oldest == 0:
		return Unknown, "", "no source was found in which iflib(9) drives " + m[1] + ", and only drivers that it drives have keys with iflib in them", true
	case j.Target.Major() < known.Since:
		return Added, fmt.Sprintf("FreeBSD %d", known.Since), j.tooOld() + sentence(r), true
	}
	return Unknown, "", fmt.Sprintf("no source of FreeBSD %d was found in which iflib(9) drives %s; the oldest is of FreeBSD %d", j.Target.Major(), m[1], known.Oldest), true
}

// tooOld says that the target is too old.
func (j *Auditor) tooOld() string {
	if j.Target.Family() == "freebsd" {
		return "This version does not have it. "
	}
	return fmt.Sprintf("%s is built on FreeBSD %s, which does not have it. ", j.Target.Name, j.Target.Base)
}

// unknownKey says whose key it is, for a key without a record for the target.
func (j *Auditor) unknownKey(key string) string {
	if j.Target.Family() == linux {
		for _, r := range j.DB.Match(key) {
			if r.System != linux && r.System != "any" && (!r.Pattern() || freebsdForm.MatchString(key)) {
				return "a FreeBSD key, which Linux does not have" + nearest(r.Linux)
			}
		}
		if freebsdForm.MatchString(key) {
			return "by its name a FreeBSD key, which Linux does not have"
		}
		return noRecord
	}
	for _, r := range j.DB.Match(key) {
		if r.System == linux && (!r.Pattern() || linuxForm.MatchString(key)) {
			return "a Linux key, which FreeBSD does not have" + nearest(j.counterpart(key))
		}
	}
	switch {
	case linuxForm.MatchString(key):
		return "by its name a Linux key, which FreeBSD does not have"
	case openbsdForm.MatchString(key):
		return "an OpenBSD key, which FreeBSD does not have; if the file is OpenBSD's, its other values mean something else here, too"
	case macForm.MatchString(key):
		return "a key of macOS, which FreeBSD does not have"
	case strings.HasPrefix(key, "net.inet.ip6."):
		return "FreeBSD's keys of IPv6 begin with net.inet6"
	}
	return noRecord
}

const noRecord = "weir has no record of it"

// Keys with these prefixes belong to one system only.
var (
	freebsdForm = pattern.New(`^(net\.(inet6?|isr|link|pf|bpf|route|raw|local|iflib)|hw|machdep|security|kern|dev\.[a-z0-9_]+?\.[0-9]+)\.`)
	openbsdForm = pattern.New(`^(?:net\.inet6?\.(?:icmp6?\.rediraccept|gre\.(?:allow|wccp)|(?:ipcomp|esp|ah|etherip|mobileip)\.(?:allow|enable)|ip6?\.(?:ifq\..*|mtudisc|mtudisctimeout|mforwarding|multipath|arpqueued)|tcp\.(?:ackonpush|rfc3390|sackholelimit|baddynamic))|net\.pipex\..*|kern\.(?:bufcachepercent|somaxconn|nosuidcoredump|splassert|watchdog\..*|maxclusters)|ddb\.panic|hw\.smt|machdep\.(?:allowaperture|lidaction|kbdreset))$`)
	macForm     = pattern.New(`^(?:net\.inet\.tcp\.(?:win_scale_factor|autorcvbuf\w+|autosndbuf\w+|doauto\w+|sack|randomize_ports|v6mssdflt|local_slowstart_flightsize|mptcp_\w+)|kern\.sysv\..*|net\.link\.generic\.system\..*)$`)
	linuxForm   = pattern.New(`^(net\.(ipv4|ipv6|core|netfilter|bridge|unix|mptcp|nf_conntrack_max)|kernel|fs)\b`)
)

// nearest names a setting of the other system, if the table has one.
func nearest(setting string) string {
	if setting == "" || strings.HasPrefix(setting, "none") {
		return ""
	}
	return "; nearest there: " + setting
}

// counterpart returns a FreeBSD key whose record names a Linux key as the nearest. It
// prefers a record that names nothing else, then the first. It returns "" for none.
func (j *Auditor) counterpart(key string) string {
	first := ""
	for _, r := range j.DB.Records {
		if r.System != "freebsd" || r.Row == nil || r.Account != db.Kept && r.Account != db.Refused {
			continue
		}
		if r.Linux == key {
			return r.Key
		}
		words := strings.FieldsFunc(r.Linux, func(c rune) bool { return c == ' ' || c == ',' || c == '=' })
		if first == "" && slices.Contains(words, key) {
			first = r.Key
		}
	}
	return first
}
