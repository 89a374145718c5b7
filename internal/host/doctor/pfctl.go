package doctor

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"weir/internal/pattern"
)

var (
	pfStatus  = pattern.New(`^Status: (Enabled|Disabled)(?: for \d+ days \d\d:\d\d:\d\d)?(?:\s+Debug: \S+)?$`)
	pfCounter = pattern.New(`^  ([a-z][a-z0-9 .()_/-]*?)\s{2,}(\d+)(?:\s+(\d+\.\d)/s)?$`)
	pfLimit   = pattern.New(`^(states|src-nodes|frags|tables|table-entries|pktdelay-pkts|anchors|eth-anchors)\s+hard limit\s+(\d+)$`)
	pfTimeout = pattern.New(`^[a-z]+(?:\.[a-z.]+)?\s+\d+(?:s| states)$`)
	// Lines without a relevant figure.
	pfOther = pattern.New(`^(?:Hostid:\s+0x[0-9a-f]+|Checksum:\s+0x[0-9a-f]+|Interface Stats for \S+\s+IPv4\s+IPv6|` +
		`  (?:Bytes|Packets) (?:In|Out)(?:\s+\d+\s+\d+)?|    (?:Passed|Blocked)\s+\d+\s+\d+|(?:Limit |Source Tracking )?Counters(?:\s+Total\s+Rate)?|--- -s[imt] ---)$`)
	pfTable = pattern.New(`^(State Table|Source Tracking Table|Fragments)(?:\s+Total\s+Rate)?$`)
	// Settings of syncookies, each on its own line.
	pfCookies = pattern.New(`^(?:Adaptive )?(Syncookies)(?: Watermarks)?$`)
	pfSetting = pattern.New(`^  [a-z][a-z ]*?\s{2,}\S+(?: (?:%|states))?$`)
	// FreeBSD's pfctl prints this first on a kernel without ALTQ.
	pfNoALTQ = pattern.New(`^(?:pfctl: )?(?:No ALTQ support in kernel|ALTQ related functions disabled)$`)
)

// readPF reads the output of pfctl -si, which the output of -sm and -st may follow.
func readPF(text string) (*Snapshot, error) {
	p := &PF{Counters: map[string]int{}}
	section, began, states, counters := "", false, false, false
	for number, line := range lines(text) {
		if pfNoALTQ.MatchString(line) {
			continue
		}
		if !began {
			status := pfStatus.FindStringSubmatch(line)
			if status == nil {
				return nil, errOther
			}
			p.Enabled, began = status[1] == "Enabled", true
			continue
		}
		switch table, counter, limit := pfTable.FindStringSubmatch(line), pfCounter.FindStringSubmatch(line), pfLimit.FindStringSubmatch(line); {
		case table != nil:
			section = table[1]
		case pfCookies.MatchString(line), section == "Syncookies" && pfSetting.MatchString(line):
			section = "Syncookies"
		case limit != nil:
			if limit[1] == "states" {
				p.StateLimit = whole(limit[2])
			}
		case pfOther.MatchString(line), pfTimeout.MatchString(line):
			if strings.Contains(line, "Counters") {
				section = strings.Fields(line)[0]
			}
		case counter != nil && section == "State Table":
			if counter[1] == "current entries" {
				p.States, states = whole(counter[2]), true
			}
		case counter != nil && strings.HasSuffix(section, "Table"), counter != nil && section == "Fragments":
		case counter != nil && section != "":
			p.Counters[counter[1]] = whole(counter[2])
			counters = counters || section == "Counters"
		default:
			return nil, fmt.Errorf("line %d: %q", number, line)
		}
	}
	switch {
	case !began:
		return nil, errOther
	case !states:
		return nil, errors.New("it has no number of states: it is cut")
	case !counters:
		return nil, errors.New("it has no Counters: it is cut")
	}
	return &Snapshot{PF: p}, nil
}

// whole returns a number that a pattern matched. A number too large for an int becomes
// the largest int.
func whole(digits string) int {
	n, err := strconv.Atoi(digits)
	if err != nil {
		return int(^uint(0) >> 1)
	}
	return n
}
