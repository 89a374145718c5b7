package resolve

import (
	"fmt"

	"weir/pf/ast"
	"weir/pf/diag"
	"weir/pf/token"
)

// filter checks a rule's conditions and its actions besides passing and blocking. It
// reports what is not enforced, and drops conditions without effect.
func (r *resolver) filter(in *ast.Rule) ast.Filter {
	out := in.Filter
	out.TOS = nonZero(out.TOS)
	if out.MaxPktRate != nil && out.MaxPktRate.N == 0 {
		out.MaxPktRate = nil
	}
	out.Scrub = r.scrub(in)
	r.unenforcedFilter(&out)
	r.unenforcedSet(&out.Set)
	r.assigned(out.Set.Queue)
	r.fragment(in)
	r.idleTable(in)
	r.checkMarks(in)
	if out.Once.IsValid() && in.Action == ast.Match {
		r.faults.Errorf(out.Once, "once is allowed only in pass and block rules")
	}
	for _, l := range []*ast.Limiter{out.StateLimiter, out.SourceLimiter} {
		if l != nil && in.Action != ast.Pass {
			r.faults.Errorf(l.Span, "limiters are allowed only in pass rules")
		}
	}
	r.log(in.Log)
	return out
}

// nonZero drops a 0 that means no condition.
func nonZero(n *ast.Count) *ast.Count {
	if n != nil && n.N == 0 {
		return nil
	}
	return n
}

// scrub returns how a rule normalises packets. As with pfctl, packets of divert-packet
// are reassembled if any are.
func (r *resolver) scrub(in *ast.Rule) *ast.Scrub {
	out := &ast.Scrub{}
	if in.Scrub != nil {
		*out = *in.Scrub
	}
	out.MinTTL, out.MaxMSS = nonZero(out.MinTTL), nonZero(out.MaxMSS)
	r.unenforcedScrub(out)
	if in.Divert != nil && in.Divert.Kind == ast.DivertPacket && !r.options.FragmentsAlone {
		out.ReassembleTCP = true
	}
	if out.NoDF || out.RandomID || out.ReassembleTCP || out.MinTTL != nil || out.MaxMSS != nil {
		return out
	}
	return nil
}

// fragment checks a rule for fragments. Packets are evaluated whole: later fragments
// follow the first.
func (r *resolver) fragment(in *ast.Rule) {
	switch {
	case !in.Fragment.IsValid():
	case r.options.FragmentsAlone:
	default:
		r.faults.Warnf(in.Fragment, "this rule matches nothing: fragments are reassembled before the rules see them")
	}
}

// assigned checks that the queues which a rule names are defined. OpenBSD refuses others. FreeBSD
// takes them, and puts the packets into the default queue. That they are leaves is checked once
// all are known. pfctl does not check this for rules read by load anchor.
func (r *resolver) assigned(q *ast.SetQueue) {
	if q == nil {
		return
	}
	for _, name := range []*ast.Word{&q.Name, q.Ack} {
		if name == nil {
			continue
		}
		r.queues.use(name.Text)
		switch {
		case r.queues.named[name.Text]:
			if !r.loading {
				r.queues.assigned = append(r.queues.assigned, name)
			}
		case r.queues.altq || len(r.queues.named) == 0:
			r.undefinedQueue(name)
		default:
			r.suggest(*name, fmt.Sprintf("queue %q is not defined", name.Text), keysOf(r.queues.named))
		}
	}
}

// undefinedQueue warns, once for each name, of a queue that is not defined.
func (r *resolver) undefinedQueue(name *ast.Word) {
	if r.queues.undefined[name.Text] {
		return
	}
	if r.queues.undefined == nil {
		r.queues.undefined = make(map[string]bool)
	}
	r.queues.undefined[name.Text] = true
	message := fmt.Sprintf("queue %q is not defined, so its packets are in the default queue", name.Text)
	if len(r.queues.named) == 0 {
		message = fmt.Sprintf("queue %q has no effect: the file defines no queues", name.Text)
	}
	r.faults.Add(diag.Diagnostic{
		Severity: diag.Warning, Span: name.Span, Message: message, Suggest: r.nearest(name.Text, keysOf(r.queues.named)),
	})
}

// log reports what is not enforced of a rule's log.
func (r *resolver) log(l *ast.Log) {
	if l == nil {
		return
	}
	if l.Matches {
		r.unenforced("Log.Matches", l.Span)
	}
	if l.User {
		r.unenforced("Log.User", l.Span)
	}
	if l.To != nil {
		r.unenforcedAs("Log.To", l.To.Span, fmt.Sprintf("log (to pflog%d)", l.To.N))
	}
}

func (r *resolver) unenforcedFilter(f *ast.Filter) {
	if f.ReceivedOn != nil {
		r.onInterface(f.ReceivedOn)
		r.unenforced("ReceivedOn", f.ReceivedOn.Span)
	}
	r.unenforcedCount("TOS", f.TOS)
	r.unenforcedCount("DSCP", f.DSCP)
	r.unenforcedCount("Prio", f.Prio)
	if f.Marked != nil {
		r.unenforced("Marked", f.Marked.Span)
	}
	if f.MaxPktRate != nil {
		r.maxPktRate(f.MaxPktRate)
	}
	r.unenforcedCount("MaxPktSize", f.MaxPktSize)
	r.useLimiter(f.StateLimiter, false)
	r.useLimiter(f.SourceLimiter, true)
	r.unenforcedCount("Probability", f.Probability)
	if f.Once.IsValid() {
		r.unenforced("Once", f.Once)
	}
	r.unenforcedCount("RTable", f.RTable)
}

// idleTable warns of a routing table that is named too late.
func (r *resolver) idleTable(in *ast.Rule) {
	if in.RTable != nil && in.Direction == ast.Out {
		r.faults.Warnf(in.RTable.Span, "rtable has no effect here: the route of an outgoing packet is already known")
	}
}

// The largest rate that the dataplane counts. In pf the count of a larger one overflows.
const (
	mostPkts        = (1<<32 - 1) / 1000
	mostPktsSeconds = 1<<16 - 1
)

const dividedRate = "divide both numbers by the same one"

func (r *resolver) maxPktRate(rate *ast.Rate) {
	r.unenforced("MaxPktRate", rate.Span)
	switch {
	case rate.N > mostPkts:
		r.faults.UnenforcedBut(rate.Span, fmt.Sprintf("max-pkt-rate of more than %d packets", mostPkts), dividedRate)
	case rate.Seconds > mostPktsSeconds:
		r.faults.UnenforcedBut(rate.Span, fmt.Sprintf("max-pkt-rate over more than %d seconds", mostPktsSeconds), dividedRate)
	}
}

func (r *resolver) unenforcedCount(path string, n *ast.Count) {
	if n != nil {
		r.unenforced(path, n.Span)
	}
}

func (r *resolver) unenforcedSet(s *ast.Set) {
	if s.Prio != nil {
		r.unenforced("Set.Prio", s.Prio.Span)
	}
	if s.Queue != nil {
		r.aboutQueues(s.Queue.Span, "set queue")
	}
	r.unenforcedCount("Set.TOS", s.TOS)
	r.unenforcedCount("Set.Delay", s.Delay)
	if s.Mark != nil {
		r.unenforced("Set.Mark", s.Mark.Span)
	}
}

func (r *resolver) unenforcedScrub(s *ast.Scrub) {
	for _, option := range []struct {
		is   bool
		path string
	}{
		{s.NoDF, "Scrub.NoDF"}, {s.RandomID, "Scrub.RandomID"}, {s.MinTTL != nil, "Scrub.MinTTL"},
		{s.ReassembleTCP, "Scrub.ReassembleTCP"}, {s.MaxMSS != nil, "Scrub.MaxMSS"},
	} {
		if option.is {
			r.unenforced(option.path, s.Span)
		}
	}
}

// onInterface warns if the host lacks an interface of a rule.
func (r *resolver) onInterface(i *ast.Interface) {
	switch {
	case i.RDomain != nil:
		r.unenforced("On.RDomain", i.Span)
	case i.Name != ast.AnyInterface:
		r.known(ast.Word{Span: i.Span, Text: i.Name})
	}
}

// filterConsistent checks the conditions of a combination against its protocol and
// address family.
func (r *resolver) filterConsistent(out *ast.Rule) {
	if s := out.Scrub; s != nil && out.Family == ast.Inet6 && (s.NoDF || s.RandomID) {
		r.conflict(s.Span, "no-df and random-id are only for inet", out.FamilySpan)
	}
	if !out.Fragment.IsValid() {
		return
	}
	var with token.Span
	switch {
	case len(out.From.Ports) > 0:
		with = out.From.Ports[0].Span
	case len(out.To.Ports) > 0:
		with = out.To.Ports[0].Span
	case out.Flags != nil:
		with = out.Flags.Span
	case len(out.ICMP) > 0:
		with = out.ICMP[0].Span
	default:
		return
	}
	r.conflict(out.Fragment, "a rule for fragments can match only the IP header", with)
}
