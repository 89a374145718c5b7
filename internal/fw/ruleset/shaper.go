package ruleset

import (
	"weir/internal/fw/shaper"
	"weir/pf/ast"
	"weir/pf/resolve"
)

// shapers converts the trees of queues. Each queue that takes packets has the number of
// its name, so that packets with this number find it.
func (c *compiler) shapers(trees []*resolve.QueueTree) {
	for _, t := range trees {
		s := ShaperOf(t)
		for i := range t.Queues {
			if t.Queues[i].Children == 0 {
				s.Classes[i].Number = c.queueNumber(t.Queues[i].Name)
			}
		}
		c.program.Shapers = append(c.program.Shapers, s)
	}
}

// ShaperOf converts a tree of queues. What packets for its queues carry is left out.
func ShaperOf(t *resolve.QueueTree) shaper.Shaper {
	s := shaper.Shaper{
		Interface: t.Interface, In: t.In, Link: linkOf(&t.Link), Engine: engines[t.Engine], Modem: t.Modem,
		Classes: make([]shaper.Class, len(t.Queues)),
	}
	for i := range t.Queues {
		s.Classes[i] = classOf(&t.Queues[i])
	}
	return s
}

func classOf(q *resolve.Queue) shaper.Class {
	return shaper.Class{
		Name: q.Name, Parent: q.Parent, Children: q.Children, First: q.First, Default: q.Default,
		Weight: q.Weight, Min: rateOf(q.Min), Max: rateOf(q.Max), Bandwidth: rateOf(q.Bandwidth), MinPart: q.MinPart, MaxPart: q.MaxPart, Priority: q.Priority, Fair: fairnesses[q.Fair], FairSaid: q.FairSaid,
		ECN: q.ECN, RTT: q.RTT, Limit: q.Limit, Flows: q.Flows, Quantum: q.Quantum,
	}
}

var fairnesses = [...]shaper.Fairness{
	ast.FairHostFlow: shaper.FairHostFlow, ast.FairFlow: shaper.FairFlow, ast.FairHost: shaper.FairHost,
}

var engines = [...]shaper.Engine{
	ast.EngineAuto: shaper.Auto, ast.EnginePhantom: shaper.Phantom, ast.EngineQueue: shaper.Queue,
}

var cells = [...]shaper.Cells{ast.Plain: shaper.Plain, ast.ATM: shaper.ATM, ast.PTM: shaper.PTM}

func linkOf(l *resolve.Link) shaper.Link {
	return shaper.Link{Known: l.Known, Overhead: int16(l.Overhead), MPU: uint16(l.MPU), Cells: cells[l.Cells]}
}

func rateOf(r resolve.QueueRate) shaper.Rate {
	return shaper.Rate{Bytes: r.Bits / 8, Burst: r.Burst / 8, For: r.For, Percent: r.Percent}
}
