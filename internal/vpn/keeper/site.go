package keeper

import (
	"cmp"
	"fmt"
	"net/netip"
	"time"

	"github.com/vishvananda/netlink"

	"weir/internal/vpn/ipsec"
	"weir/internal/vpn/route"
	"weir/pf/resolve"
)

// site is the interface of a tunnel of IPsec, with its routes. What encrypts is charon's and the
// kernel's. The keeper's lock is held whenever it is used.
type site struct {
	keeper  *keeper
	of      resolve.IKEv2
	problem string
	held    time.Time // when it was last looked after
}

// be has the tunnel be as its statement says.
func (t *site) be(of resolve.IKEv2) {
	t.of = of
	t.try(time.Now())
}

// tend adds again what others have removed, and tries again what has failed.
func (t *site) tend(now time.Time) {
	if t.problem != "" || now.Sub(t.held) >= holdPause {
		t.try(now)
	}
}

func (t *site) try(now time.Time) {
	t.held = now
	err := t.set()
	switch {
	case err == nil:
		if t.problem != "" {
			t.keeper.Log.Info("the tunnel works", "interface", t.of.Name)
		}
		t.problem = ""
	case t.problem != err.Error():
		t.problem = err.Error()
		t.keeper.Log.Error("set up a tunnel", "interface", t.of.Name, "error", err)
	}
}

// set makes what is missing: blackholes, the interface, its addresses, and last the routes. Nothing
// leaves in clear by the interface, whether there are keys or not.
func (t *site) set() error {
	if err := route.Block(route.Blackholes(route.Through{Addresses: t.of.Addresses, Networks: t.of.Routes})); err != nil {
		return err
	}
	if err := ipsec.Link(t.of.Name, t.of.ID); err != nil {
		return err
	}
	l, err := netlink.LinkByName(t.of.Name)
	if err != nil {
		return fmt.Errorf("find %s: %w", t.of.Name, err)
	}
	if l.Attrs().MTU != int(t.of.MTU) {
		if err := netlink.LinkSetMTU(l, int(t.of.MTU)); err != nil {
			return fmt.Errorf("set the MTU of %s: %w", t.of.Name, err)
		}
	}
	if err := setAddresses(l, t.of.Addresses); err != nil {
		return err
	}
	if err := netlink.LinkSetUp(l); err != nil {
		return fmt.Errorf("set %s up: %w", t.of.Name, err)
	}
	return route.Lead(l.Attrs().Index, t.of.Routes)
}

// Site is what is known of a tunnel of IPsec.
type Site struct {
	ipsec.State
	Peer      string `json:"peer,omitempty"` // where the peer is, as the rules say
	Passive   bool   `json:"passive"`        // the peer begins
	SrcID     string `json:"srcid,omitempty"`
	DstID     string `json:"dstid"`
	Proposals string `json:"proposals"`

	Networks []netip.Prefix `json:"networks"`
	Routes   []netip.Prefix `json:"routes"` // those of Networks that weir's routes lead to
}

// status tells of the tunnel.
func (t *site) status() Status {
	state, about := t.keeper.charon.State(t.of.Name)
	s := Status{Interface: t.of.Name, Engine: charonName, MTU: t.of.MTU, Peers: []Peer{}, Site: &Site{
		State: state, Peer: t.of.Peer, Passive: t.of.Passive, SrcID: t.of.SrcID, DstID: t.of.DstID, Proposals: t.of.Proposals,
		Networks: t.of.Networks, Routes: t.of.Routes,
	}}
	if about.Version == "" {
		s.Engine = ""
	} else {
		s.Why = "strongSwan " + about.Version
	}
	s.Problem = cmp.Or(t.problem, about.Problem, state.Problem)
	return s
}

// charonName is what the engine of IPsec is called.
const charonName = "charon"
