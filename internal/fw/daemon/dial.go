package daemon

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"weir/internal/fw/control"
	"weir/internal/host/netif"
	"weir/internal/pppoe/client"
	"weir/internal/pppoe/line"
	"weir/internal/pppoe/ppp"
	"weir/internal/pppoe/wire"
	"weir/pf/resolve"
)

// A dial keeps the session of one PPPoE interface up. Its methods are called with the dialler's lock,
// except for what the goroutine of its session calls.
type dial struct {
	dialler *dialler
	of      resolve.PPPoE
	device  line.Device
	held    bool // down until a command asks for it
	running *session
	prefix  *delegation // nil: no prefix is asked for
	heard   uint64      // what the data path said last of packets of the session
	closed  bool        // at the last look the data path had closed the session, and the client had not
	dark    bool        // the interface below has no carrier, as the client was told
	room    uint16      // how large packets have room in the interface below, as the client was told
	resized time.Time   // when it was told so
	small   string      // why packets are asked for that are smaller than the rules say; "": they are not

	renewAt  time.Time    // when the session is made anew, by the time of day; zero: not known yet
	resolved []netip.Addr // what systemd-resolved was told
	untold   untold       // why it knows something else

	before *client.Ref // a session that may still be there for the concentrator

	nexthops *line.Nexthops // that went with the carrier; with setting

	setting sync.Mutex // of what the interface has; it is held while that changes
	carries bool       // it has what the session says; with setting

	unrestored string // what the log says of that

	mu      sync.Mutex // of what follows, which the session's goroutines write
	state   control.PPPoEState
	since   time.Time // of state
	why     string
	retry   time.Time
	kept    bool // the session is kept that does not answer
	session client.Session
	log     []control.PPPoELine
	frames  []control.PPPoEFrame
}

// A session is a client that runs.
type session struct {
	on       *net.Interface // the interface below
	cancel   context.CancelFunc
	commands chan client.Command
	done     chan struct{}
}

const (
	// mostLines is how many lines of a session's log are kept.
	mostLines = 500
	// mostFrame is how many bytes of a frame are kept. Only large echoes have more.
	mostFrame = 512
	// goodbyePatience is how long a client may need to end its session.
	goodbyePatience = 5 * time.Second
)

// restart starts the client, unless it runs or is not to.
func (s *dial) restart() {
	if s.running != nil {
		select {
		case <-s.running.done:
			s.running = nil
		default:
			return
		}
	}
	if s.held {
		return
	}
	if err := s.start(); err != nil {
		s.fail(err)
		s.dialler.scripts.down(s.of.Name) // of a session of an earlier daemon
	}
}

// watch tells the client what the data path has seen: packets of its session, or its end. The client has that
// frame too, unless it was lost on the way to it.
func (s *dial) watch() {
	s.mu.Lock()
	up := s.state == control.PPPoEUp
	s.mu.Unlock()
	if s.running == nil {
		s.closed = false
		return
	}
	s.watchBelow()
	b, end, heard := s.dialler.box, line.End{}, uint64(0)
	b.logPPPoE(b.lines.do(func(p *line.Programs) error {
		end, heard = p.Ended(s.device), uint64(p.Heard(s.device))
		return nil
	}))
	b.mu.Lock()
	if b.dp != nil {
		heard |= uint64(b.dp.Heard(s.device.Line)) << 32
	}
	b.mu.Unlock()
	switch {
	case end.By != "" && s.closed: // also if the state is another one: its events may still wait
		s.running.ask(client.Command{Do: client.EndSeen, Ref: client.Ref{Peer: end.Peer, ID: end.ID}})
	case up && end.By == "" && heard != s.heard:
		s.running.ask(client.Command{Do: client.TrafficSeen})
	}
	s.closed, s.heard = end.By != "", heard
}

// ask gives the client a command, unless it has one that it has not looked at.
func (r *session) ask(c client.Command) bool {
	select {
	case r.commands <- c:
		return true
	default:
		return false
	}
}

// fail notes why there is no session. The next look tries again.
func (s *dial) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.why != err.Error() {
		s.dialler.box.cfg.Log.Error("PPPoE", "interface", s.of.Name, "error", err)
	}
	s.be(control.PPPoEFailed, err.Error())
}

// be notes a state. The caller holds s.mu.
func (s *dial) be(state control.PPPoEState, why string) {
	if s.state != state {
		s.since = time.Now()
	}
	s.state, s.why, s.retry, s.kept = state, why, time.Time{}, false
}

func (s *dial) start() error {
	b := s.dialler.box
	secret, err := password(s.of.Password)
	if err != nil {
		return err
	}
	if err := b.lines.open(b.pppoeFolder()); err != nil {
		return err
	}
	before := s.device.Index
	if s.device, err = line.Add(s.of.Name); err != nil {
		return err
	}
	if s.device.Index != before { // systemd-resolved knows nothing of that one
		s.resolved, s.untold = nil, untold{}
	}
	priority := 0
	if s.of.Priority != nil {
		if priority, err = wire.Priority(s.of.On, *s.of.Priority); err != nil {
			return err
		}
	}
	w, err := wire.Open(s.of.On, priority)
	if err != nil {
		return err
	}
	config := client.Config{
		Service: s.of.Service, AC: s.of.AC, HostUniq: s.of.HostUniq, MTU: s.of.MTU, Random: rand.Reader,
		Prove: ppp.Prove{Name: s.of.User, Secret: ppp.NewSecret(secret), Methods: methods(s.of.Auth)},
	}
	if config.MTU, s.small = roomFor(s.of.MTU, w.Interface); s.small != "" {
		s.say(s.small)
	}
	s.room, config.Dark, config.Before = config.MTU, isDark(w.Interface), s.before
	if s.of.Inet {
		config.V4 = &ppp.V4{AskDNS: true}
	}
	if s.of.Inet6 {
		config.V6 = &ppp.V6{}
	}
	if r, ok := s.dialler.record(s.of.Name); ok {
		config.Before = &r.Saved.Ref
		by, err := s.endedBy()
		if err != nil {
			w.Close()
			return err
		}
		if by != "" {
			s.dialler.box.cfg.Log.Warn("the concentrator has ended a PPPoE session while no daemon ran", "interface", s.of.Name, "by", by)
		} else if reflect.DeepEqual(r.Of, s.of) {
			config.Resume = &r.Saved
		}
	}
	if config.Resume == nil {
		if err := s.down(); err != nil {
			w.Close()
			return err
		}
		s.dialler.scripts.down(s.of.Name)
	}
	group := s.dialler.groups[s.of.On]
	if group == nil {
		group = &client.Group{}
		s.dialler.groups[s.of.On] = group
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.running = &session{on: w.Interface, cancel: cancel, commands: make(chan client.Command, 1), done: make(chan struct{})}
	s.dark, s.before = config.Dark, nil
	s.mu.Lock()
	s.be(control.PPPoEStarting, "")
	s.mu.Unlock()
	go s.keep(ctx, s.running, w, group, config)
	return nil
}

// endedBy returns by what the concentrator has ended the interface's session; "": it has not.
func (s *dial) endedBy() (by string, err error) {
	err = s.dialler.box.lines.do(func(p *line.Programs) error {
		by = p.Ended(s.device).By
		return nil
	})
	return by, err
}

func methods(names []string) (all []ppp.Method) {
	for _, name := range names {
		all = append(all, map[string]ppp.Method{"chap": ppp.ByCHAP, "mschapv2": ppp.ByMSCHAPv2, "pap": ppp.ByPAP}[name])
	}
	return all
}

// keep runs the client. What its events ask for is done beside it, so that it answers in time.
func (s *dial) keep(ctx context.Context, r *session, w *wire.Wire, group *client.Group, config client.Config) {
	defer close(r.done)
	events := make(chan client.Event, 1024)
	handled := make(chan struct{})
	go func() {
		defer close(handled)
		for e := range events {
			s.handle(&e)
		}
	}()
	err := client.Run(ctx, w, group, config, r.commands, func(e client.Event) {
		if e.Kind == client.Frame {
			s.keepFrame(&e)
			return
		}
		events <- e
	})
	close(events)
	<-handled
	w.Close()
	if err != nil {
		s.mu.Lock()
		last, was := s.session, s.state == control.PPPoEUp || s.kept
		s.mu.Unlock()
		if was {
			s.before = &last.Ref
		}
		s.dialler.box.logPPPoE(s.down())
		s.fail(err)
		s.dialler.scripts.down(s.of.Name)
	}
}

// say adds a line to the log of the session.
func (s *dial) say(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, control.PPPoELine{Time: time.Now(), Text: text})
	s.log = s.log[max(0, len(s.log)-mostLines):]
}

// keepFrame keeps a frame for weir pppoe log -w.
func (s *dial) keepFrame(e *client.Event) {
	f := control.PPPoEFrame{Time: time.Now(), Out: e.Out, Length: len(e.Frame), Data: e.Frame[:min(len(e.Frame), mostFrame)], Text: e.Text}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frames = append(s.frames, f)
	s.frames = s.frames[max(0, len(s.frames)-mostLines):]
}

// handle does what an event of the client asks for.
func (s *dial) handle(e *client.Event) {
	s.say(e.String())
	log := s.dialler.box.cfg.Log
	switch e.Kind {
	case client.Up, client.Changed:
		err := s.up(e)
		if errors.Is(err, line.ErrEnded) {
			return // what the client says next is that it is down
		}
		if err != nil {
			s.fail(err)
			return
		}
		log.Info("a PPPoE session is up", "interface", s.of.Name, "session", fmt.Sprintf("0x%04x", e.Session.ID), "concentrator", e.Session.AC,
			"address", e.Session.IPv4, "mtu", e.Session.MTU)
		s.dialler.scripts.up(&s.of, &e.Session)
	case client.Held:
		log.Warn("the line of a PPPoE session has no carrier", "interface", s.of.Name, "line", s.of.On)
		if err := s.hold(); err != nil {
			s.fail(err)
			return
		}
		s.mu.Lock()
		s.be(control.PPPoEWaiting, "")
		s.kept, s.session = true, e.Session
		s.mu.Unlock()
		s.dialler.scripts.down(s.of.Name)
	case client.Down:
		log.Warn("a PPPoE session is down", "interface", s.of.Name, "why", e.Text, "next_attempt", max(e.Retry, 0))
		if err := s.down(); err != nil {
			s.fail(err)
		}
		s.mu.Lock()
		s.be(control.PPPoEWaiting, e.Text)
		if e.Retry >= 0 {
			s.retry = time.Now().Add(e.Retry)
		} else {
			s.be(control.PPPoEDown, e.Text)
		}
		s.mu.Unlock()
		s.dialler.scripts.down(s.of.Name)
	}
}

// up gives the interface its session.
func (s *dial) up(e *client.Event) error {
	s.setting.Lock()
	defer s.setting.Unlock()
	s.carries = false
	b, at := s.dialler.box, &e.Session
	b.lines.mu.Lock()
	delete(b.lines.ending, s.of.Name)
	b.lines.mu.Unlock()
	var deprecated error
	if r, ok := s.dialler.record(s.of.Name); !ok || r.Saved.Ref != at.Ref { // before a router of this session can advertise any
		deprecated = s.device.Deprecate()
	}
	err := b.lines.do(func(p *line.Programs) error {
		return p.Enter(line.Session{
			Device: s.device, Carrier: at.Interface, ID: at.ID, Peer: at.Peer, Local: at.Local, MTU: at.MTU, Magic: at.Magic,
		})
	})
	if err != nil {
		return err
	}
	addresses := s.addressesOf(at)
	err = errors.Join(deprecated, s.device.Describe(net.HardwareAddr(at.Local[:]), int(min(at.MTU, at.MRU))), s.raise())
	if at.ID6 != 0 {
		err = errors.Join(err, s.device.AcceptAdvertisements())
	}
	err = errors.Join(err, s.setAddresses(addresses))
	if s.of.Route {
		err = errors.Join(err, s.device.SetRoutes(addresses, s.of.Order))
	}
	if err != nil {
		return err
	}
	if e.Saved != nil {
		since := time.Now()
		if r, ok := s.dialler.record(s.of.Name); ok && r.Saved.Ref == e.Saved.Ref {
			since = r.Since
		}
		s.dialler.note(s.of.Name, &pppoeRecord{Of: s.of, Saved: *e.Saved, Since: since})
	}
	b.updateLater(b.follow(netif.ChangedLinks | netif.ChangedAddresses | netif.ChangedDefault))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.be(control.PPPoEUp, "")
	if r, ok := s.dialler.record(s.of.Name); ok {
		s.since = r.Since
	}
	s.session = *at
	if at.ID6 != 0 {
		s.prefix.set(ipv6Session{Ref: at.Ref, Address: client.LinkLocal(at.ID6), Local: at.Local})
	} else {
		s.prefix.set(ipv6Session{})
	}
	s.carries = true
	return nil
}

// darkness says that the line has no carrier.
func (s *dial) darkness() string { return s.of.On + " has no carrier" }

// hold has nothing go into the session, until it answers again: another uplink is used meanwhile, if there is one.
func (s *dial) hold() error {
	s.setting.Lock()
	defer s.setting.Unlock()
	s.carries = false
	s.prefix.set(ipv6Session{})
	err := errors.Join(s.noRoutes(), s.lower())
	s.dialler.box.updateLater(s.dialler.box.follow(netif.ChangedLinks | netif.ChangedDefault))
	return err
}

// lower takes the interface's carrier away. What of others the kernel removes with it is remembered.
func (s *dial) lower() error {
	var err error
	if s.nexthops, err = s.device.Nexthops(s.nexthops); err != nil {
		s.dialler.box.cfg.Log.Warn("keep the nexthop objects of others of a PPPoE interface", "interface", s.of.Name, "error", err)
	}
	return s.device.SetCarrier(false)
}

// raise gives the interface its carrier, and puts back what went with it. What of others is lost does not end the session.
func (s *dial) raise() error {
	if err := s.device.SetCarrier(true); err != nil {
		return err
	}
	if err := s.nexthops.PutBack(s.device); err != nil {
		s.dialler.box.cfg.Log.Warn("keep the nexthop objects of others of a PPPoE interface", "interface", s.of.Name, "error", err)
	}
	s.nexthops = nil
	return nil
}

// noRoutes removes the default routes, if they are weir's.
func (s *dial) noRoutes() error {
	if !s.of.Route {
		return nil
	}
	return s.device.SetRoutes(line.Addresses{}, s.of.Order)
}

// down ends what the interface has. XDP ceases to take its frames first. Its addresses stay, so that
// connections go on if the next session has the same.
func (s *dial) down() error {
	s.setting.Lock()
	defer s.setting.Unlock()
	s.carries = false
	b, has := s.dialler.box, false
	r, _ := s.dialler.record(s.of.Name)
	routes := s.of.Route || r.Of.Route || s.of.On == "" // of a statement that is gone nothing may be known
	s.forget()
	s.prefix.set(ipv6Session{})
	err := b.lines.do(func(p *line.Programs) error {
		has = p.Has(s.device)
		return nil
	})
	if err != nil || !has {
		return errors.Join(err, s.lower())
	}
	b.lines.mu.Lock()
	if b.lines.ending == nil {
		b.lines.ending = map[string]bool{}
	}
	b.lines.ending[s.of.Name] = true
	b.lines.mu.Unlock()
	if routes {
		err = s.device.SetRoutes(line.Addresses{}, s.of.Order)
	}
	b.updateLater(b.follow(netif.ChangedLinks | netif.ChangedDefault))
	return errors.Join(err, b.lines.do(func(p *line.Programs) error { return p.Leave(s.device) }), s.lower())
}

// forget removes the record of a session that is over.
func (s *dial) forget() { s.dialler.note(s.of.Name, nil) }

// end ends the session, and waits until it is over.
func (s *dial) end() {
	if s.running == nil {
		return
	}
	s.running.cancel()
	select {
	case <-s.running.done:
	case <-time.After(goodbyePatience):
		s.dialler.box.cfg.Log.Error("a PPPoE session does not end", "interface", s.of.Name)
	}
	s.running = nil
}

// leave ends the client. The session stays.
func (s *dial) leave() {
	if s.running == nil {
		return
	}
	select {
	case s.running.commands <- client.Command{Do: client.Leave}:
	case <-s.running.done:
	}
	select {
	case <-s.running.done:
	case <-time.After(goodbyePatience):
	}
}

// remove removes the interface.
func (s *dial) remove() error {
	b := s.dialler.box
	if s.device.Index == 0 {
		return nil
	}
	if err := b.lines.open(b.pppoeFolder()); err != nil {
		return err
	}
	return errors.Join(s.down(), s.device.Remove(), b.lines.do((*line.Programs).Tidy))
}

func (s *dial) status() control.PPPoE {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := control.PPPoE{Prefix: s.prefix.snapshot(), Interface: s.of.Name, On: s.of.On, State: s.state, Since: s.since, Why: s.why, Retry: s.retry, Log: append([]control.PPPoELine{}, s.log...)}
	texts := make([]string, len(s.log))
	for i := range s.log {
		texts[i] = s.log[i].Text
	}
	ladder := client.NewLadder(texts)
	p.Quirks, p.Small = ladder.Quirks, s.small
	if s.held {
		p.State, p.Why = control.PPPoEDown, "by command"
	}
	switch {
	case s.kept && s.dark:
		p.Why = s.darkness() + "; the session is kept"
	case s.kept:
		p.Why = s.of.On + " has a carrier again, and the concentrator has not answered yet; the session is kept"
	case p.State == control.PPPoEWaiting && time.Now().Before(s.retry):
		p.Step, p.Why = ladder.Step, cmp.Or(p.Why, ladder.Why)
	case p.State == control.PPPoEStarting || p.State == control.PPPoEWaiting: // an attempt goes on
		p.Step, p.Why, p.Retry = ladder.Step, cmp.Or(ladder.Why, p.Why), time.Time{}
	}
	if s.dark && p.Step != "" && p.Step != "session" { // nobody can answer
		p.Step, p.Why, p.Retry = "", s.darkness(), time.Time{}
	}
	if p.State != control.PPPoEUp {
		return p
	}
	at := &s.session
	p.Session, p.AC, p.Peer = fmt.Sprintf("0x%04x", at.ID), at.AC, at.Peer.String()
	p.MTU, p.MRU, p.Auth = at.MTU, at.MRU, at.Method.String()
	p.IPv4, p.PeerIPv4, p.DNS = at.IPv4, at.PeerIPv4, at.DNS
	p.IPv6, p.PeerIPv6 = client.LinkLocal(at.ID6), client.LinkLocal(at.PeerID6)
	p.Quirks = slices.DeleteFunc(p.Quirks, func(quirk string) bool { // the peer may take a family away and give it again
		return at.IPv4.IsValid() && strings.HasPrefix(quirk, "no IPv4: ") || at.ID6 != 0 && strings.HasPrefix(quirk, "no IPv6: ")
	})
	return p
}
