package portmap

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"weir/internal/portmap/igd"
	"weir/internal/portmap/pcp"
)

// Groups that announcements of NAT-PMP and PCP go to: all hosts of a link.
var (
	allHosts4 = netip.AddrPortFrom(netip.MustParseAddr("224.0.0.1"), pcp.AnnouncePort)
	allHosts6 = netip.AddrPortFrom(netip.MustParseAddr("ff02::1"), pcp.AnnouncePort)
)

// Announcements of NAT-PMP and PCP are sent ten times: at once, after a quarter of a second,
// then after twice as long each time (RFC 6886, 3.2.1; RFC 6887, 14.1.3).
const (
	announcements     = 10
	firstAnnouncement = 250 * time.Millisecond
)

// Announcements of SSDP are repeated long before they end. The first ones are sent twice, as
// datagrams get lost.
const (
	aliveEvery = 10 * time.Minute
	aliveAgain = 500 * time.Millisecond
)

// announce starts the tasks that tell hosts of the box, unasked.
func (r *running) announce(ctx context.Context) {
	if r.PCP {
		r.group.Go(func() error { return r.announceAddress(ctx) })
	}
	if r.UPnP {
		r.group.Go(func() error { return r.announceDevice(ctx) })
	}
}

// announceAddress tells the external address at the start and when it changes.
func (r *running) announceAddress(ctx context.Context) error {
	left, pause := announcements, time.Duration(0)
	for {
		var next <-chan time.Time
		if left > 0 {
			next = time.After(pause)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-r.moved:
			left, pause = announcements, 0
		case <-next:
			r.sendAddress()
			left--
			pause = max(2*pause, firstAnnouncement)
		}
	}
}

func (r *running) sendAddress() {
	for _, e := range r.pcpEnds {
		if !e.is4 {
			r.sent(e.send(r.pcp.Announcement(), netip.Addr{}, allHosts6), allHosts6.Addr())
			continue
		}
		r.sent(e.send(r.pcp.AddressNATPMP(), netip.Addr{}, allHosts4), allHosts4.Addr())
		r.sent(e.send(r.pcp.Announcement(), netip.Addr{}, allHosts4), allHosts4.Addr())
	}
}

// announceDevice tells that the device is there, and at the end that it goes.
func (r *running) announceDevice(ctx context.Context) error {
	r.sendDevice(true)
	pause := aliveAgain
	for {
		select {
		case <-ctx.Done():
			r.sendDevice(false)
			for _, e := range r.ssdpEnds {
				e.conn.Close()
			}
			return nil
		case <-time.After(pause):
			r.sendDevice(true)
			pause = aliveEvery
		}
	}
}

func (r *running) sendDevice(alive bool) {
	v := r.networks.now.Load()
	for _, e := range r.ssdpEnds {
		for _, lan := range v.lan {
			if own, ok := lan.told(e.is4); ok && lan.Name == e.device.Name {
				r.sendDeviceBy(e, own, alive)
			}
		}
	}
}

func (r *running) sendDeviceBy(e *endpoint, own netip.Addr, alive bool) {
	groups := []netip.Addr{igd.Group4}
	if !e.is4 {
		groups = []netip.Addr{igd.Group6Link, igd.Group6Site}
	}
	for _, group := range groups {
		for _, m := range r.igd.Announcements(group, own, alive) {
			r.sent(e.send(m, own, netip.AddrPortFrom(group, igd.SSDPPort)), group)
		}
	}
}

// searchesPerSecond bounds what an interface is sent for searches.
const searchesPerSecond = 50

// A limit allows so many events a second.
type limit struct {
	mu     sync.Mutex
	most   int
	second int64
	n      int
}

func newLimit(most int) *limit { return &limit{most: most} }

func (l *limit) take(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := now.Unix(); s != l.second {
		l.second, l.n = s, 0
	}
	l.n++
	return l.n <= l.most
}
