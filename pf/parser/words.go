package parser

import (
	"maps"
	"slices"
)

// Words of the grammar. They serve for suggestions, and to distinguish unsupported syntax
// from misspelt words.
var (
	// headWords start the clauses of a rule with a fixed place.
	headWords = []string{"in", "out", "log", "quick", "on", "inet", "inet6", "proto", "all", "from", "os", "to"}

	// optionalWords start the options of a rule.
	optionalWords = []string{
		"user", "group", "flags", "icmp-type", "icmp6-type", "keep", "modulate", "synproxy", "no", "allow-opts", "label", "tag", "tagged",
		"nat-to", "rdr-to", "binat-to", "af-to", "route-to", "reply-to", "dup-to",
	}

	// freebsdWords start options that only FreeBSD's rules have.
	freebsdWords = []string{"ridentifier", "tracker", "dnpipe", "dnqueue", "fastroute"}

	// clauseWords are all words that can start a clause.
	clauseWords = slices.Concat(headWords, optionalWords, freebsdWords, slices.Sorted(maps.Keys(filterWords)), []string{"port"})

	statementWords = []string{
		"pass", "block", "match", "anchor", "load", "antispoof", "table", "set", "queue", "oldqueue", "altq", "pipe", "sched", "include", "state", "source", "pppoe", "wireguard", "peer", "ikev2",
		"nat", "rdr", "binat", "no", "nat-anchor", "rdr-anchor", "binat-anchor", "dummynet-anchor", "scrub-anchor", "scrub", "ether", "dummynet",
	}

	startsStatement = setOf(statementWords...)

	// timeoutNames are the names in set timeout.
	timeoutNames = []string{
		"tcp.first", "tcp.opening", "tcp.established", "tcp.closing", "tcp.finwait", "tcp.closed", "tcp.tsdiff",
		"udp.first", "udp.single", "udp.multiple", "icmp.first", "icmp.error",
		"other.first", "other.single", "other.multiple", "frag", "interval", "src.track",
		"adaptive.start", "adaptive.end",
		"sctp.first", "sctp.opening", "sctp.established", "sctp.closing", "sctp.closed", // FreeBSD's
	}

	// limitNames are the names in set limit.
	limitNames = []string{
		"states", "src-nodes", "frags", "tables", "table-entries", "pktdelay-pkts", "anchors",
		"eth-anchors", // FreeBSD's
	}
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
