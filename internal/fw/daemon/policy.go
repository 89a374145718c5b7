package daemon

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"reflect"
	"slices"
	"sync"
	"time"

	"weir/internal/fw/rundir"
	"weir/internal/fw/spd"
	"weir/internal/host/xfrm"
)

const (
	// policyPause is the least time between two reads of the IPsec policies. The first event after
	// a pause is followed at once.
	policyPause = 20 * time.Millisecond
	// policyShare is by how much a pause is longer than the read before it: there may be many policies.
	policyShare = 4
	// policyRetry is how long to wait after a failure, and while there are no events: a kernel may
	// load IPsec as a module.
	policyRetry = time.Second
	// policyLook is how long to wait for an event.
	policyLook = 10 * time.Second
)

// policies is what is known of the kernel's IPsec policies, and the dataplanes that follow them. It
// has its own lock, because a load holds the box's while the kernel verifies the programs.
type policies struct {
	log    *slog.Logger
	record func(rundir.Policies) error
	keep   func(secret []xfrm.Policy) error
	hold   time.Duration // how long a policy that has gone is held
	read   func() ([]xfrm.Policy, xfrm.Defaults, error)

	again chan struct{} // the follower is to try again

	mu       sync.Mutex
	members  []policyMember // the live dataplane, and one that is about to be
	present  []xfrm.Policy
	defaults xfrm.Defaults
	holder   spd.Holder
	kept     []xfrm.Policy // secret ones that are on record
	took     time.Duration // to read them
	failed   error         // why they could not be read
	told     string        // of the failure that was logged last
	known    bool          // they were read, or that has failed
	live     bool          // programs of this build are in force: no older ones search the same table
	applied  *spd.Table    // in force in all members; nil: not known
	said     rundir.Policies
	noted    bool   // that is recorded
	unnoted  string // why it could not be
}

type policyMember struct {
	dp       policyPlane
	markMask uint32
}

// policyPlane is what of a dataplane follows policies.
type policyPlane interface {
	SetPolicies(t *spd.Table) error
	KeepsTables() bool
}

func newPolicies(cfg *Config) *policies {
	p := &policies{
		log: cfg.Log, hold: spd.HoldTime, read: xfrm.Policies, again: make(chan struct{}, 1),
		record: func(r rundir.Policies) error { return rundir.WriteJSON(cfg.Folder.Policies(), r) },
		keep:   func(secret []xfrm.Policy) error { return rundir.WriteJSON(cfg.Folder.SecretPolicies(), secret) },
	}
	var secret []xfrm.Policy
	if err := rundir.ReadJSON(cfg.Folder.SecretPolicies(), &secret); err != nil && !errors.Is(err, fs.ErrNotExist) {
		p.log.Warn("IPsec policies that have gone while no daemon ran are not held", "error", err)
	}
	p.holder.Recall(secret)
	return p
}

// join has a dataplane follow the policies from now on, before packets meet its programs.
func (p *policies) join(dp policyPlane, markMask uint32) {
	if p == nil {
		return
	}
	p.mu.Lock()
	known := p.known
	p.mu.Unlock()
	if !known {
		p.look()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.members, p.applied = append(p.members, policyMember{dp, markMask}), nil
	if err := p.apply(time.Now()); err != nil {
		p.log.Error("everything that is forwarded goes up to the stack; trying again", "error", err)
		signal(p.again)
	}
}

// leave ends that. The dataplane may be closed afterwards.
func (p *policies) leave(dp policyPlane) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.members = slices.DeleteFunc(p.members, func(m policyMember) bool { return m.dp == dp })
}

// update reads the policies and puts them in force. It returns how long to rest before the next time, and when
// it must be called again even if nothing changes; the zero time: never.
func (p *policies) update() (pause time.Duration, again time.Time) {
	p.look()
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	pause = max(policyPause, policyShare*p.took)
	err := errors.Join(p.apply(now), p.failed)
	if isNews(&p.told, err) {
		p.log.Error("everything that is forwarded goes up to the stack, until the IPsec policies are known", "error", err)
	}
	if err != nil {
		return pause, now.Add(policyRetry)
	}
	_, again = p.holder.Held()
	return pause, again
}

// look reads the policies. There may be many, so it holds no lock meanwhile.
func (p *policies) look() {
	began := time.Now()
	present, defaults, err := p.read()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known, p.took = true, time.Since(began)
	if errors.Is(err, xfrm.ErrNone) {
		present, defaults, err = nil, xfrm.Defaults{}, nil
	}
	if p.failed = err; err != nil {
		return
	}
	p.present, p.defaults = present, defaults
}

// apply gives every dataplane the table of what is known. Two that share their tables get it once.
func (p *policies) apply(now time.Time) error {
	var mask uint32
	for _, m := range p.members {
		mask |= m.markMask
	}
	table := spd.Unknown("they cannot be read")
	if p.failed == nil {
		p.holder.See(p.present, now, p.hold)
		p.keepSecret()
		held, _ := p.holder.Held()
		table = spd.Compile(p.present, held, p.defaults, mask)
		if !p.live {
			table.HoldPlainly()
		}
	}
	if p.applied != nil && reflect.DeepEqual(table, p.applied) {
		return nil
	}
	var errs []error
	for i, m := range p.members {
		if i == 0 || !m.dp.KeepsTables() {
			errs = append(errs, m.dp.SetPolicies(table))
		}
	}
	err := errors.Join(errs...)
	p.applied = table
	if err != nil {
		p.applied, table = nil, spd.Unknown("they could not be written")
	}
	p.note(table)
	return err
}

// goLive says that programs of this build are in force.
func (p *policies) goLive() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.live = true
}

// keepSecret records what a later daemon must know of the policies that then have gone.
func (p *policies) keepSecret() {
	secret := p.holder.Secret()
	if slices.Equal(secret, p.kept) {
		return
	}
	if err := p.keep(secret); err != nil {
		p.log.Warn("record the IPsec policies whose packets must not leave in clear", "error", err)
	}
	p.kept = secret
}

// note records what is followed, and logs it when it begins, ends or fails.
func (p *policies) note(t *spd.Table) {
	now := rundir.Policies{Followed: t.Policies, Held: t.Held, Blocks: t.Blocks, All: t.All}
	if p.noted && now == p.said {
		return
	}
	err := p.record(now)
	if isNews(&p.unnoted, err) {
		p.log.Warn("record the IPsec policies that are followed", "error", err)
	}
	if err != nil {
		return
	}
	before := p.said
	p.said, p.noted = now, true
	switch {
	case now.All != before.All && now.All != "":
		p.log.Warn("everything that is forwarded goes up to the stack, because of IPsec policies", "why", now.All)
	case now.Followed != before.Followed || now.Blocks != before.Blocks:
		p.log.Info("following IPsec policies: what they select goes up to the stack", "policies", now.Followed, "held", now.Held, "blocked by default", now.Blocks)
	}
}

// policyFollower follows the kernel's IPsec policies.
type policyFollower struct {
	readiness
	policies *policies
	watcher  *xfrm.Watcher // nil: the kernel has no IPsec, or it could not be heard
	told     string        // of the failure that was logged last
}

func (*policyFollower) String() string { return "IPsec policies" }

func (f *policyFollower) Run(ctx context.Context) error {
	wake := make(chan struct{}, 1)
	broken := make(chan error, 1)
	listen := func(w *xfrm.Watcher) { go func() { broken <- hearPolicies(w, wake) }() }
	if f.watcher != nil {
		listen(f.watcher)
	}
	defer func() {
		if f.watcher != nil {
			f.watcher.Close()
			<-broken
		}
	}()
	f.policies.goLive()
	f.set()
	signal(wake) // covers changes during the start
	var again time.Time
	for {
		timer := time.NewTimer(f.wait(again))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case err := <-broken:
			f.policies.log.Warn("IPsec events are not heard; listening again", "error", err)
			f.watcher.Close()
			f.watcher = nil
			signal(wake)
		case <-wake:
		case <-f.policies.again:
		case <-timer.C:
		}
		timer.Stop()
		if f.watcher == nil {
			w, err := xfrm.Watch()
			if err == nil {
				f.watcher = w
				listen(w)
			}
			if isNews(&f.told, err) && !errors.Is(err, xfrm.ErrNone) {
				f.policies.log.Warn("IPsec events are not heard; the policies are read each second", "error", err)
			}
		}
		var pause time.Duration
		pause, again = f.policies.update()
		if !sleep(ctx, pause) {
			return nil
		}
	}
}

// wait returns how long to wait for an event.
func (f *policyFollower) wait(again time.Time) time.Duration {
	look := policyLook
	if f.watcher == nil {
		look = policyRetry
	}
	if again.IsZero() {
		return look
	}
	return max(0, min(look, time.Until(again)))
}

// hearPolicies wakes the follower at each change, until the watcher is closed.
func hearPolicies(w *xfrm.Watcher, wake chan<- struct{}) error {
	for {
		if err := w.Next(); err != nil {
			return err
		}
		signal(wake)
	}
}
