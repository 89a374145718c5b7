package device

import (
	"errors"
	"net/netip"
)

// A Circle is a device with peers that it has sessions with, for measurements. No message was sent for that.
type Circle struct {
	Hub     *Device
	Peers   []*Peer // of the hub
	Senders []*Peer // the hub, as each of them has it

	others []*Device
}

// NewCircle returns one. Each peer has a network, and all are at the same endpoint.
func NewCircle(network Network, networks []netip.Prefix, at netip.AddrPort) (*Circle, error) {
	quiet := &Logger{Verbosef: DiscardLogf, Errorf: DiscardLogf}
	c := &Circle{Hub: NewDevice(network, DefaultMTU, quiet)}
	err := c.Hub.newIdentity()
	for _, n := range networks {
		if err == nil {
			err = c.add(NewDevice(silent{}, DefaultMTU, quiet), n, at)
		}
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// silent is a network that nothing leaves.
type silent struct{}

func (silent) Open(port uint16) (uint16, error) { return port, nil }
func (silent) Close() error                     { return nil }
func (silent) Send([]byte, *Endpoint) error     { return nil }

func (device *Device) newIdentity() error {
	key, err := newPrivateKey()
	if err != nil {
		return err
	}
	return device.SetPrivateKey(key)
}

func (c *Circle) add(other *Device, network netip.Prefix, at netip.AddrPort) error {
	c.others = append(c.others, other)
	if err := other.newIdentity(); err != nil {
		return err
	}
	peer, err := c.Hub.NewPeer(other.staticIdentity.publicKey)
	if err != nil {
		return err
	}
	sender, err := other.NewPeer(c.Hub.staticIdentity.publicKey)
	if err != nil {
		return err
	}
	c.Peers, c.Senders = append(c.Peers, peer), append(c.Senders, sender)
	c.Hub.allowedips.Insert(network, peer)
	peer.endpoint.Store(&Endpoint{Remote: at})
	peer.Start()
	sender.Start()
	first, err := c.Hub.CreateMessageInitiation(peer)
	if err != nil {
		return err
	}
	if other.ConsumeMessageInitiation(first, &other.staticIdentity) == nil {
		return errors.New("the first message of a handshake is not taken")
	}
	second, err := other.CreateMessageResponse(sender)
	if err != nil {
		return err
	}
	if c.Hub.ConsumeMessageResponse(second, 0) == nil {
		return errors.New("the second message of a handshake is not taken")
	}
	if err := errors.Join(peer.BeginSymmetricSession(), sender.BeginSymmetricSession()); err != nil {
		return err
	}
	sender.ReceivedWithKeypair(sender.keypairs.next.Load())
	return nil
}

// Forget has the hub take the messages of all peers once more. Nothing else may do that.
func (c *Circle) Forget() {
	for _, p := range c.Peers {
		k := p.keypairs.Current()
		k.Lock()
		k.replayFilter.Reset()
		k.Unlock()
	}
}

// Bytes returns how much the hub has sent, and how much it has accepted.
func (c *Circle) Bytes() (sent, received uint64) {
	for _, p := range c.Peers {
		sent += p.txBytes.Load()
		received += p.rxBytes.Load()
	}
	return sent, received
}

// Close ends all devices.
func (c *Circle) Close() {
	for _, d := range append(c.others, c.Hub) {
		d.Close()
	}
}
