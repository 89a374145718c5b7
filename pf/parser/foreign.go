package parser

import (
	"regexp"

	"weir/pf/token"
)

// foreign are lines that only the files of other firewalls have.
var foreign = []struct {
	whose string
	line  *regexp.Regexp
}{
	{"nftables", regexp.MustCompile(`(?m)^\s*(#!\S*/nft\b|flush ruleset|(sudo )?(\S*/)?nft\s+(-\S+\s+)*(add|insert|create|flush|delete|list|replace)\b|(add |create )?(table|chain|rule|set) (inet|ip|ip6|arp|bridge|netdev) \S+)`)},
	{"iptables", regexp.MustCompile(`(?m)^\s*((sudo )?(\S*/)?ip6?tables(-restore)?\b|\*(filter|nat|mangle|raw)\s*$|:(INPUT|FORWARD|OUTPUT|PREROUTING|POSTROUTING)\b|-[AIP] [A-Z]+ )`)},
	{"ipfw", regexp.MustCompile(`(?m)^\s*((sudo )?(\S*/)?ipfw\s+(-\S+\s+)*(add|delete|flush|table|set)\b|add (\d+ )?(allow|deny|count|check-state|divert|fwd)\b)`)},
}

// foreignPart limits how much of a file is searched for such lines.
const foreignPart = 64 << 10

// hint says whose file this is, if it has errors and is another firewall's.
func (p *parser) hint(file *token.File) {
	if !p.faults.HasErrors() {
		return
	}
	text := file.Src[:min(len(file.Src), foreignPart)]
	for _, f := range foreign {
		if at := f.line.FindSubmatchIndex(text); at != nil {
			span := token.Span{Pos: file.Pos(at[2]), End: file.Pos(at[3])}
			p.faults.Errorf(span, "this is a file for %s; weir reads the rules of pf: pf.conf(5)", f.whose)
			return
		}
	}
}
