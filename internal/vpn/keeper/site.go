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

	up    bool // as the journal has it, likewise below
	fault string
	erred time.Time
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
	s := t.status()
	t.observe(&s)
}

// observe notes what has changed since it was last called.
func (t *site) observe(s *Status) {
	note := func(kind Kind, format string, args ...any) {
		t.keeper.journal.note(Event{Time: time.Now(), Interface: t.of.Name, Kind: kind, Text: fmt.Sprintf(format, args...)})
	}
	switch s.Problem {
	case t.fault:
	case "":
		note(OfTunnel, "it works")
	default:
		note(OfTunnel, "%s", s.Problem)
	}
	t.fault = s.Problem
	if e := s.Site.ErrorTime; e.After(t.erred) {
		note(OfError, "%s", s.Site.Error)
		t.erred = e
	}
	up := s.Site.Up()
	switch {
	case up != nil && !t.up:
		note(OfHandshake, "up, with %s [%s], who knows us as %s: %s", up.Remote, up.RemoteID, up.LocalID, up.Algorithms)
	case up == nil && t.up:
		note(OfHandshake, "there are no keys for packets any more")
	}
	t.up = up != nil
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
	through := route.Through{Addresses: t.of.Addresses, Networks: t.of.Routes}
	index, _ := indexOf(t.of.Name) // 0: it is to be made
	changed := t.keeper.routes.Changed(t.of.Name, index, through) || t.problem != ""
	if changed {
		if err := route.Block(route.Blackholes(through)); err != nil {
			return err
		}
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
	if !changed && l.Attrs().Index == index { // else Link has made another interface
		return nil
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

	From     []netip.Prefix `json:"from"` // what the tunnel is for here
	Networks []netip.Prefix `json:"networks"`
	Routes   []netip.Prefix `json:"routes"` // those of Networks that weir's routes lead to
}

// status tells of the tunnel.
func (t *site) status() Status {
	state, about := t.keeper.charon.State(t.of.Name)
	s := Status{Interface: t.of.Name, Engine: charonName, MTU: t.of.MTU, Peers: []Peer{}, Site: &Site{
		State: state, Peer: t.of.Peer, Passive: t.of.Passive, SrcID: t.of.SrcID, DstID: t.of.DstID, Proposals: t.of.Proposals,
		From: t.of.From, Networks: t.of.Networks, Routes: t.of.Routes,
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
