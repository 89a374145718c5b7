package daemon

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"net/netip"
	"slices"
	"sync"
	"time"

	"weir/internal/fw/control"
	"weir/internal/fw/rundir"
	"weir/internal/pppoe/advertise"
	"weir/internal/pppoe/client"
	"weir/internal/pppoe/dhcp6"
	"weir/internal/pppoe/discovery"
	"weir/internal/pppoe/line"
	"weir/pf/resolve"
)

// A delegation asks the provider of one PPPoE interface for a prefix, and gives parts of it to other
// interfaces. It outlives sessions: hosts keep their addresses until the provider gives others.
type delegation struct {
	box     *box
	of      resolve.PPPoE
	say     func(text string) // to the log of the session
	session chan ipv6Session  // the latest
	cancel  context.CancelFunc
	done    chan struct{}

	// The rest is the goroutine's.
	client   *dhcp6.Client
	socket   *dhcp6.Socket // nil: no session
	received chan []byte   // of socket
	at       ipv6Session
	record   prefixRecord
	links    map[string]*announcer
	rests    map[string]*rest // of the same interfaces
	goneDNS  map[netip.Addr]time.Time
	said     string // last
	begun    time.Time
	settled  bool // it is known whether there is a session

	mu     sync.Mutex
	status control.PPPoEPrefix
}

// ipv6Session is a session that carries IPv6.
type ipv6Session struct {
	client.Ref
	Address netip.Addr // link-local; not valid: there is no such session
	Local   discovery.MAC
	dropped bool // the prefix is given up with the session
}

// prefixRecord is what the provider has delegated and what hosts were told, for the next daemon: it
// takes back what hosts know and the provider has changed.
type prefixRecord struct {
	DUID    []byte                 // who asked
	Session client.Ref             // in which the lease was made
	Lease   dhcp6.Lease            // without prefixes: there is none
	Last    netip.Prefix           // to ask for again
	Links   map[string][]announced // by the interface's name
	Routes  []netip.Prefix         // what is unreachable as a whole
}

// announced is a prefix that hosts were told of.
type announced struct {
	Prefix netip.Prefix
	Gone   time.Time `json:",omitzero"` // since when it is withdrawn
}

// delegationPause is the time between two looks at whether the interfaces are as they should be.
const delegationPause = 2 * time.Second

// settlePatience is how long nothing is announced after the start, until it is known whether a session
// of before goes on: hosts would drop their default route for a moment.
const settlePatience = 10 * time.Second

// newDelegation begins with what an earlier one has left. Before the first session nothing is sent.
func newDelegation(b *box, of resolve.PPPoE, say func(string)) *delegation {
	ctx, cancel := context.WithCancel(context.Background())
	d := &delegation{
		box: b, of: of, say: say, session: make(chan ipv6Session, 1), cancel: cancel, done: make(chan struct{}),
		links: map[string]*announcer{}, rests: map[string]*rest{}, goneDNS: map[netip.Addr]time.Time{}, begun: time.Now(),
	}
	go d.run(ctx)
	return d
}

// leave ends the goroutine. What hosts have stays.
func (d *delegation) leave() {
	if d != nil {
		d.cancel()
		<-d.done
	}
}

// set tells of the session. Only the latest counts.
func (d *delegation) set(s ipv6Session) {
	if d == nil {
		return
	}
	for {
		select {
		case d.session <- s:
			return
		case last := <-d.session:
			s.dropped = s.dropped || last.dropped
		}
	}
}

func (d *delegation) snapshot() *control.PPPoEPrefix {
	if d == nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.status
	return &s
}

func (d *delegation) run(ctx context.Context) {
	defer close(d.done)
	d.box.logPPPoE(d.begin())
	ticker := time.NewTicker(delegationPause)
	defer ticker.Stop()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		d.pass()
		timer.Reset(untilNext(d.client.Next()))
		select {
		case s := <-d.session:
			d.change(s)
		case b := <-d.received:
			d.client.Receive(b, time.Now())
		case <-timer.C:
			d.client.Tick(time.Now())
		case <-ticker.C:
			d.look()
		case <-ctx.Done():
			d.end()
			return
		}
	}
}

func untilNext(t time.Time) time.Duration {
	if t.IsZero() {
		return time.Hour
	}
	return max(time.Until(t), 0)
}

// begin reads what there is, and takes it from interfaces that are to have none any more.
func (d *delegation) begin() error {
	record, _, err := d.box.prefixRecord(d.of.Name)
	d.record = record
	if d.record.Links == nil {
		d.record.Links = map[string][]announced{}
	}
	for name := range d.record.Links {
		if !slices.ContainsFunc(d.of.PrefixTo, func(l resolve.PrefixLink) bool { return l.Name == name }) {
			err = errors.Join(err, d.record.withdraw(name))
			delete(d.record.Links, name)
		}
	}
	hash := fnv.New32a()
	hash.Write([]byte(d.of.Name))
	config := dhcp6.Config{
		DUID: d.record.DUID, IAID: [4]byte(binary.BigEndian.AppendUint32(nil, hash.Sum32())), Length: d.of.PrefixLength,
		Before: d.record.Last, Random: rand.Reader,
	}
	if len(d.record.Lease.Prefixes) > 0 {
		config.Lease = &d.record.Lease
	}
	d.client = dhcp6.New(config)
	d.client.Tick(time.Now())
	d.apply()
	return err
}

// change follows the session.
func (d *delegation) change(s ipv6Session) {
	d.settled = true
	if s == d.at && d.socket != nil {
		return
	}
	d.hangUp()
	d.at = s
	if s.dropped {
		before := d.record.Last
		d.lease(dhcp6.Lease{})
		d.client = dhcp6.New(dhcp6.Config{DUID: d.record.DUID, IAID: d.client.IAID(), Length: d.of.PrefixLength, Before: before, Random: rand.Reader})
	}
	if s.Address.IsValid() {
		d.pickUp()
	}
	d.apply()
}

// pickUp begins to ask in a session. Where it cannot, the next look tries again.
func (d *delegation) pickUp() {
	socket, err := dhcp6.Open(d.of.Name, d.at.Address)
	if err != nil {
		d.note(err.Error())
		return
	}
	if len(d.record.DUID) == 0 {
		// By the link-layer address (RFC 8415 11.4): it stays the same over a boot.
		d.record.DUID = append([]byte{0, 3, 0, 1}, d.at.Local[:]...)
		d.client.Identify(d.record.DUID)
	}
	received := make(chan []byte, 16)
	d.socket, d.received = socket, received
	go func() {
		for {
			b, err := socket.Receive()
			if err != nil {
				return // it is closed
			}
			select {
			case received <- b:
			default: // a flood
			}
		}
	}()
	d.client.Up(d.record.Session == d.at.Ref, time.Now())
}

func (d *delegation) hangUp() {
	if d.socket != nil {
		d.box.logPPPoE(d.socket.Close())
	}
	d.socket, d.received = nil, nil
	d.client.Down()
}

// end leaves all as it is.
func (d *delegation) end() {
	d.hangUp()
	for _, a := range d.links {
		a.close()
	}
}

// pass sends what the client has to send, and does what it says.
func (d *delegation) pass() {
	messages, events := d.client.Take()
	for _, b := range messages {
		if d.socket == nil {
			continue
		}
		if err := d.socket.Send(b); err != nil {
			d.note(err.Error()) // as good as lost
		}
	}
	changed := false
	for _, e := range events {
		if e.Kind == dhcp6.Note {
			d.note(e.Text)
			continue
		}
		changed = true
		d.lease(e.Lease)
	}
	if changed {
		d.apply()
	}
}

// lease takes another lease.
func (d *delegation) lease(l dhcp6.Lease) {
	for _, a := range d.record.Lease.DNS {
		d.goneDNS[a] = time.Now()
	}
	if len(l.Prefixes) > 0 {
		d.record.Last = l.Prefixes[len(l.Prefixes)-1].Prefix
	}
	if d.at.Address.IsValid() {
		d.record.Session = d.at.Ref
	}
	d.record.Lease = l
}

func (d *delegation) note(text string) {
	d.mu.Lock()
	d.status.Why = text
	d.mu.Unlock()
	if text != d.said {
		d.say("DHCPv6 " + text)
	}
	d.said = text
}

// look puts right what others have changed, and begins what could not be begun.
func (d *delegation) look() {
	d.settled = d.settled || time.Since(d.begun) > settlePatience
	if d.at.Address.IsValid() && d.socket == nil {
		d.pickUp()
	}
	d.apply()
}

// apply gives the interfaces their addresses and has hosts told. The record is written first: what
// hosts know, the next daemon can take back.
func (d *delegation) apply() {
	now := time.Now()
	before := d.record.text()
	parts := map[string][]advertise.Prefix{}
	for _, l := range d.of.PrefixTo {
		parts[l.Name] = d.record.parts(l, now)
		d.record.announce(l.Name, parts[l.Name], now)
	}
	routes := d.record.Routes
	d.record.Routes = nil
	for _, p := range d.record.Lease.Prefixes {
		d.record.Routes = append(d.record.Routes, p.Prefix)
	}
	if before != d.record.text() {
		d.box.logPPPoE(d.box.writePrefixRecord(d.of.Name, &d.record))
		for _, p := range routes {
			if !slices.Contains(d.record.Routes, p) {
				d.box.logPPPoE(line.RemoveUnreachable(p))
			}
		}
	}
	var faults []error
	for _, p := range d.record.Routes {
		faults = append(faults, line.AddUnreachable(p))
	}
	links := make([]control.DelegatedLink, 0, len(d.of.PrefixTo))
	for _, l := range d.of.PrefixTo {
		links = append(links, d.applyTo(l.Name, parts[l.Name]))
	}
	d.box.logPPPoE(errors.Join(faults...))
	d.mu.Lock()
	defer d.mu.Unlock()
	d.status.Links, d.status.DNS, d.status.Renew, d.status.Delegated = links, d.record.Lease.DNS, d.record.Lease.Renew, nil
	for _, p := range d.record.Lease.Prefixes {
		d.status.Delegated = append(d.status.Delegated, control.DelegatedPrefix(p))
	}
}

// applyTo does it for one interface.
func (d *delegation) applyTo(name string, parts []advertise.Prefix) control.DelegatedLink {
	status := control.DelegatedLink{Interface: name}
	var gone []netip.Prefix
	state := advertise.State{Router: d.at.Address.IsValid() && len(parts) > 0, Prefixes: slices.Clone(parts), DNS: d.record.Lease.DNS}
	for _, p := range parts {
		status.Prefixes = append(status.Prefixes, p.Prefix)
	}
	for _, a := range d.record.Links[name] {
		if !a.Gone.IsZero() {
			gone = append(gone, a.Prefix)
			state.Prefixes = append(state.Prefixes, advertise.Prefix{Prefix: a.Prefix, Preferred: a.Gone, Valid: a.Gone})
		}
	}
	status.Withdrawn = gone
	state.GoneDNS = d.withdrawnDNS()
	if len(parts) == 0 && len(d.record.Lease.Prefixes) > 0 {
		status.Why = fmt.Sprintf("%s has no such subnet", d.record.Lease.Prefixes[0].Prefix)
	}
	if err := line.SetDelegated(name, parts, gone); err != nil {
		status.Why = err.Error()
	}
	if err := d.announce(name, state); err != nil {
		status.Why = err.Error()
	}
	return status
}

// withdrawnDNS are the name servers that hosts know and the provider has replaced.
func (d *delegation) withdrawnDNS() (all []netip.Addr) {
	for a, since := range d.goneDNS {
		switch {
		case slices.Contains(d.record.Lease.DNS, a), time.Since(since) > advertise.MostValid:
			delete(d.goneDNS, a)
		default:
			all = append(all, a)
		}
	}
	slices.SortFunc(all, netip.Addr.Compare)
	return all
}

// announce has the hosts of an interface told.
func (d *delegation) announce(name string, s advertise.State) error {
	if !d.settled {
		return nil
	}
	a := d.links[name]
	if a != nil && !a.works() {
		a.close()
		delete(d.links, name)
		d.rest(a)
		a = nil
	}
	if a == nil {
		if len(s.Prefixes) == 0 {
			return nil
		}
		if r := d.rests[name]; r != nil && time.Now().Before(r.until) {
			return r.why
		}
		var err error
		if a, err = newAnnouncer(name); err != nil {
			return err
		}
		d.links[name] = a
	}
	a.set(s)
	return nil
}

// rest has an interface rest after a fault of its announcer.
func (d *delegation) rest(a *announcer) {
	fault := a.fault.Load()
	if fault == nil || !a.isThere() { // another interface may work
		delete(d.rests, a.name)
		return
	}
	if d.rests[a.name] == nil {
		d.rests[a.name] = &rest{}
	}
	now := time.Now()
	if d.rests[a.name].begin(*fault, now.Sub(a.begun), now) {
		d.box.cfg.Log.Error("send router advertisements", "interface", a.name, "error", *fault)
	}
}

// parts are the /64 of an interface.
func (r *prefixRecord) parts(l resolve.PrefixLink, now time.Time) (all []advertise.Prefix) {
	for _, p := range r.Lease.Prefixes {
		if sub, ok := subnet(p.Prefix, l.Subnet); ok && (p.Valid.IsZero() || p.Valid.After(now)) {
			all = append(all, advertise.Prefix{Prefix: sub, Preferred: p.Preferred, Valid: p.Valid})
		}
	}
	return all
}

// subnet returns a /64 of a prefix; false: it has no such one.
func subnet(p netip.Prefix, n uint32) (netip.Prefix, bool) {
	b := p.Masked().Addr().As16()
	network := binary.BigEndian.Uint64(b[:])
	if free := advertise.Bits - p.Bits(); free < 0 || uint64(n)>>free > 0 {
		return netip.Prefix{}, false
	}
	binary.BigEndian.PutUint64(b[:], network|uint64(n))
	return netip.PrefixFrom(netip.AddrFrom16(b), advertise.Bits), true
}

// announce notes what the hosts of an interface are told, and what is withdrawn. After the longest
// time for which hosts know of a prefix it is forgotten (RFC 9096 3.5).
func (r *prefixRecord) announce(name string, parts []advertise.Prefix, now time.Time) {
	all := slices.DeleteFunc(r.Links[name], func(a announced) bool {
		return !a.Gone.IsZero() && now.Sub(a.Gone) > advertise.MostValid ||
			slices.ContainsFunc(parts, func(p advertise.Prefix) bool { return p.Prefix == a.Prefix })
	})
	for i := range all {
		if all[i].Gone.IsZero() {
			all[i].Gone = now.Truncate(time.Second)
		}
	}
	for _, p := range parts {
		all = append(all, announced{Prefix: p.Prefix})
	}
	r.Links[name] = all
}

func (r *prefixRecord) text() string { return fmt.Sprint(*r) }

// withdraw takes all from the hosts of an interface at once.
func (r *prefixRecord) withdraw(name string) error {
	now := time.Now()
	state := advertise.State{GoneDNS: r.Lease.DNS}
	var gone []netip.Prefix
	for _, a := range r.Links[name] {
		gone = append(gone, a.Prefix)
		state.Prefixes = append(state.Prefixes, advertise.Prefix{Prefix: a.Prefix, Preferred: now, Valid: now})
	}
	if len(gone) == 0 {
		return nil
	}
	err := line.SetDelegated(name, nil, gone)
	link, fault := advertise.Open(name)
	if fault != nil {
		return errors.Join(err, fault)
	}
	return errors.Join(err, link.Farewell(state), link.Close())
}

// withdrawPrefix takes back all that hosts know of the prefix of a PPPoE interface.
func (b *box) withdrawPrefix(name string) error {
	r, ok, err := b.prefixRecord(name)
	if err != nil || !ok {
		return err
	}
	var errs []error
	for link := range r.Links {
		errs = append(errs, r.withdraw(link))
	}
	for _, p := range r.Routes {
		errs = append(errs, line.RemoveUnreachable(p))
	}
	return errors.Join(append(errs, b.writePrefixRecord(name, nil))...)
}

// withdrawPrefixes does it for all PPPoE interfaces but some.
func (b *box) withdrawPrefixes(but func(name string) bool) error {
	all, err := b.readPrefixRecords()
	errs := []error{err}
	for name := range all {
		if !but(name) {
			errs = append(errs, b.withdrawPrefix(name))
		}
	}
	return errors.Join(errs...)
}

// readPrefixRecords reads the records of all PPPoE interfaces.
func (b *box) readPrefixRecords() (map[string]prefixRecord, error) {
	all := map[string]prefixRecord{}
	err := rundir.ReadJSON(b.cfg.Folder.Prefixes(), &all)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return all, err
}

func (b *box) prefixRecord(name string) (prefixRecord, bool, error) {
	b.prefixRecords.Lock()
	defer b.prefixRecords.Unlock()
	all, err := b.readPrefixRecords()
	r, ok := all[name]
	return r, ok, err
}

// writePrefixRecord writes the record of an interface; nil: it has none any more.
func (b *box) writePrefixRecord(name string, r *prefixRecord) error {
	b.prefixRecords.Lock()
	defer b.prefixRecords.Unlock()
	all, err := b.readPrefixRecords()
	if err != nil {
		b.logPPPoE(err) // a damaged file holds up nothing
		all = map[string]prefixRecord{}
	}
	if r == nil {
		delete(all, name)
	} else {
		all[name] = *r
	}
	return rundir.WriteJSON(b.cfg.Folder.Prefixes(), all)
}
