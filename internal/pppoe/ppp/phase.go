package ppp

import "time"

// layerUp is called when a layer is open.
func (l *Link) layerUp(n *layer) {
	if n == &l.lcp {
		l.emit(Event{Kind: LinkUp})
		l.startAuth()
		return
	}
	if n == &l.ipcp && l.v4.own.IsUnspecified() {
		n.ending = "the peer gives no IPv4 address"
		n.handle(shut, l.now)
		return
	}
	n.shown = true
	l.emit(Event{Kind: NetworkUp, Protocol: n.protocol})
}

// layerDown is called when a layer was open and is not any more.
func (l *Link) layerDown(n *layer) {
	if n != &l.lcp {
		if n.shown {
			l.emit(Event{Kind: NetworkDown, Protocol: n.protocol})
		}
		n.shown = false
		return
	}
	if l.cause == 0 && n.in.Code == TerminateRequest && n.state == Stopping {
		l.cause = Peer
	}
	l.stopAuth()
	l.stopEcho()
	l.network = false
	for _, n := range l.networks() {
		n.handle(down, l.now)
	}
	l.emit(Event{Kind: LinkDown})
}

// layerFinished is called when a layer will not open (again).
func (l *Link) layerFinished(n *layer, why string) {
	if n == &l.lcp {
		if unable := l.lcpTerms.unable; l.cause == 0 && !l.closing && unable != "" {
			l.end(Clash, unable)
			return
		}
		l.end(l.endCause(), why)
		return
	}
	l.emit(Event{Kind: NetworkFailed, Protocol: n.protocol, Detail: why})
	for _, other := range l.networks() {
		if other.state >= ReqSent {
			return
		}
	}
	l.fail(Clash, why)
}

// endCause is why LCP has finished, where nothing else said so.
func (l *Link) endCause() Cause {
	switch {
	case l.cause != 0:
		return l.cause
	case l.closing:
		return Local
	case l.lcp.restarts <= 0:
		return NoReply
	}
	return Clash
}

// startAuth begins the phase of authentication (RFC 1661 3.5).
func (l *Link) startAuth() {
	if l.lcpTerms.refusesUs {
		l.fail(Refused, "the peer does not say who it is")
		return
	}
	l.authEnd = l.now.Add(authPatience)
	l.startProver()
	l.startAsker()
	l.afterAuth()
}

func (l *Link) stopAuth() {
	l.authEnd = time.Time{}
	l.prover = prover{}
	l.asker.deadline = time.Time{}
	l.asker.done = false
}

// afterAuth begins the network phase once both ends are content.
func (l *Link) afterAuth() {
	if l.network || !l.prover.done || !l.asker.done {
		return
	}
	l.authEnd = time.Time{}
	l.network = true
	l.emit(Event{Kind: Authenticated, Detail: l.lcpTerms.prove.String()})
	l.startEcho()
	l.startVerify()
	for _, n := range l.networks() {
		n.handle(up, l.now)
	}
}
