package userspace

import (
	"errors"
	"net/netip"

	"weir/internal/vpn/device"
	"weir/internal/vpn/key"
	"weir/internal/vpn/tunnel"
)

var errNoPeer = errors.New("there is no such peer")

func endpointOf(at tunnel.At) *device.Endpoint {
	return &device.Endpoint{Remote: at.Remote, Interface: uint32(at.Interface)}
}

// Hold has a peer be reached by one way.
func (e *Engine) Hold(k key.Public, at tunnel.At, others []netip.AddrPort) error {
	p := e.device.LookupPeer(device.NoisePublicKey(k))
	if p == nil {
		return errNoPeer
	}
	to := endpointOf(at)
	to.Held = &device.Held{Others: others}
	p.Hold(to)
	e.wides.follow(k)
	return nil
}

// Probe begins a handshake to see whether a way works.
func (e *Engine) Probe(k key.Public, apart *tunnel.At) (begun bool, err error) {
	p := e.device.LookupPeer(device.NoisePublicKey(k))
	if p == nil {
		return false, errNoPeer
	}
	if apart == nil {
		return p.Probe(nil)
	}
	return p.Probe(endpointOf(*apart))
}

// Recall sends something by the way in use.
func (e *Engine) Recall(k key.Public) {
	if p := e.device.LookupPeer(device.NoisePublicKey(k)); p != nil {
		p.SendKeepalive()
	}
}

// Reach tells how a peer can be reached.
func (e *Engine) Reach(k key.Public) (tunnel.Reach, bool) {
	p := e.device.LookupPeer(device.NoisePublicKey(k))
	if p == nil {
		return tunnel.Reach{}, false
	}
	is := p.Reach()
	r := tunnel.Reach{Sent: is.Sent, Received: is.Received, Stray: is.Stray, Answered: is.Answered, Took: is.Took}
	if is.Endpoint != nil {
		r.At = tunnel.At{Remote: is.Endpoint.Remote, Interface: int(is.Endpoint.Interface)}
	}
	return r, true
}
