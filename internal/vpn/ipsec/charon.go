package ipsec

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"weir/pf/resolve"
)

// A Charon has tunnels be up by the charon of this machine.
type Charon struct {
	socket string
	log    *slog.Logger
	wake   chan struct{}

	mu     sync.Mutex // of all here
	wanted []resolve.IKEv2
	loads  int // of the rules: the files of keys may have changed with each
	about  About
	states map[string]State
	said   map[string]saying // the last thing that went wrong, by connection
	rumour map[string]saying // likewise, with somebody who may be the peer
	starts map[string]bool   // the connections that charon is asked to begin now

	// The rest is of the goroutine that Run is.
	client  *client
	ledger  ledger
	tunnels map[string]*memory
	kernel  string // its release
	flush   func(id uint32) error
	own     func() ([]netip.Addr, error) // this machine's addresses
	way     func(netip.Addr) (way, error)
	spawn   func(func())
	asking  sync.WaitGroup // who waits for answers of charon
}

// About is what is known of charon itself.
type About struct {
	Version string `json:"version,omitempty"`
	Problem string `json:"problem,omitempty"`
}

// saying is a line of charon's log that tells what is wrong.
type saying struct {
	what string
	at   time.Time
}

// memory is what is remembered of a tunnel.
type memory struct {
	of          resolve.IKEv2
	credentials *credentials // nil: they have not been read yet
	loads       int          // when they were read
	looked      time.Time    // likewise
	faulty      string       // why they could not be read the last time
	refused     string       // why charon does not take it
	given       given        // what it was tried with last
	tried       time.Time
	logged      string
	began       time.Time // when weir last began it
	pause       time.Duration
	asked       map[string]asked   // by the name of a pair without keys: when these were asked for, within one connection
	askedOf     string             // which
	childless   int                // how often it was begun in a row while the ends knew each other
	first       int                // which pair of networks it began with when it was up the last time
	tries       int                // how often it was begun since
	missed      int                // at how many looks in a row charon did not tell of it, and it counted as it was
	links       map[netip.Addr]int // by an address that it is up from: the link by which the routes had its packets leave
}

// asked says when the keys of a pair were asked for, and how long it is before they are again.
type asked struct {
	at    time.Time
	pause time.Duration
}

// New returns a Charon that does nothing yet. Its ledger is a file at path, which outlives it.
func New(socket, path string, log *slog.Logger) *Charon {
	c := &Charon{
		socket: socket, log: log, wake: make(chan struct{}, 1), states: map[string]State{}, said: map[string]saying{}, rumour: map[string]saying{},
		starts: map[string]bool{}, ledger: ledger{path: path}, tunnels: map[string]*memory{}, kernel: release(), flush: flushKernel, own: ownAddresses, way: wayTo,
	}
	c.spawn = c.asking.Go
	return c
}

// Want says which tunnels there are to be. It is called at each load of the rules.
func (c *Charon) Want(all []resolve.IKEv2) {
	c.mu.Lock()
	c.wanted, c.loads = slices.Clone(all), c.loads+1
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// State tells of a tunnel.
func (c *Charon) State(name string) (State, About) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.states[name]
	s.SAs = append([]IKE{}, s.SAs...)
	said, rumour := c.said[prefix+name], c.rumour[prefix+name]
	if rumour.at.Sub(said.at) > rumourPause { // else it is more likely to be somebody else's
		said = rumour
	}
	s.Error, s.ErrorTime = said.what, said.at
	return s, c.about
}

// rumourPause is how long what went wrong with the peer counts more than what went wrong with somebody who
// may be the peer: whoever looks for open ports comes by all the time.
const rumourPause = 5 * time.Minute

// Pauses between looks at charon, and between tries to reach it.
const (
	lookPause = time.Second
	dialPause = time.Second
)

// Run keeps the tunnels up until ctx ends. They stay then.
func (c *Charon) Run(ctx context.Context) error {
	if err := c.ledger.read(); err != nil {
		c.log.Warn("read what charon was given", "error", err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.listen(ctx)
	}()
	defer func() { <-done }()
	defer c.asking.Wait()
	defer c.hangUp()
	ticks := time.NewTicker(lookPause)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-c.wake:
		case <-ticks.C:
		}
		c.look(ctx)
	}
}

// needed reports whether there is anything to say to charon. Until it is known which tunnels are wanted,
// all stays as it is.
func (c *Charon) needed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.loads > 0 && (len(c.wanted) > 0 || !c.ledger.empty())
}

func (c *Charon) wantsAny() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.wanted) > 0
}

func (c *Charon) hangUp() {
	if c.client != nil {
		c.client.Close()
		c.client = nil
	}
}

// look compares what charon has with what there is to be, once.
func (c *Charon) look(ctx context.Context) {
	if !c.needed() {
		c.hangUp()
		c.tell(About{}, map[string]State{})
		return
	}
	about, states, err := c.compare(ctx, time.Now())
	if ctx.Err() != nil {
		return
	}
	if errors.Is(err, errNone) && c.forgotten() {
		return
	}
	if err != nil {
		c.hangUp()
		if was := c.problem(); was != err.Error() {
			c.log.Error("tunnels of IPsec", "error", err)
		}
		about = About{Problem: err.Error()}
	}
	c.tell(about, states)
}

// forgotten empties the ledger if no tunnel is wanted, once charon is gone with all that it was given.
func (c *Charon) forgotten() bool {
	if c.wantsAny() {
		return false
	}
	for name := range c.ledger.Given {
		if err := c.flush(resolve.InterfaceID(name)); err != nil {
			c.log.Warn("remove the keys of a tunnel", "interface", name, "error", err)
		}
	}
	c.ledger.clear()
	if err := c.ledger.write(); err != nil {
		c.log.Warn("write what charon was given", "error", err)
	}
	return true
}

// Down takes back all that charon was given by weir.
func Down(ctx context.Context, socket, path string, log *slog.Logger) error {
	c := New(socket, path, log)
	if err := c.ledger.read(); err != nil || c.ledger.empty() {
		return err
	}
	defer c.hangUp()
	_, _, err := c.compare(ctx, time.Now())
	if errors.Is(err, errNone) && c.forgotten() {
		return nil
	}
	return err
}

func (c *Charon) problem() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.about.Problem
}

func (c *Charon) tell(about About, states map[string]State) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if about.Version != "" && about.Version != c.about.Version {
		c.log.Info("charon is there", "strongswan", about.Version)
	}
	c.about, c.states = about, states
}

// compare loads what is missing in charon and unloads what is too much. An error is one of the
// connection to charon: what charon refuses is a problem of its tunnel.
func (c *Charon) compare(ctx context.Context, now time.Time) (About, map[string]State, error) {
	c.mu.Lock()
	wanted, loads := c.wanted, c.loads
	c.mu.Unlock()
	if c.client == nil {
		client, err := dial(ctx, c.socket)
		if err != nil {
			return About{}, nil, err
		}
		c.client = client
	}
	about := About{Version: c.client.version}
	has, err := c.inventory(ctx)
	if err != nil {
		return about, nil, err
	}
	c.read(wanted, loads, now)
	states := map[string]State{}
	for i := range wanted {
		t := c.tunnels[wanted[i].Name]
		if t.credentials != nil { // else what charon has of another process stays
			if err = c.give(ctx, t, has, now); err != nil {
				return about, states, err
			}
		}
		s, err := c.judge(ctx, t)
		if err == nil {
			err = errors.Join(c.endStranded(ctx, &s), c.endMoved(ctx, t, &s))
		}
		if err == nil && (t.credentials != nil || has.connections[prefix+t.of.Name]) {
			err = c.begin(ctx, t, &s, now)
		}
		if err != nil {
			return about, states, err
		}
		if t.logged != s.Problem && s.Problem != "" {
			c.log.Error("set up a tunnel", "interface", t.of.Name, "error", s.Problem)
		}
		t.logged = s.Problem
		states[t.of.Name] = s
	}
	// Last, so that a key that another tunnel goes on with is not unloaded.
	return about, states, c.takeBack(ctx, wanted, has)
}

// mostMissed is for how many looks in a row a tunnel that charon does not list keeps its last state while charon is
// beginning some tunnel: charon does not list what it works on. Then the tunnel is gone.
const mostMissed = 10

// judge reads the state of a tunnel.
func (c *Charon) judge(ctx context.Context, t *memory) (s State, err error) {
	was, starting := c.before(t.of.Name)
	all, err := c.client.associations(ctx, prefix+t.of.Name, starting)
	if err != nil {
		return s, err
	}
	for _, m := range all {
		s.SAs = append(s.SAs, readIKE(m))
	}
	switch { // charon tells only of those that nobody works on
	case all != nil || !starting:
		t.missed = 0
	case t.missed < mostMissed:
		t.missed++
		s.SAs = was
	}
	s.Problem = cmp.Or(t.faulty, t.refused)
	if t.of.PerCPU {
		s.Note = c.perCPU()
	}
	if up := s.Up(); up != nil {
		for _, p := range missing(&t.of, up) {
			s.Missing = append(s.Missing, p.String())
		}
	}
	return s, nil
}

// filePause is the least time between two looks at the files of a tunnel.
const filePause = 5 * time.Second

// read reads the files of tunnels: of new ones, of all after a load, and now and then, because a load of
// the same rules tells nobody. What cannot be read is tried again each time; what was read before stays
// meanwhile.
func (c *Charon) read(wanted []resolve.IKEv2, loads int, now time.Time) {
	for name := range c.tunnels {
		if !slices.ContainsFunc(wanted, func(w resolve.IKEv2) bool { return w.Name == name }) {
			delete(c.tunnels, name)
		}
	}
	for i := range wanted {
		t := c.tunnels[wanted[i].Name]
		if t == nil {
			t = &memory{}
			c.tunnels[wanted[i].Name] = t
		}
		t.of = wanted[i]
		if t.loads == loads && t.faulty == "" && now.Sub(t.looked) < filePause {
			continue
		}
		t.looked = now
		if t.loads != loads {
			t.pause, t.asked = 0, nil // who loads rules does not want to wait
		}
		read, err := readCredentials(&t.of, now)
		if t.loads, t.faulty = loads, ""; err != nil {
			t.faulty = err.Error()
			continue
		}
		t.credentials = read
	}
}

// Pauses between beginnings of a tunnel.
const (
	leastPause = 2 * time.Second
	mostPause  = time.Minute
)

// mostChildless is how often keys for packets are asked for within one connection. One that begins anew has
// them with its first messages, where no key exchange can be refused.
const mostChildless = 2

// begin has charon begin a tunnel that has no keys for packets, unless the peer has to, or somebody is
// at it. It waits longer each time.
func (c *Charon) begin(ctx context.Context, t *memory, s *State, now time.Time) error {
	if up := s.Up(); up != nil {
		t.childless = 0
		if t.tries > 0 {
			t.first, t.tries = t.first+t.tries-1, 0
		}
		if up.steady() {
			t.pause = 0
		}
		c.beginPair(ctx, t, up, now)
		return nil
	}
	busy := slices.ContainsFunc(s.SAs, func(i IKE) bool { return !i.Established() || i.making })
	if t.of.Passive || busy || t.refused != "" || now.Sub(t.began) < t.pause || c.isStarting(prefix+t.of.Name) {
		return nil
	}
	t.began, t.pause = now, min(max(2*t.pause, leastPause), mostPause)
	name := prefix + t.of.Name
	switch {
	case len(s.SAs) == 0:
		t.childless = 0
	case t.childless < mostChildless:
		t.childless++
	default:
		t.childless = 0
		if err := c.end(ctx, name); err != nil {
			return err
		}
	}
	all := pairs(&t.of) // the peer may refuse one: the next time it is another one's turn
	child := all[(t.first+t.tries)%len(all)].name
	t.tries++
	c.start(ctx, name, child)
	return nil
}

// beginPair has charon ask for the keys of a pair that has none, one after the other: the first come with the connection. The
// peer may refuse some for ever. Each has a pause of its own, which is longer each time, so that others do not wait for these.
func (c *Charon) beginPair(ctx context.Context, t *memory, up *IKE, now time.Time) {
	all := pairs(&t.of)
	missing := slices.DeleteFunc(missing(&t.of, up), func(p pair) bool { return up.hasPart(&p, all) })
	if t.askedOf != up.ID || t.asked == nil {
		t.askedOf, t.asked = up.ID, map[string]asked{}
	}
	maps.DeleteFunc(t.asked, func(name string, _ asked) bool {
		return !slices.ContainsFunc(missing, func(p pair) bool { return p.name == name })
	})
	missing = slices.DeleteFunc(missing, func(p pair) bool { return now.Sub(t.asked[p.name].at) < t.asked[p.name].pause })
	if len(missing) == 0 || t.of.Passive || up.making || t.refused != "" || c.isStarting(prefix+t.of.Name) {
		return
	}
	next := slices.MinFunc(missing, func(a, b pair) int { return t.asked[a.name].at.Compare(t.asked[b.name].at) }).name
	t.asked[next] = asked{now, min(max(2*t.asked[next].pause, leastPause), mostPause)}
	c.start(ctx, prefix+t.of.Name, next)
}
