package parser

import (
	"maps"
	"slices"
)

// Words of the grammar, for suggestions, and to tell what is known but not
// supported yet from what is misspelt.
var (
	// headWords start the clauses of a rule that have a fixed place.
	headWords = []string{"in", "out", "quick", "on", "inet", "inet6", "proto", "all", "from", "to"}

	// optionalWords start the options of a rule.
	optionalWords = []string{
		"flags", "icmp-type", "icmp6-type", "keep", "no", "allow-opts", "label", "tag", "tagged", "nat-to", "rdr-to",
	}

	// unsupportedClauseWords start clauses that are not read yet.
	unsupportedClauseWords = setOf(
		"log", "os", "user", "group", "tos", "modulate", "synproxy", "fragment", "once", "max-pkt-rate", "max-pkt-size",
		"probability", "prio", "set", "queue", "rtable", "rdomain", "divert-to", "divert-reply", "divert-packet", "scrub",
		"af-to", "binat-to", "route-to", "reply-to", "dup-to", "received-on", "ridentifier", "fastroute",
	)

	// clauseWords are all words that a clause can start with.
	clauseWords = slices.Concat(headWords, optionalWords, []string{"port"}, slices.Sorted(maps.Keys(unsupportedClauseWords)))

	statementWords = append([]string{"pass", "block", "match", "antispoof", "table", "set"}, unsupportedStatements...)

	startsStatement = setOf(statementWords...)

	optionWords = append([]string{"timeout", "limit", "skip", "block-policy", "implicit-pass"}, unsupportedOptions...)

	// timeoutNames are the names in set timeout.
	timeoutNames = []string{
		"tcp.first", "tcp.opening", "tcp.established", "tcp.closing", "tcp.finwait", "tcp.closed", "tcp.tsdiff",
		"udp.first", "udp.single", "udp.multiple", "icmp.first", "icmp.error",
		"other.first", "other.single", "other.multiple", "frag", "interval", "src.track",
		"adaptive.start", "adaptive.end",
	}

	// keywords cannot stand for names without quotes. They are OpenBSD's.
	keywords = setOf(
		"af-to", "all", "allow-opts", "anchor", "antispoof", "any", "bandwidth", "binat-to", "bitmask", "block",
		"block-policy", "burst", "code", "debug", "default", "delay", "divert-packet", "divert-reply", "divert-to",
		"drop", "dup-to", "file", "fingerprints", "flags", "floating", "flows", "flush", "for", "fragment", "from",
		"global", "group", "hostid", "icmp-type", "icmp6-type", "if-bound", "in", "include", "inet", "inet6", "keep",
		"label", "least-states", "limit", "load", "log", "loginterface", "match", "matches", "max", "max-mss",
		"max-pkt-rate", "max-src-conn", "max-src-conn-rate", "max-src-nodes", "max-src-states", "min", "min-ttl",
		"modulate", "nat-to", "no", "no-df", "no-route", "no-sync", "on", "once", "optimization", "os", "out",
		"overload", "parent", "pass", "pflow", "port", "prio", "probability", "proto", "qlimit", "quantum", "queue",
		"quick", "random", "random-id", "rdomain", "rdr-to", "reassemble", "received-on", "reply-to", "return",
		"return-icmp", "return-icmp6", "return-rst", "round-robin", "route", "route-to", "rtable", "rule",
		"ruleset-optimization", "scrub", "set", "skip", "sloppy", "source-hash", "source-track", "state",
		"state-defaults", "state-policy", "static-port", "sticky-address", "syncookies", "synproxy", "table", "tag",
		"tagged", "timeout", "to", "tos", "ttl", "urpf-failed", "user", "weight",
	)
)

func setOf(words ...string) map[string]bool {
	set := make(map[string]bool, len(words))
	for _, w := range words {
		set[w] = true
	}
	return set
}

// isClauseWord reports whether a clause can start with w.
func isClauseWord(w string) bool { return w != "port" && slices.Contains(clauseWords, w) }
