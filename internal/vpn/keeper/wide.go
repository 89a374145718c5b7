package keeper

import (
	"slices"

	"weir/internal/vpn/key"
	"weir/pf/ast"
	"weir/pf/resolve"
)

func isWide(p resolve.Peer) bool { return p.Wide > 0 }

// width returns how many ports the link to a peer is to have. Where the statement leaves that to weir, it is as many as
// the card that its messages come by has receive queues, or as the tunnel has workers if these are more: with few ports,
// the card may have two of them in one queue.
func (t *running) width(p *resolve.Peer) int {
	if !p.WideAuto {
		return int(p.Wide)
	}
	n := 2
	if e, ok := t.engine.(workers); ok {
		n = max(n, len(e.Work()))
	}
	if k, err := key.ParsePublic(p.Key); err == nil {
		if s := t.states[k]; s.Endpoint.IsValid() {
			last := 0
			if is := t.before(k); is != nil {
				last = is.Wide
			}
			n = max(n, queuesOr(t.keeper.cards.queuesTo(&s, t.of.Port), last))
		}
	}
	return min(n, ast.MostPorts)
}

// queuesOr returns how many queues there are. Without a route or a card there are as many as there were.
func queuesOr(queues, last int) int {
	if queues == 0 {
		return last
	}
	return queues
}

// widen has links have the ports that they are to have now. All else stays as the engine has it: files that have changed
// count from the next load.
func (t *running) widen() error {
	c := *t.config
	c.Peers = slices.Clone(c.Peers)
	for i := range t.of.Peers {
		p := &t.of.Peers[i]
		for j := range c.Peers {
			if is := &c.Peers[j]; p.WideAuto && is.Key.String() == p.Key {
				is.Wide = t.width(p)
			}
		}
	}
	if err := t.engine.Apply(&c); err != nil {
		t.greeted = false // it has made all peers anew, or will
		return err
	}
	t.config = &c
	return nil
}

// widthsChanged reports whether links are to have other ports than the engine was told, as queues or ways have changed.
func (t *running) widthsChanged() bool {
	for i := range t.of.Peers {
		p := &t.of.Peers[i]
		if k, err := key.ParsePublic(p.Key); err == nil && p.WideAuto {
			if is := t.before(k); is != nil && is.Wide != t.width(p) {
				return true
			}
		}
	}
	return false
}
