package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/fw/bpfload"
	"weir/internal/fw/control"
	"weir/internal/fw/dataplane"
	"weir/internal/fw/rundir"
	"weir/internal/host/netif"
	"weir/internal/pppoe/client"
	"weir/internal/pppoe/discovery"
	"weir/internal/pppoe/line"
	"weir/internal/pppoe/wire"
	"weir/pf/resolve"
)

// lines are the PPPoE interfaces of the box: their programs, and which of them are about to lose
// their session. The zero value has none.
type lines struct {
	mu       sync.Mutex
	programs *line.Programs
	ending   map[string]bool // by name
}

// pppoeFolder is the folder of the pins of PPPoE.
func (b *box) pppoeFolder() string { return filepath.Join(b.dir, "pppoe") }

// find opens the programs of an earlier daemon, if there are any.
func (l *lines) find(dir string) error {
	found := false
	err := bpfload.At("").Do(func() error {
		_, err := os.Stat(dir)
		found = err == nil
		return nil
	})
	if err != nil || !found {
		return err
	}
	return l.open(dir)
}

// open opens the programs, and makes them if there are none.
func (l *lines) open(dir string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.programs != nil {
		return nil
	}
	return bpfload.At("").Do(func() (err error) {
		if l.programs, err = line.Open(dir); err != nil {
			return err
		}
		return l.programs.Watch(false) // a daemon that was killed may have left it on
	})
}

// do calls f with the programs, in the place where they are pinned.
func (l *lines) do(f func(*line.Programs) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bpfload.At("").Do(func() error { return f(l.programs) })
}

// describe adds to links what sessions they have.
func (l *lines) describe(links []netif.Link) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.programs == nil {
		return nil
	}
	all, err := l.programs.Sessions()
	if err != nil {
		return err
	}
	for i := range links {
		at := slices.IndexFunc(all, func(s line.Session) bool { return s.Device.Index == links[i].Index })
		if links[i].Kind != netif.PPPoE || at < 0 || l.ending[links[i].Name] {
			continue
		}
		s := &all[at]
		links[i].Parent, links[i].Tag, links[i].TagType = s.Carrier, s.ID, dataplane.TypePPPoE
		links[i].Peer = net.HardwareAddr(s.Peer[:])
	}
	return nil
}

// over reports whether a device has no open session.
func (l *lines) over(device int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.programs == nil || !l.programs.IsOpen(device)
}

// watch calls each with frames that the programs drop, until ctx ends. Without PPPoE it waits for it.
func (l *lines) watch(ctx context.Context, each func(*line.Lost)) error {
	ring, err := l.losses()
	for err == nil && ring == nil {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pppoePause):
		}
		ring, err = l.losses()
	}
	if err != nil {
		return err
	}
	defer ring.Close()
	for ctx.Err() == nil && err == nil {
		readErr := ring.Read(capturePause, func(raw []byte) {
			lost, parseErr := line.ParseLost(raw)
			if parseErr != nil {
				err = parseErr
				return
			}
			each(&lost)
		})
		err = errors.Join(err, readErr)
	}
	return errors.Join(err, l.do(func(p *line.Programs) error { return p.Watch(false) }))
}

// losses opens the ring of frames that the programs drop, and has them shown there; nil: there is no PPPoE.
func (l *lines) losses() (ring *bpfload.Ring, err error) {
	err = l.do(func(p *line.Programs) error {
		if p == nil {
			return nil
		}
		if ring, err = p.Losses(); err != nil {
			return err
		}
		if err := p.Watch(true); err != nil {
			return errors.Join(err, ring.Close())
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return ring, nil
}

func (l *lines) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.programs == nil {
		return nil
	}
	return l.programs.Close()
}

// pppoePause is the time between two looks at which PPPoE interfaces the rules ask for.
const pppoePause = time.Second

// A dialler keeps the sessions of the PPPoE interfaces up that the configuration has.
type dialler struct {
	readiness
	box     *box
	scripts *scripts

	mu      sync.Mutex
	dials   map[string]*dial         // by the interface's name
	groups  map[string]*client.Group // by the carrier's name
	records map[string]pppoeRecord   // of sessions that are up, as in the run folder
	cleared bool                     // what an earlier daemon has left and nobody asks for is gone
}

// pppoeRecord is a session that is up, for a daemon that goes on with it. It has no password.
type pppoeRecord struct {
	Of    resolve.PPPoE
	Saved client.Saved
	Since time.Time
}

func newDialler(b *box) *dialler {
	return &dialler{
		readiness: newReadiness(), box: b, scripts: newScripts(b.cfg), dials: map[string]*dial{}, groups: map[string]*client.Group{}, records: map[string]pppoeRecord{},
	}
}

func (*dialler) String() string { return "PPPoE" }

// Run keeps the sessions up until ctx ends. They outlive it.
func (d *dialler) Run(ctx context.Context) error {
	if err := rundir.ReadJSON(d.box.cfg.Folder.PPPoE(), &d.records); err != nil && !errors.Is(err, fs.ErrNotExist) {
		d.box.cfg.Log.Error("read which PPPoE sessions are up", "error", err)
	}
	d.scripts.read()
	d.look()
	d.set()
	err := every(ctx, pppoePause, d.look)
	d.leaveAll()
	return err
}

// leaveAll ends the clients, and no session.
func (d *dialler) leaveAll() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range d.dials {
		s.leave()
		s.prefix.leave()
	}
	d.scripts.wait(goodbyePatience)
}

// wanted returns the PPPoE interfaces of the rules in force. Without rules, or while pf is disabled,
// all stays as it is: ok is false.
func (b *box) wanted() (all []resolve.PPPoE, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rules == nil || b.dp == nil || b.source.Builtin || !b.disabled.IsZero() {
		return nil, false
	}
	return b.rules.options.PPPoE, true
}

// look starts and ends sessions as the rules in force say.
func (d *dialler) look() {
	wanted, ok := d.box.wanted()
	if !ok {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	touched, restored := d.box.touched.Swap(false), true
	nexthops := map[string]*line.Nexthops{} // of statements that have changed
	for name, s := range d.dials {
		at := slices.IndexFunc(wanted, func(o resolve.PPPoE) bool { return o.Name == name })
		if at >= 0 && reflect.DeepEqual(wanted[at], s.of) {
			s.restart()
			s.watch()
			s.renew(time.Now())
			s.followResolved()
			if touched {
				restored = s.restore() && restored
			}
			continue
		}
		s.end()
		s.prefix.leave()
		s.forgetResolved()
		delete(d.dials, name)
		s.setting.Lock()
		nexthops[name] = s.nexthops
		s.setting.Unlock()
		if at < 0 {
			d.box.logPPPoE(errors.Join(s.remove(), d.box.withdrawPrefix(name)))
		}
	}
	if !restored {
		d.box.touched.Store(true)
	}
	for i := range wanted {
		if d.dials[wanted[i].Name] == nil {
			s := &dial{dialler: d, of: wanted[i], state: control.PPPoEFailed, nexthops: nexthops[wanted[i].Name]}
			d.dials[wanted[i].Name] = s
			if len(s.of.PrefixTo) > 0 {
				s.prefix = newDelegation(d.box, s.of, s.say)
			} else {
				d.box.logPPPoE(d.box.withdrawPrefix(s.of.Name))
			}
			s.restart()
		}
	}
	if !d.cleared {
		d.clear()
	}
}

// clear removes what an earlier daemon has left and the rules do not ask for.
func (d *dialler) clear() {
	all, err := line.Devices()
	d.cleared = err == nil
	for _, device := range all {
		if d.dials[device.Name] == nil {
			s := &dial{dialler: d, of: resolve.PPPoE{Name: device.Name}, device: device}
			if r, ok := d.record(device.Name); ok {
				d.box.logPPPoE(goodbye(&r))
			}
			s.forget()
			d.box.logPPPoE(s.remove())
		}
	}
	wanted := func(name string) bool { return d.dials[name] != nil }
	d.scripts.downBut(wanted)
	d.box.logPPPoE(errors.Join(err, d.box.withdrawPrefixes(wanted)))
}

// goodbye ends a session that nobody keeps up.
func goodbye(r *pppoeRecord) error {
	w, err := wire.Open(r.Of.On, 0)
	if err != nil {
		return err
	}
	defer w.Close()
	return w.Send(discovery.Terminate(r.Saved.Peer, w.MAC(), r.Saved.ID).Append(nil))
}

// sayGoodbye ends all sessions of a box that is being stopped, and removes their interfaces.
func (b *box) sayGoodbye() error {
	records := map[string]pppoeRecord{}
	if err := rundir.ReadJSON(b.cfg.Folder.PPPoE(), &records); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, r := range records {
		if err := goodbye(&r); err != nil {
			b.cfg.Log.Warn("end a PPPoE session", "interface", r.Of.Name, "error", err)
		}
	}
	if err := b.withdrawPrefixes(func(string) bool { return false }); err != nil {
		b.cfg.Log.Warn("withdraw an IPv6 prefix", "error", err)
	}
	return bpfload.At("").Do(func() error { return line.Remove(b.pppoeFolder()) })
}

// note writes the records, with another one for an interface; nil: with none.
func (d *dialler) note(name string, r *pppoeRecord) {
	d.box.pppoeRecords.Lock()
	defer d.box.pppoeRecords.Unlock()
	if r == nil {
		if _, ok := d.records[name]; !ok {
			return
		}
		delete(d.records, name)
	} else {
		d.records[name] = *r
	}
	d.box.logPPPoE(rundir.WriteJSON(d.box.cfg.Folder.PPPoE(), d.records))
}

func (d *dialler) record(name string) (pppoeRecord, bool) {
	d.box.pppoeRecords.Lock()
	defer d.box.pppoeRecords.Unlock()
	r, ok := d.records[name]
	return r, ok
}

// password returns the password of a PPPoE interface. A file must be only its owner's.
func password(from resolve.PasswordSource) (string, error) {
	if from.Env != "" {
		text, ok := os.LookupEnv(from.Env)
		if !ok {
			return "", fmt.Errorf("the daemon's environment has no %s", from.Env)
		}
		return text, nil
	}
	if from.File == "" {
		return "", nil
	}
	f, err := os.OpenFile(from.File, os.O_RDONLY|unix.O_NONBLOCK, 0) // a pipe must not hold up the daemon
	if err != nil {
		return "", fmt.Errorf("read the password: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", fmt.Errorf("read the password: %w", err)
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("read the password: %s is no regular file", from.File)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return "", fmt.Errorf("read the password: others may read %s: chmod 600 %s", from.File, from.File)
	}
	const most = 256
	b := make([]byte, most+1)
	n, err := f.Read(b)
	if err != nil || n > most {
		return "", fmt.Errorf("read the password: %s has none, or more than %d bytes", from.File, most)
	}
	return strings.TrimRight(string(b[:n]), "\r\n"), nil
}

// PPPoE returns what is known of the PPPoE interfaces.
func (c *controller) PPPoE() []control.PPPoE {
	d := c.dialler
	d.mu.Lock()
	defer d.mu.Unlock()
	all := []control.PPPoE{}
	for _, s := range d.dials {
		all = append(all, s.status())
	}
	slices.SortFunc(all, func(a, b control.PPPoE) int { return strings.Compare(a.Interface, b.Interface) })
	var drops line.Drops
	var ended line.Ends
	err := c.box.lines.do(func(p *line.Programs) (err error) {
		if p != nil {
			drops, ended, err = p.Drops()
		}
		return err
	})
	c.box.logPPPoE(err)
	for i := range all {
		all[i].Drops, all[i].Ended = drops, ended
	}
	return all
}

// PPPoEFrames returns the last frames of the PPPoE interfaces.
func (c *controller) PPPoEFrames() []control.PPPoEFrames {
	d := c.dialler
	d.mu.Lock()
	defer d.mu.Unlock()
	all := []control.PPPoEFrames{}
	for _, s := range d.dials {
		s.mu.Lock()
		all = append(all, control.PPPoEFrames{Interface: s.of.Name, On: s.of.On, Frames: slices.Clone(s.frames)})
		s.mu.Unlock()
	}
	slices.SortFunc(all, func(a, b control.PPPoEFrames) int { return strings.Compare(a.Interface, b.Interface) })
	return all
}

// DialPPPoE makes a session anew, or ends it until that is asked for.
func (c *controller) DialPPPoE(r *control.PPPoERequest) error {
	d := c.dialler
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.dials[r.Interface]
	if s == nil {
		return fmt.Errorf("the rules in force have no pppoe %s", r.Interface)
	}
	s.end()
	if s.held = r.Down; s.held {
		s.prefix.set(ipv6Session{dropped: true})
	}
	s.restart()
	return nil
}

// logPPPoE logs what went wrong with sessions, their devices and prefixes. The rules hold all the same.
func (b *box) logPPPoE(err error) {
	if err != nil {
		b.cfg.Log.Error("PPPoE", "error", err)
	}
}
