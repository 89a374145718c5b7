package audit

import (
	"strings"

	"weir/internal/pattern"
)

// A profile is the state of a profile of tuned's: the section that a line is in.
type profile struct{ section string }

var (
	sectionForm = pattern.New(`^\[([\w.-]+)\]$`)
	optionLine  = pattern.New(`^(\w+)\s*=\s*["']?([^"'#]*[^"'#\s])["']?$`)
)

// line returns the settings of a line in tuned's sections net and cpu: of all cards that the
// section does not leave out. nil: there is none.
func (p *profile) line(text string) []Line {
	if m := sectionForm.FindStringSubmatch(text); m != nil {
		p.section = m[1]
		return nil
	}
	m := optionLine.FindStringSubmatch(text)
	if m == nil || p.section != "net" && p.section != "cpu" {
		return nil
	}
	words := strings.Fields(m[2])
	switch p.section + "." + m[1] {
	case "cpu.governor":
		return []Line{{Key: "cpu.governor", Value: m[2]}}
	case "net.nf_conntrack_hashsize":
		return []Line{{Key: "net.netfilter.nf_conntrack_buckets", Value: m[2]}}
	case "net.ring":
		return ethtoolLines("rings", "*", words, false)
	case "net.channels":
		return ethtoolLines("queues", "*", words, false)
	case "net.coalesce", "net.features", "net.pause":
		return ethtoolLines(m[1], "*", words, false)
	case "net.txqueuelen", "net.mtu":
		return []Line{{Key: "nic.*." + m[1], Value: m[2]}}
	}
	return nil
}
