package lib

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"weir/internal/fw/bpfload"
	"weir/internal/lab"
	"weir/internal/pppoe/ac"
	"weir/internal/pppoe/line"
	"weir/internal/pppoe/ppp"
	"weir/internal/pppoe/wire"
)

// Addresses of a provider of PPPoE.
const (
	ProviderPeer   = "192.0.2.1" // the concentrator
	ProviderClient = "198.51.100.10"
	ProviderPeer6  = "2001:db8:99::1"
)

// Addresses of a second provider.
const (
	SecondPeer   = "100.64.0.1"
	SecondClient = "100.64.0.10"
	secondPeer6  = "2001:db8:98::1"
)

// providerPins is a folder for the programs of the providers of a host, without the host's name.
const providerPins = "/run/weir-story-pppoe-"

// A Provider is a concentrator of PPPoE in a host, on eth0. Its device isp0 sends and receives
// the packets of one session.
type Provider struct {
	b        *Box
	host     string
	many     bool   // a client may have several sessions; isp0 has the latest
	peer     string // addresses
	peer6    string
	Server   *ac.Running
	programs *line.Programs
	device   line.Device
	carrier  *net.Interface
	served   atomic.Uint32 // the session that the device has
}

// Await waits until the provider serves the session that weir shows.
func (p *Provider) Await(session string) {
	p.b.Helper()
	p.b.Until(5*time.Second, "the provider serves session "+session, func() bool { return p.Serves(session) })
}

// Serves reports whether the provider serves the session that weir shows.
func (p *Provider) Serves(session string) bool {
	return fmt.Sprintf("0x%04x", p.served.Load()) == session
}

// End has the provider end the session that weir shows, by LCP or by a PADT alone.
func (p *Provider) End(session string, padt bool) {
	p.b.Helper()
	id, err := strconv.ParseUint(session, 0, 16)
	if err != nil {
		p.b.Fatal(err)
	}
	p.Server.Do(func(s *ac.Server, now time.Time) { s.Terminate(uint16(id), padt, now) })
	p.b.Until(5*time.Second, "the provider has ended session "+session, func() bool {
		return !slices.ContainsFunc(p.Sessions(), func(s ac.Info) bool { return s.ID == uint16(id) })
	})
}

// Provider starts a provider in the host wan, with sessions of up to mtu bytes. The user is "me", with a password in
// the file that is returned.
func (b *Box) Provider(mtu uint16) (p *Provider, password string) {
	b.Helper()
	return b.provider(&Provider{b: b, host: lab.WAN, peer: ProviderPeer, peer6: ProviderPeer6}, ProviderClient, mtu)
}

// ProviderOfMany is Provider with several sessions for a client.
func (b *Box) ProviderOfMany(mtu uint16) (p *Provider, password string) {
	b.Helper()
	return b.provider(&Provider{b: b, host: lab.WAN, many: true, peer: ProviderPeer, peer6: ProviderPeer6}, ProviderClient, mtu)
}

// SecondProvider starts another one, in the host isp.
func (b *Box) SecondProvider(mtu uint16) *Provider {
	b.Helper()
	p, _ := b.provider(&Provider{b: b, host: ISP, peer: SecondPeer, peer6: secondPeer6}, SecondClient, mtu)
	return p
}

// provider starts a provider that has a host and addresses.
func (b *Box) provider(p *Provider, client string, mtu uint16) (_ *Provider, password string) {
	b.Helper()
	const secret = "wednesday-0815-mule"
	password = filepath.Join(b.dir, "password")
	if err := os.WriteFile(password, []byte(secret+"\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	pins := providerPins + p.host
	folder := filepath.Join(pins, b.Namespace(p.host))
	var w *wire.Wire
	err := b.Do(p.host, func() (err error) {
		if err := bpfload.MountFS(pins); err != nil {
			return err
		}
		if p.device, err = line.Add("isp0"); err != nil {
			return err
		}
		if p.programs, err = line.Open(folder); err != nil {
			return err
		}
		if p.carrier, err = net.InterfaceByName("eth0"); err != nil {
			return err
		}
		w, err = wire.Open("eth0", 0)
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	p.Server = ac.NewRunning(ac.Config{
		// It gives a client up that does not answer for a second: so the data path has to answer while no daemon lives.
		EchoEvery: Scaled(200 * time.Millisecond), EchoMisses: 4,
		MAC: w.MAC(), Name: "ac", MaxPayload: mtu, IPv6: true, Random: rand.Reader, OnePerMAC: !p.many,
		Ask:   ppp.Ask{Methods: []ppp.Method{ppp.ByCHAP}, Name: "ac", Secret: func(name string) (ppp.Secret, bool) { return ppp.NewSecret(secret), name == "me" }},
		Local: netip.MustParseAddr(p.peer), First: netip.MustParseAddr(client), DNS: []netip.Addr{netip.MustParseAddr("192.0.2.53")},
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 2)
	go func() { done <- p.Server.Run(ctx, w) }()
	go func() { done <- p.follow(ctx) }()
	b.Cleanup(func() {
		cancel()
		if err := errors.Join(<-done, <-done); err != nil {
			b.Error(err)
		}
		w.Close()
		err := b.Do(p.host, func() error {
			return errors.Join(p.programs.Close(), line.Remove(folder), bpfload.UnmountFS(pins))
		})
		if err != nil {
			b.Error(err)
		}
	})
	return p, password
}

// follow gives the device the latest session.
func (p *Provider) follow(ctx context.Context) error {
	var last ac.Info
	for ctx.Err() == nil {
		time.Sleep(20 * time.Millisecond)
		all := p.Sessions()
		if len(all) == 0 || all[len(all)-1] == last || !all[len(all)-1].IPv4.IsValid() {
			continue
		}
		last = all[len(all)-1]
		if err := p.b.Do(p.host, func() error { return p.enter(&last) }); err != nil {
			return err
		}
		ip := func(args ...string) error {
			_, err := p.b.Lab.Run(ctx, p.host, "ip", args...)
			return err
		}
		err := errors.Join(
			ip("address", "replace", p.peer, "peer", last.IPv4.String(), "dev", "isp0"),
			ip("address", "replace", p.peer6+"/64", "dev", "isp0", "nodad"),
			ip("route", "replace", "fd00:1::/64", "dev", "isp0"),
		)
		if err != nil {
			return err
		}
		p.served.Store(uint32(last.ID))
	}
	return nil
}

func (p *Provider) enter(i *ac.Info) error {
	return errors.Join(
		p.programs.Enter(line.Session{Device: p.device, Carrier: p.carrier.Index, ID: i.ID, Peer: i.Peer, Local: [6]byte(p.carrier.HardwareAddr)}),
		p.device.Describe(p.carrier.HardwareAddr, int(i.MTU)), p.device.SetCarrier(true),
	)
}

// Sessions returns the sessions that there are.
func (p *Provider) Sessions() (all []ac.Info) {
	p.Server.Do(func(s *ac.Server, _ time.Time) { all = s.Sessions() })
	return all
}
