package portmap

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"time"

	"golang.org/x/net/netutil"
	"golang.org/x/sync/errgroup"

	"weir/internal/portmap/igd"
	"weir/internal/portmap/mapping"
	"weir/internal/portmap/pcp"
)

// A running server.
type running struct {
	*Server
	keeper   *keeper
	networks *networks
	pcp      *pcp.Server
	igd      *igd.Device
	pcpEnds  []*endpoint
	ssdpEnds []*endpoint
	group    *errgroup.Group
	moved    chan struct{} // the external address is another one
}

// Run serves until ctx ends. Mappings stay open then: the next server goes on with them.
func (s *Server) Run(ctx context.Context) error {
	old, err := readState(s.State, true)
	if err != nil {
		return err
	}
	r := &running{Server: s, networks: &networks{Server: s}, moved: make(chan struct{}, 1)}
	if err := r.networks.read(); err != nil {
		return err
	}
	r.networks.warnPrivate(r.networks.external())
	r.keeper = &keeper{Server: s, clock: uptime, taken: r.networks.own, jobs: make(chan job), moved: make(chan struct{}, 1)}
	r.build()
	group, ctx := errgroup.WithContext(ctx)
	r.group = group
	// The sockets come first: a second server on the machine fails before it changes rules.
	serving, err := r.open(ctx)
	if err == nil {
		err = r.keeper.start(ctx, old)
	}
	if err != nil {
		r.close()
		return err
	}
	group.Go(func() error { return r.keeper.run(ctx) })
	group.Go(func() error { return r.networks.watch(ctx, func(netip.Addr) { poke(r.keeper.moved); poke(r.moved) }) })
	group.Go(func() error { <-ctx.Done(); r.Machine.Close(); return nil })
	for _, serve := range serving {
		group.Go(func() error { return serve(ctx) })
	}
	r.announce(ctx)
	s.Started()
	return group.Wait()
}

// poke wakes who waits; once is enough.
func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// build makes what turns requests into answers.
func (r *running) build() {
	r.pcp = &pcp.Server{
		Change: r.keeper.Change, Clock: r.keeper.Clock, External: r.networks.external, Local: r.networks.local, Connection: r.keeper.connection,
		Shortest: uint32(r.Shortest.Seconds()), Longest: uint32(r.Longest.Seconds()), Others: r.Others, Log: r.Log,
	}
	id := sha256.Sum256([]byte("weir portmap " + r.networks.now.Load().lan[0].MAC + " " + r.Anchor))
	r.igd = &igd.Device{
		Change: r.keeper.Change, Table: func() *mapping.Table { return r.keeper.table.Load() }, Clock: r.keeper.Clock,
		External: r.networks.external, Local: r.networks.local, Same: r.networks.same, Traffic: func() igd.Traffic { return r.Machine.Traffic(r.WAN) },
		Others: r.Others, UUID: [16]byte(id[:16]), Version: r.Version, Port: r.HTTPPort, Log: r.Log,
	}
}

// families are those of the sockets.
var families = []bool{true, false} // IPv4, IPv6

// open opens all sockets, and returns what serves them.
func (r *running) open(ctx context.Context) (serving []func(context.Context) error, err error) {
	for n, device := range r.LAN {
		for _, is4 := range families {
			if r.PCP {
				if err := r.openPCP(ctx, device, is4, &serving); err != nil {
					return nil, err
				}
			}
			if !r.UPnP {
				continue
			}
			if err := r.openSSDP(ctx, n, is4, &serving); err != nil {
				return nil, err
			}
			if err := r.openHTTP(ctx, device, is4, &serving); err != nil {
				return nil, err
			}
		}
	}
	if r.UPnP {
		serving = append(serving, r.notify)
	}
	return serving, nil
}

// Requests that are handled at once: most wait for a load of rules, which serves all.
const (
	pcpAtOnce  = 256
	ssdpAtOnce = 4
	httpAtOnce = 128 // connections
)

func (r *running) openPCP(ctx context.Context, device string, is4 bool, serving *[]func(context.Context) error) error {
	e, err := listenUDP(ctx, device, is4, pcp.Port, false)
	if err != nil {
		return err
	}
	r.pcpEnds = append(r.pcpEnds, e)
	*serving = append(*serving, func(ctx context.Context) error {
		stop := context.AfterFunc(ctx, func() { e.conn.Close() })
		defer stop()
		return e.serve(ctx, pcpAtOnce, func(d *datagram) {
			if d.to.IsMulticast() { // a request is for one server
				return
			}
			host := d.from.Addr().WithZone("")
			if answer := r.pcp.Answer(ctx, d.data, host); answer != nil {
				r.sent(e.send(answer, d.to, d.from), host)
			}
		})
	})
	return nil
}

func (r *running) sent(err error, host netip.Addr) {
	if err != nil {
		r.Log.Debug("answer a host", "host", host, "error", err)
	}
}

func (r *running) openSSDP(ctx context.Context, lan int, is4 bool, serving *[]func(context.Context) error) error {
	groups := []netip.Addr{igd.Group6Link, igd.Group6Site}
	if is4 {
		groups = []netip.Addr{igd.Group4}
	}
	e, err := listenUDP(ctx, r.LAN[lan], is4, igd.SSDPPort, true, groups...)
	if err != nil {
		return err
	}
	r.ssdpEnds = append(r.ssdpEnds, e)
	limit := newLimit(searchesPerSecond)
	*serving = append(*serving, func(ctx context.Context) error {
		stop := context.AfterFunc(ctx, func() { e.conn.SetReadDeadline(time.Now()) }) //nolint:errcheck // it is open until byebye is sent
		defer stop()
		return e.serve(ctx, ssdpAtOnce, func(d *datagram) {
			// Only a neighbour is answered: the answer is longer than the question.
			network := &r.networks.now.Load().lan[lan]
			own, ok := network.facing(d.from.Addr().WithZone(""))
			if !ok || !limit.take(time.Now()) {
				return
			}
			told := own
			if !is4 {
				told, _ = network.told(false)
			}
			for _, answer := range r.igd.AnswerSearch(d.data, told) {
				r.sent(e.send(answer, own, d.from), d.from.Addr())
			}
		})
	})
	return nil
}

// Times of the server of descriptions: its hosts are near.
const (
	httpPatience = 10 * time.Second
	actionTime   = loadPatience + httpPatience
)

func (r *running) openHTTP(ctx context.Context, device string, is4 bool, serving *[]func(context.Context) error) error {
	network := "tcp6"
	if is4 {
		network = "tcp4"
	}
	l, err := bound(device, false).Listen(ctx, network, fmt.Sprintf(":%d", r.HTTPPort))
	if err != nil {
		return fmt.Errorf("listen on %s: %w", device, err)
	}
	server := &http.Server{
		Handler: r.igd, ReadTimeout: httpPatience, WriteTimeout: actionTime, IdleTimeout: httpPatience, MaxHeaderBytes: 8 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	*serving = append(*serving, func(ctx context.Context) error {
		stop := context.AfterFunc(ctx, func() { server.Close() })
		defer stop()
		if err := server.Serve(netutil.LimitListener(l, httpAtOnce)); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	return nil
}

// notify tells subscribers of UPnP what has changed, at most five times a second (UDA 1.1,
// 4.3 asks to be moderate), and new ones soon.
func (r *running) notify(ctx context.Context) error {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			r.igd.Notify(ctx)
		}
	}
}

func (r *running) close() {
	for _, e := range append(r.pcpEnds, r.ssdpEnds...) {
		e.conn.Close()
	}
}
