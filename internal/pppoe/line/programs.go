package line

import (
	"errors"
	"fmt"
	"io/fs"
	"math/bits"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"weir/internal/fw/bpfload"
	"weir/internal/fw/limits"
	"weir/internal/killpoint"
	"weir/internal/pppoe/discovery"
)

// Session is a session as the programs need it.
type Session struct {
	Device  Device
	Carrier int // index of the interface that carries the frames
	ID      uint16
	Peer    discovery.MAC
	Local   discovery.MAC
	MTU     uint16 // bytes of the largest packet that may be sent
	Magic   uint32 // of LCP, with which echo requests are answered; 0: none
}

// Programs are the programs of a namespace, with their maps. They and what they are attached
// to are pinned in a folder.
type Programs struct {
	dir     string
	objects *bpfload.Objects
	maps    map[string]*bpfload.Map
}

// ErrEnded says that the concentrator has ended a session, as the programs have seen.
var ErrEnded = errors.New("the concentrator has ended the session")

const (
	mapSessions = "pppoe_sessions"
	mapDrops    = "pppoe_drops"
	mapLives    = "pppoe_lives"
	mapEnded    = "pppoe_ended"
	programIn   = "weir_pppoe_in"
	programOut  = "weir_pppoe_out"

	// Ids of entries of the map that are no session's, as in bpf/pppoe.bpf.c.
	idDevice = 0x10000
	idLine   = 0x20000
)

// pinned are the maps that outlive the programs.
var pinned = []string{mapSessions, mapDrops, mapLives, mapEnded}

// Open loads the programs over the maps that are pinned in a folder, and gives them to all
// interfaces that have those of an earlier process. It makes what is missing.
func Open(dir string) (_ *Programs, err error) {
	if err := killpoint.MkdirAll(dir); err != nil {
		return nil, fmt.Errorf("make the folder of PPPoE's pins: %w", err)
	}
	p := &Programs{dir: dir, maps: map[string]*bpfload.Map{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Close())
		}
	}()
	for _, name := range pinned {
		m, err := bpfload.OpenMap(filepath.Join(dir, name))
		if err == nil {
			p.maps[name] = m
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	spec, err := loadPppoe()
	if err != nil {
		return nil, fmt.Errorf("read the programs of PPPoE: %w", err)
	}
	p.objects, err = bpfload.Load([]*bpfload.Spec{spec}, bpfload.Options{Maps: p.maps})
	if err != nil {
		return nil, fmt.Errorf("load the programs of PPPoE: %w", err)
	}
	for _, name := range pinned {
		if p.maps[name] == nil {
			if err := bpfload.PinMap(p.objects.Maps[name], filepath.Join(dir, name)); err != nil {
				return nil, err
			}
		}
	}
	if err := p.adopt(); err != nil {
		return nil, err
	}
	return p, p.replace()
}

// adopt adds what an earlier version's programs did not note of sessions.
func (p *Programs) adopt() error {
	devices, err := Devices()
	if err != nil {
		return err
	}
	for _, d := range devices {
		if _, ok := p.session(d.Index); !ok {
			continue
		}
		if life, err := p.life(d); err != nil || life.Line == uint32(d.Line) {
			continue // the index has no place in the map
		}
		if err := p.begin(d); err != nil {
			return err
		}
	}
	return nil
}

// replace gives the programs to all interfaces that have earlier ones.
func (p *Programs) replace() error {
	for _, program := range []string{programIn, programOut} {
		pins, err := filepath.Glob(filepath.Join(p.dir, program+"-*"))
		if err != nil {
			return err
		}
		for _, pin := range pins {
			if err := replaceAt(pin, p.objects.Programs[program]); err != nil {
				return fmt.Errorf("replace a program of PPPoE: %w", err)
			}
		}
	}
	return nil
}

// replaceAt gives a program to the interface of a pin. If that is gone, so is the pin.
func replaceAt(pin string, program *bpfload.Program) error {
	l, err := bpfload.OpenLink(pin)
	if err != nil {
		return err
	}
	defer l.Close()
	index, err := l.Ifindex()
	if err != nil {
		return err
	}
	gone := index == 0
	if !gone {
		err = l.Replace(program)
		gone = errors.Is(err, unix.ENOLINK) || errors.Is(err, unix.ENODEV)
	}
	if gone {
		err = os.Remove(pin)
	}
	return err
}

func (p *Programs) pin(program string, ifindex int) string {
	return filepath.Join(p.dir, program+"-"+strconv.Itoa(ifindex))
}

// attach attaches a program, in front of all others.
func (p *Programs) attach(program string, ifindex int) error {
	pin := p.pin(program, ifindex)
	if l, err := bpfload.OpenLink(pin); err == nil {
		index, err := l.Ifindex()
		l.Close()
		if err == nil && index == ifindex {
			return nil
		}
		if err := os.Remove(pin); err != nil {
			return fmt.Errorf("remove a pin: %w", err)
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	l, err := bpfload.Attach(p.objects.Programs[program], bpfload.Ingress, ifindex)
	if err != nil {
		return err
	}
	return errors.Join(l.Pin(pin), l.Close())
}

func (p *Programs) detach(program string, ifindex int) error {
	pin := p.pin(program, ifindex)
	l, err := bpfload.OpenLink(pin)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = errors.Join(l.Detach(), l.Close())
	}
	return errors.Join(err, os.Remove(pin))
}

// Enter connects a device with its session. What the device had before is over. The error is ErrEnded if
// the device had this session, and its concentrator has ended it.
func (p *Programs) Enter(s Session) error {
	v := pppoePppoeSession{
		Carrier: uint32(s.Carrier), Device: uint32(s.Device.Index), Id: s.ID<<8 | s.ID>>8, Peer: s.Peer, Local: s.Local,
		Mtu: s.MTU, Magic: bits.ReverseBytes32(s.Magic),
	}
	before, ok := p.session(s.Device.Index)
	if ok && (before.Carrier != v.Carrier || before.Id != v.Id || before.Peer != v.Peer) {
		if err := p.leave(s.Device, before, before.Carrier != v.Carrier); err != nil {
			return err
		}
		ok = false
	}
	if ok && p.Ended(s.Device).By != "" {
		return ErrEnded
	}
	if !ok {
		if err := p.begin(s.Device); err != nil {
			return err
		}
	}
	for _, key := range keys(s.Device, v) {
		if err := p.objects.Maps[mapSessions].Put(key, v); err != nil {
			return fmt.Errorf("enter a session: %w", err)
		}
	}
	killpoint.Done("enter a session")
	if err := errors.Join(p.attach(programOut, s.Device.Line), p.attach(programIn, s.Carrier)); err != nil {
		return err
	}
	if p.Ended(s.Device).By == "" {
		return nil
	}
	// It has ended meanwhile, and was open again for a moment.
	v.Device = 0
	for _, key := range keys(s.Device, v) {
		if err := p.objects.Maps[mapSessions].Put(key, v); err != nil {
			return fmt.Errorf("close a session: %w", err)
		}
	}
	return ErrEnded
}

// begin notes that a device is about to have another session. Devices with an index beyond the map's do
// without.
func (p *Programs) begin(d Device) error {
	if d.Index >= limits.MaxIfindex {
		return nil
	}
	if err := p.objects.Maps[mapLives].Put(uint32(d.Index), pppoePppoeLife{Line: uint32(d.Line)}); err != nil {
		return fmt.Errorf("begin a session: %w", err)
	}
	return nil
}

func (p *Programs) life(d Device) (l pppoePppoeLife, err error) {
	err = p.objects.Maps[mapLives].Lookup(uint32(d.Index), &l)
	return l, err
}

// An End says which session of a device its concentrator has ended, and by what. By is empty if it has not.
type End struct {
	By   string
	Peer discovery.MAC
	ID   uint16
}

// Ended returns whether the concentrator has ended the session of a device.
func (p *Programs) Ended(d Device) End {
	v, ok := p.session(d.Index)
	if !ok {
		return End{}
	}
	e := End{Peer: v.Peer, ID: v.Id<<8 | v.Id>>8}
	l, err := p.life(d)
	switch {
	case err == nil && l.Ended == pppoePppoeEndPPPOE_ENDS_TERMINATE:
		e.By = "LCP Terminate-Request"
	case err == nil && l.Ended == pppoePppoeEndPPPOE_ENDS_PADT, v.Device == 0:
		e.By = "PADT"
	}
	return e
}

// Heard returns a number that is another one when packets of the session of a device have come to TCX
// since, with a pause of seconds between.
func (p *Programs) Heard(d Device) uint32 {
	l, err := p.life(d)
	if err != nil {
		return 0
	}
	return l.Heard
}

func keys(d Device, v pppoePppoeSession) []pppoePppoeKey {
	return []pppoePppoeKey{
		{Ifindex: uint32(d.Line), Id: idLine}, {Ifindex: uint32(d.Index), Id: idDevice},
		{Ifindex: v.Carrier, Id: uint32(v.Id<<8 | v.Id>>8)},
	}
}

// session returns the session of a device.
func (p *Programs) session(device int) (v pppoePppoeSession, ok bool) {
	err := p.objects.Maps[mapSessions].Lookup(pppoePppoeKey{Ifindex: uint32(device), Id: idDevice}, &v)
	return v, err == nil
}

// Has reports whether a device has a session, be it one that its concentrator has ended.
func (p *Programs) Has(d Device) bool {
	_, ok := p.session(d.Index)
	return ok
}

// IsOpen reports whether the device of an index has an open session.
func (p *Programs) IsOpen(device int) bool {
	v, ok := p.session(device)
	return ok && v.Device != 0
}

// Sessions returns all sessions that are open.
func (p *Programs) Sessions() (all []Session, err error) {
	devices, err := Devices()
	if err != nil {
		return nil, err
	}
	for _, d := range devices {
		if v, ok := p.session(d.Index); ok && v.Device != 0 {
			all = append(all, Session{Device: d, Carrier: int(v.Carrier), ID: v.Id<<8 | v.Id>>8, Peer: v.Peer, Local: v.Local, MTU: v.Mtu, Magic: bits.ReverseBytes32(v.Magic)})
		}
	}
	return all, nil
}

// Leave ends what a device has: nothing more goes into its session. The carrier keeps its program,
// which drops what XDP has left of the session.
func (p *Programs) Leave(d Device) error {
	v, ok := p.session(d.Index)
	if !ok {
		return nil
	}
	return p.leave(d, v, false)
}

// Tidy takes the programs from carriers without sessions.
func (p *Programs) Tidy() error {
	pins, err := filepath.Glob(filepath.Join(p.dir, programIn+"-*"))
	errs := []error{err}
	for _, pin := range pins {
		carrier, err := strconv.Atoi(filepath.Base(pin)[len(programIn)+1:])
		if err == nil && !p.carries(uint32(carrier)) {
			err = p.detach(programIn, carrier)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (p *Programs) leave(d Device, v pppoePppoeSession, carrier bool) error {
	for _, key := range keys(d, v) {
		if err := p.objects.Maps[mapSessions].Delete(key); err != nil && !errors.Is(err, bpfload.ErrNoKey) {
			return fmt.Errorf("end a session: %w", err)
		}
	}
	killpoint.Done("end a session")
	if !carrier || p.carries(v.Carrier) {
		return nil
	}
	return p.detach(programIn, int(v.Carrier))
}

// carries reports whether an interface has a session.
func (p *Programs) carries(carrier uint32) bool {
	var key pppoePppoeKey
	var v pppoePppoeSession
	for all := p.objects.Maps[mapSessions].Iterate(); all.Next(&key, &v); {
		if v.Carrier == carrier {
			return true
		}
	}
	return false
}

// Drops counts what the programs have dropped.
type Drops struct {
	Peer   uint64 `json:"not_from_the_concentrator"`
	Length uint64 `json:"contradicting_lengths"`
	Out    uint64 `json:"not_to_be_sent"`
	Kernel uint64 `json:"no_memory"`
	Over   uint64 `json:"session_over"`
	Echo   uint64 `json:"too_many_echo_requests"`
	Ends   uint64 `json:"too_many_ends"` // frames that end sessions
}

// Ends counts the sessions that concentrators have ended, as the programs have seen.
type Ends struct {
	PADT      uint64 `json:"by_padt"`
	Terminate uint64 `json:"by_lcp"`
}

// Drops returns what has been dropped since the programs were first loaded, and what has ended.
func (p *Programs) Drops() (d Drops, e Ends, err error) {
	count := func(name string, to ...*uint64) {
		for i := range to {
			var perCPU []uint64
			if problem := p.objects.Maps[name].Lookup(uint32(i), &perCPU); problem != nil {
				err = errors.Join(err, fmt.Errorf("read what PPPoE has dropped: %w", problem))
			}
			for _, n := range perCPU {
				*to[i] += n
			}
		}
	}
	count(mapDrops, &d.Peer, &d.Length, &d.Out, &d.Kernel, &d.Over, &d.Echo)
	count(mapEnded, &d.Ends, &e.PADT, &e.Terminate)
	return d, e, err
}

// Close releases the process's handles. The programs go on.
func (p *Programs) Close() error {
	var errs []error
	if p.objects != nil {
		errs = append(errs, p.objects.Close())
	}
	for _, m := range p.maps {
		errs = append(errs, m.Close())
	}
	return errors.Join(errs...)
}

// Remove removes the programs of a folder and all devices of the namespace.
func Remove(dir string) error {
	all, err := Devices()
	errs := []error{err}
	for _, d := range all {
		errs = append(errs, d.Remove())
	}
	if err := killpoint.RemoveAll(dir); err != nil {
		errs = append(errs, fmt.Errorf("remove the folder of PPPoE's pins: %w", err))
	}
	return errors.Join(errs...)
}
