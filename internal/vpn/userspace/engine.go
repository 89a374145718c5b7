package userspace

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"weir/internal/vpn/datapath"
	"weir/internal/vpn/device"
	"weir/internal/vpn/key"
	"weir/internal/vpn/tunnel"
)

// Name is what the configuration calls the engine.
const Name = "userspace"

// maxWorkers is how many threads carry packets at most.
const maxWorkers = 16

// An Engine is a tunnel in user space.
type Engine struct {
	name    string
	tun     datapath.Tun
	path    *datapath.Path
	device  *device.Device
	applied *tunnel.Config
	wides   *wides

	remark atomic.Pointer[func(text string)] // gets what is no error

	mu     sync.Mutex
	errors map[string]fault // of peers, by their short name
}

type fault struct {
	text string
	time time.Time
}

// Open opens the tunnel of an interface, and makes the interface if there is none. log gets what
// goes wrong.
func Open(name string, mtu uint16, log func(string)) (*Engine, error) {
	workers := min(runtime.GOMAXPROCS(0), maxWorkers)
	tun, err := openTun(name, workers)
	if err != nil {
		return nil, err
	}
	return newEngine(name, tun, mtu, log), nil
}

// newEngine returns the engine of a tun device.
func newEngine(name string, tun datapath.Tun, mtu uint16, log func(string)) *Engine {
	e := &Engine{name: name, tun: tun, errors: map[string]fault{}}
	e.path = datapath.New(tun, func() { go e.device.Close() }) // a worker cannot wait for its own end
	e.device = device.NewDevice(e.path, int(mtu), &device.Logger{Verbosef: e.remarked, Errorf: func(format string, args ...any) {
		log(e.note(fmt.Sprintf(format, args...), args))
	}})
	e.path.Carry(e.device)
	e.wides = newWides(e)
	return e
}

// note remembers an error with the peer that it is about, and returns its text.
func (e *Engine) note(text string, args []any) string {
	for _, a := range args {
		if p, ok := a.(*device.Peer); ok {
			e.mu.Lock()
			e.errors[p.First().String()] = fault{strings.TrimPrefix(text, p.First().String()+" - "), time.Now()}
			e.mu.Unlock()
		}
	}
	return text
}

// Remark has f get what the engine says beside errors: of peers, and of handshakes that are wrong.
func (e *Engine) Remark(f func(text string)) { e.remark.Store(&f) }

func (e *Engine) remarked(format string, args ...any) {
	f := e.remark.Load()
	if f == nil || !strings.HasPrefix(format, "%v - ") && !strings.HasPrefix(format, "%s - ") && !strings.HasPrefix(format, "Received invalid ") {
		return
	}
	(*f)(fmt.Sprintf(format, args...))
}

// Name is what the configuration calls the engine.
func (*Engine) Name() string { return Name }

// Apply has the tunnel be as c says.
func (e *Engine) Apply(c *tunnel.Config) error {
	l, err := net.InterfaceByName(e.name)
	if err != nil {
		return fmt.Errorf("find %s: %w", e.name, err)
	}
	e.device.SetMTU(l.MTU)
	e.path.Mark(c.CopyDSCP, c.DSCP)
	for _, said := range []string{removals(e.applied, c), changes(e.applied, c)} {
		if err := e.device.IpcSet(said); err != nil {
			e.applied = nil // part of it may have been done
			return err
		}
	}
	if err := e.device.Up(); err != nil {
		e.applied = nil
		return err
	}
	e.wides.apply(e.applied, c)
	e.applied = c
	return nil
}

// States tells of the peers.
func (e *Engine) States() ([]tunnel.State, error) {
	text, err := e.device.IpcGet()
	if err != nil {
		return nil, err
	}
	all, err := readStates(strings.NewReader(text))
	if err != nil {
		return nil, err
	}
	for i := range all {
		all[i].Wide = e.wides.state(all[i].Key)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range all {
		if p := e.device.LookupPeer(device.NoisePublicKey(all[i].Key)); p != nil {
			f := e.errors[p.String()]
			all[i].Error, all[i].ErrorTime = f.text, f.time
			if is := p.Endpoint(); is != nil {
				all[i].Interface, all[i].Local = int(cmp.Or(is.Scope, is.Interface)), is.Local
			}
			if at := p.LastHandshake(); !at.IsZero() {
				all[i].Handshake = at
			}
			if b := p.Behind(); b.Messages > 0 {
				all[i].Behind = &tunnel.Behind{Messages: b.Messages, Theirs: b.Theirs, Last: b.Last, Time: b.Time}
			}
			if r := p.Refused(); r.Packets > 0 {
				all[i].Refused = &tunnel.Refused{Packets: r.Packets, Source: r.Source, Time: r.Time}
			}
		}
	}
	return all, nil
}

// Strangers returns who has begun handshakes that no peer has, the last one at the end.
func (e *Engine) Strangers() (all []tunnel.Stranger) {
	for _, s := range e.device.Strangers() {
		is := tunnel.Stranger{From: s.From, Time: s.Time}
		if !s.Key.IsZero() {
			is.Key = new(key.Public(s.Key))
		}
		all = append(all, is)
	}
	return all
}

// Move has the peer be at another endpoint.
func (e *Engine) Move(k key.Public, to netip.AddrPort) error {
	err := e.device.IpcSet(fmt.Sprintf("public_key=%s\nupdate_only=true\nendpoint=%s\n", k.Hex(), to))
	e.wides.follow(k)
	return err
}

// Lead says by which interface the routes lead to a peer.
func (e *Engine) Lead(k key.Public, by int) {
	if p := e.device.LookupPeer(device.NoisePublicKey(k)); p != nil {
		p.Lead(by)
	}
}

// StampAfter has the first messages of handshakes be later than a time.
func (e *Engine) StampAfter(t time.Time) { e.device.StampAfter(t) }

// Stamped returns the latest time that one had; zero: there was none.
func (e *Engine) Stamped() time.Time { return e.device.Stamped() }

// Greet begins a handshake with a peer whose endpoint is known.
func (e *Engine) Greet(k key.Public) error {
	p := e.device.LookupPeer(device.NoisePublicKey(k))
	if p == nil {
		return nil
	}
	return p.SendHandshakeInitiation(false)
}

// Renew begins a handshake with a peer at once, whenever the last one was. The keys that there are stay in use until others are agreed on.
func (e *Engine) Renew(k key.Public) error {
	p := e.device.LookupPeer(device.NoisePublicKey(k))
	if p == nil {
		return errors.New("the engine has no such peer")
	}
	_, err := p.Probe(nil)
	return err
}

// Work returns what the workers have done, and where they may run.
func (e *Engine) Work() []datapath.Work { return e.path.Work() }

// SocketLost returns how many datagrams found no room in the port's sockets.
func (e *Engine) SocketLost() uint64 { return e.path.SocketLost() }

// Place has the worker of a queue run on some cores.
func (e *Engine) Place(queue int, cores []int) error { return e.path.Place(queue, cores) }

// Failed returns what ends the engine.
func (e *Engine) Failed() <-chan struct{} { return e.device.Wait() }

// Close ends the engine. The interface stays.
func (e *Engine) Close() {
	e.wides.close()
	e.device.Close()
	closeAll(e.tun.Queues)
}
