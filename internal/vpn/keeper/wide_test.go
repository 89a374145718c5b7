package keeper

import (
	"reflect"
	"slices"
	"testing"

	"weir/internal/vpn/datapath"
	"weir/internal/vpn/key"
	"weir/internal/vpn/tunnel"
	"weir/pf/resolve"
)

// staff is an engine with workers.
type staff struct {
	tunnel.Engine
	workers
	count   int
	applied *tunnel.Config
}

func (s *staff) Apply(c *tunnel.Config) error { s.applied = c; return nil }

func (s *staff) Work() []datapath.Work { return make([]datapath.Work, s.count) }

// A link has the ports that its statement says, or as many as there are workers, and follows these.
func TestWidth(t *testing.T) {
	k := key.NewPrivate().Public()
	engine := &staff{count: 4}
	p := resolve.Peer{Key: k.String(), Wide: 16, WideAuto: true}
	r := &running{engine: engine, of: resolve.WireGuard{Peers: []resolve.Peer{p}}, config: &tunnel.Config{Peers: []tunnel.Peer{{Key: k, Wide: 4}}}}
	if n := r.width(&p); n != 4 || r.widthsChanged() {
		t.Errorf("with four workers there are %d ports", n)
	}
	engine.count = 40
	if n := r.width(&p); n != 16 || !r.widthsChanged() {
		t.Errorf("with forty workers there are %d ports", n)
	}
	fixed := resolve.Peer{Key: k.String(), Wide: 3}
	if n := r.width(&fixed); n != 3 {
		t.Errorf("%d ports, and the statement says 3", n)
	}
	if n := r.width(&resolve.Peer{Key: k.String()}); n != 0 {
		t.Errorf("a link that is not wide has %d ports", n)
	}
	for _, p := range []resolve.Peer{p, fixed} {
		if e := engineOf(&resolve.WireGuard{Peers: []resolve.Peer{p}}); e != "userspace" {
			t.Errorf("a wide link has the engine %q", e)
		}
	}
}

// When the card has other queues, links have other ports, and nothing else changes: no file is read.
func TestWiden(t *testing.T) {
	k, other := key.NewPrivate().Public(), key.NewPrivate().Public()
	engine := &staff{count: 5}
	of := resolve.WireGuard{KeyFile: "/nowhere", Peers: []resolve.Peer{{Key: k.String(), WideAuto: true, Wide: 16, PSKFile: "/nowhere"}, {Key: other.String()}}}
	before := &tunnel.Config{Private: key.NewPrivate(), Port: 7, Peers: []tunnel.Peer{{Key: other}, {Key: k, Wide: 4, Preshared: key.NewPrivate()}}}
	r := &running{engine: engine, of: of, config: before}
	if err := r.widen(); err != nil {
		t.Fatal(err)
	}
	want := *before
	want.Peers = slices.Clone(before.Peers)
	want.Peers[1].Wide = 5
	if !reflect.DeepEqual(engine.applied, &want) || r.config != engine.applied || before.Peers[1].Wide != 4 {
		t.Errorf("the engine is told %+v, and was told %+v", engine.applied, before)
	}
	if queuesOr(0, 8) != 8 || queuesOr(3, 8) != 3 {
		t.Error("a link without a way has other ports")
	}
}
