package lint

import (
	"sync"

	"weir/pf/ast"
	"weir/pf/field"
	"weir/pf/resolve"
)

const protoTCP = 6

// takesAll reports whether a rule with quick takes every packet that matches what the
// index and covers compare. It then asks for nothing else.
func takesAll(r *resolve.Rule) bool { return r.Quick && takes(r) }

// takes is takesAll for a rule that no later one overrules.
func takes(r *resolve.Rule) bool {
	if (r.Nat != nil || r.Rdr != nil || r.AfTo != nil) && r.Family == ast.AnyFamily {
		return false
	}
	return narrowing().Given(r) == ""
}

// narrowing is the set of conditions that are not compared.
var narrowing = sync.OnceValue(func() resolve.Fields {
	return resolve.FieldsThat(func(f *field.Field) bool { return f.Lint == field.Narrows })
})

// covers reports whether every packet that meets the ports, flags and ICMP types of r
// also meets those of q.
func covers(q, r *resolve.Rule) bool {
	return portCovers(q.From.Port, r.From.Port) && portCovers(q.To.Port, r.To.Port) && flagsCover(q, r) && icmpCovers(q.ICMP, r.ICMP)
}

// flagsCover compares TCP flags, which only TCP packets have.
func flagsCover(q, r *resolve.Rule) bool {
	if r.Proto != 0 && r.Proto != protoTCP {
		return true
	}
	return r.Flags.Mask&q.Flags.Mask == q.Flags.Mask && r.Flags.Set&q.Flags.Mask == q.Flags.Set
}

func icmpCovers(q, r resolve.ICMPType) bool {
	return !q.Asked || q == r || r.Asked && q.Type == r.Type && !q.HasCode
}

func portCovers(q, r resolve.PortRange) bool {
	if q.Op == ast.AnyPort || q == r {
		return true
	}
	if r.Op == ast.AnyPort {
		return false // matches protocols without ports too
	}
	outer := portRanges(q)
	for _, s := range portRanges(r) {
		in := false
		for _, o := range outer {
			in = in || s[0] > s[1] || o[0] <= s[0] && s[1] <= o[1]
		}
		if !in {
			return false
		}
	}
	return true
}

// portRanges returns the ports of a condition as ranges, first and last.
func portRanges(p resolve.PortRange) [][2]int {
	low, high := int(p.Low), int(p.High)
	switch p.Op {
	case ast.PortEqual:
		return [][2]int{{low, low}}
	case ast.PortNotEqual:
		return [][2]int{{0, low - 1}, {low + 1, 65535}}
	case ast.PortLess:
		return [][2]int{{0, low - 1}}
	case ast.PortLessEqual:
		return [][2]int{{0, low}}
	case ast.PortGreater:
		return [][2]int{{low + 1, 65535}}
	case ast.PortGreaterEqual:
		return [][2]int{{low, 65535}}
	case ast.PortRange:
		return [][2]int{{low, high}}
	case ast.PortInside:
		return [][2]int{{low + 1, high - 1}}
	case ast.PortOutside:
		return [][2]int{{0, low - 1}, {high + 1, 65535}}
	}
	return [][2]int{{0, 65535}}
}
