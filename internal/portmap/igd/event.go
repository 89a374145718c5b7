package igd

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"
)

// Bounds of subscriptions.
const (
	mostSubscriptions  = 64
	subscriptionTime   = 30 * time.Minute
	notifyPatience     = 5 * time.Second
	failuresUntilEnded = 3
)

// A subscription is a host that wants to hear when something changes (UDA 1.1, 4).
type subscription struct {
	id       string
	service  *service
	version  int
	host     netip.Addr
	callback string
	ends     time.Time
	sequence uint32
	told     string // the values that it knows
	failures int
	busy     bool // a notification is under way
}

type events struct {
	mu   sync.Mutex
	subs map[string]*subscription
}

// subscription serves SUBSCRIBE and UNSUBSCRIBE.
func (d *Device) subscription(w http.ResponseWriter, r *http.Request, s *service, version int, host netip.Addr) {
	id, fresh := r.Header.Get("SID"), r.Header.Get("CALLBACK") != "" || r.Header.Get("NT") != ""
	if r.Method == "UNSUBSCRIBE" || id != "" {
		if fresh || id == "" {
			http.Error(w, "SID and CALLBACK exclude each other", http.StatusBadRequest)
			return
		}
		if !d.renew(id, s, host, r.Method == "SUBSCRIBE") {
			http.Error(w, "no such subscription", http.StatusPreconditionFailed)
			return
		}
		if r.Method == "SUBSCRIBE" {
			d.subscribed(w, id)
		}
		return
	}
	callback, ok := callbackOf(r.Header.Get("CALLBACK"), host)
	if !ok || r.Header.Get("NT") != "upnp:event" {
		http.Error(w, "CALLBACK must be an http address of the subscriber", http.StatusPreconditionFailed)
		return
	}
	sub := &subscription{id: "uuid:" + rand.Text(), service: s, version: version, host: host, callback: callback, ends: time.Now().Add(subscriptionTime)}
	if !d.enter(sub) {
		http.Error(w, "too many subscriptions", http.StatusServiceUnavailable)
		return
	}
	d.subscribed(w, sub.id)
}

func (d *Device) subscribed(w http.ResponseWriter, id string) {
	w.Header().Set("SID", id)
	w.Header().Set("TIMEOUT", fmt.Sprintf("Second-%d", int(subscriptionTime.Seconds())))
	w.Header().Set("Server", d.server())
	w.Header().Set("Content-Length", "0")
}

// callbackOf reads the address that events go to. It is of the subscriber itself: else
// anybody could have the box send requests to others (CallStranger, CVE-2020-12695).
func callbackOf(header string, host netip.Addr) (string, bool) {
	_, rest, ok := strings.Cut(header, "<")
	text, _, closed := strings.Cut(rest, ">")
	if !ok || !closed || len(text) > 512 {
		return "", false
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" || u.User != nil {
		return "", false
	}
	addr, err := netip.ParseAddr(u.Hostname())
	if err != nil || addr.Unmap() != host {
		return "", false
	}
	return u.String(), true
}

func (d *Device) enter(sub *subscription) bool {
	d.events.mu.Lock()
	defer d.events.mu.Unlock()
	own := 0
	for id, other := range d.events.subs {
		if time.Now().After(other.ends) {
			delete(d.events.subs, id)
		} else if other.host == sub.host {
			own++
		}
	}
	if len(d.events.subs) >= mostSubscriptions || own >= mostSubscriptions/4 {
		return false
	}
	if d.events.subs == nil {
		d.events.subs = make(map[string]*subscription)
	}
	d.events.subs[sub.id] = sub
	return true
}

// renew prolongs a subscription of a host, or ends it.
func (d *Device) renew(id string, s *service, host netip.Addr, on bool) bool {
	d.events.mu.Lock()
	defer d.events.mu.Unlock()
	sub := d.events.subs[id]
	if sub == nil || sub.host != host || sub.service != s || time.Now().After(sub.ends) {
		return false
	}
	if on {
		sub.ends = time.Now().Add(subscriptionTime)
	} else {
		delete(d.events.subs, id)
	}
	return true
}

// values are the variables of a service whose changes are told.
func (d *Device) values(s *service, version int) string {
	switch s.kind {
	case "WANIPConnection":
		n := 0
		for _, m := range d.Table().All() {
			if m.Internal.Addr().Is4() {
				n++
			}
		}
		return property("PossibleConnectionTypes", "IP_Routed") + property("ConnectionStatus", d.connectionStatus()) +
			property("ExternalIPAddress", d.externalText()) + property("PortMappingNumberOfEntries", fmt.Sprint(n))
	case "WANCommonInterfaceConfig":
		return property("PhysicalLinkStatus", d.linkStatus())
	case "WANIPv6FirewallControl":
		return property("FirewallEnabled", "1") + property("InboundPinholeAllowed", "1")
	}
	return property("DefaultConnectionService", d.defaultConnection(version))
}

func property(name, value string) string {
	return fmt.Sprintf("<e:property><%s>%s</%s></e:property>", name, escape(value), name)
}

// Notify tells subscribers what they do not know. It does not wait for them.
func (d *Device) Notify(ctx context.Context) {
	d.events.mu.Lock()
	defer d.events.mu.Unlock()
	for id, sub := range d.events.subs {
		if time.Now().After(sub.ends) || sub.failures >= failuresUntilEnded {
			delete(d.events.subs, id)
			continue
		}
		if text := d.values(sub.service, sub.version); text != sub.told && !sub.busy {
			sub.busy = true
			go d.tell(ctx, sub, text)
		}
	}
}

// tell sends one notification.
func (d *Device) tell(ctx context.Context, sub *subscription, text string) {
	err := send(ctx, sub, text)
	d.events.mu.Lock()
	defer d.events.mu.Unlock()
	sub.busy = false
	if err != nil {
		sub.failures++
		d.Log.Debug("a subscriber does not answer", "host", sub.host, "error", err)
		return
	}
	sub.told, sub.failures = text, 0
	if sub.sequence++; sub.sequence == 0 { // 0 is the first notification only
		sub.sequence = 1
	}
}

// notifier follows no redirect and asks no proxy: it talks to the subscriber only.
var notifier = &http.Client{
	Timeout:       notifyPatience,
	Transport:     &http.Transport{DisableKeepAlives: true, MaxResponseHeaderBytes: 8 << 10},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

func send(ctx context.Context, sub *subscription, text string) error {
	body := `<?xml version="1.0"?>` + "\n" + `<e:propertyset xmlns:e="urn:schemas-upnp-org:event-1-0">` + text + "</e:propertyset>\n"
	r, err := http.NewRequestWithContext(ctx, "NOTIFY", sub.callback, bytes.NewReader([]byte(body)))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", `text/xml; charset="utf-8"`)
	r.Header["NT"] = []string{"upnp:event"}
	r.Header["NTS"] = []string{"upnp:propchange"}
	r.Header["SID"] = []string{sub.id}
	r.Header["SEQ"] = []string{fmt.Sprint(sub.sequence)}
	answer, err := notifier.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, io.LimitReader(answer.Body, 4096))
	return err
}
