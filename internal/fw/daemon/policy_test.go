package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netns"

	"weir/internal/fw/rundir"
	"weir/internal/fw/spd"
	"weir/internal/host/xfrm"
	"weir/internal/testenv"
)

// fakePlane keeps the table that it was given last.
type fakePlane struct {
	kept  bool
	mu    sync.Mutex
	table *spd.Table
	sets  int
	fails int // so many times
}

func (f *fakePlane) KeepsTables() bool { return f.kept }

func (f *fakePlane) SetPolicies(t *spd.Table) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sets++
	if f.fails > 0 {
		f.fails--
		f.table = spd.Unknown("it failed")
		return errors.New("no room")
	}
	f.table = t
	return nil
}

// has reports whether an entry of the table has a verdict.
func (f *fakePlane) has(v spd.Verdict) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.table.Entries {
		if e.Verdict == v {
			return true
		}
	}
	return false
}

// told returns what the plane was told last, as text.
func (f *fakePlane) told() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.table == nil:
		return "nothing"
	case f.table.All != "":
		return "all"
	}
	return fmt.Sprintf("%d policies, %d held", f.table.Policies, f.table.Held)
}

func testPolicies(t *testing.T, hold time.Duration) (*policies, *fakePlane) {
	t.Helper()
	p := newPolicies(&Config{Log: slog.New(slog.DiscardHandler), Folder: rundir.Folder(t.TempDir())})
	p.hold = hold
	return p, &fakePlane{}
}

// until waits until the plane is told something, and returns how long that took.
func (f *fakePlane) until(t *testing.T, want string) time.Duration {
	t.Helper()
	began := time.Now()
	for f.told() != want {
		if time.Since(began) > 5*time.Second {
			t.Fatalf("the dataplane was told %q, want %q", f.told(), want)
		}
		time.Sleep(time.Millisecond)
	}
	return time.Since(began)
}

// ipIn runs ip in a namespace.
func ipIn(t *testing.T, ns string, words string) {
	t.Helper()
	if out, err := exec.Command("ip", append([]string{"-n", ns}, strings.Fields(words)...)...).CombinedOutput(); err != nil {
		t.Fatalf("ip -n %s %s: %v: %s", ns, words, err, out)
	}
}

// A policy that ip adds is followed at once, and so are its end and the defaults.
func TestPoliciesOfTheKernelAreFollowed(t *testing.T) {
	testenv.NeedRoot(t)
	ns := fmt.Sprintf("wpol%d", os.Getpid())
	if out, err := exec.Command("ip", "netns", "add", ns).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("ip", "netns", "del", ns).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
	const hold = 300 * time.Millisecond
	p, plane := testPolicies(t, hold)
	ctx, cancel := context.WithCancel(t.Context())
	ended, ready := make(chan error, 1), make(chan error, 1)
	f := &policyFollower{readiness: newReadiness(), policies: p}
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		there, err := netns.GetFromName(ns)
		if err == nil {
			err = errors.Join(netns.Set(there), there.Close())
		}
		if err == nil {
			f.watcher, err = xfrm.Watch()
		}
		ready <- err
		if err != nil {
			return
		}
		p.join(plane, 0xe0000000)
		ended <- f.Run(ctx)
	}()
	if err := <-ready; errors.Is(err, xfrm.ErrNone) {
		testenv.SkipOutside(t, "%v", err)
	} else if err != nil {
		t.Fatal(err)
	}
	plane.until(t, "0 policies, 0 held")
	const policy = "src 192.168.1.0/24 dst 10.9.0.0/16 dir out"
	within := func(change, want string) {
		t.Helper()
		ipIn(t, ns, change)
		plane.until(t, want)
	}
	// the first of some that is soon enough: others work on this machine, too
	const soon = 100 * time.Millisecond
	least := time.Hour
	for range 5 {
		ipIn(t, ns, "xfrm policy add "+policy+" action block")
		least = min(least, plane.until(t, "1 policies, 0 held"))
		ipIn(t, ns, "xfrm policy del "+policy)
		plane.until(t, "0 policies, 0 held")
	}
	if least > soon {
		t.Errorf("a policy is followed after %v", least)
	}
	within("xfrm policy add "+policy+" tmpl src 1.2.3.4 dst 1.2.3.5 proto esp mode tunnel", "1 policies, 0 held")
	within("xfrm policy update "+policy+" tmpl src 1.2.3.4 dst 1.2.3.6 proto esp mode tunnel", "1 policies, 0 held")
	within("xfrm policy add src fd00::/8 dst fd09::/48 dir fwd action block", "2 policies, 0 held")
	within("xfrm policy del "+policy, "2 policies, 1 held")
	plane.until(t, "1 policies, 0 held") // the hold is over
	within("xfrm policy add "+policy+" action block if_id 7", "1 policies, 0 held")
	within("xfrm policy flush", "1 policies, 1 held")
	within("xfrm policy add src fd00::/8 dst fd09::/48 dir fwd action block", "1 policies, 0 held") // it is back
	within("xfrm policy flush", "1 policies, 1 held")
	plane.until(t, "0 policies, 0 held")
	ipIn(t, ns, "xfrm policy setdefault out block")
	began := time.Now()
	for !plane.blocks() {
		if time.Since(began) > 5*time.Second {
			t.Fatal("a default of block is not followed")
		}
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func (f *fakePlane) blocks() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.table != nil && f.table.Blocks
}

// What cannot be read or written goes up, until it can.
func TestPoliciesFailSafe(t *testing.T) {
	p, plane := testPolicies(t, time.Minute)
	fault := errors.New("no memory")
	p.read = func() ([]xfrm.Policy, xfrm.Defaults, error) { return nil, xfrm.Defaults{}, fault }
	p.join(plane, 0)
	if got := plane.told(); got != "all" {
		t.Errorf("policies cannot be read: %s", got)
	}
	if _, again := p.update(); again.IsZero() {
		t.Error("it is not tried again")
	}
	fault = nil
	failing := &fakePlane{fails: 1}
	p.join(failing, 0)
	select {
	case <-p.again:
	default:
		t.Error("a dataplane that could not be told is not told again")
	}
	p.leave(failing)
	plane.fails = 1
	if _, again := p.update(); again.IsZero() || plane.told() != "all" {
		t.Errorf("policies cannot be written: %s, again at %v", plane.told(), again)
	}
	if _, again := p.update(); !again.IsZero() || plane.told() != "0 policies, 0 held" {
		t.Errorf("policies can be read and written: %s, again at %v", plane.told(), again)
	}
	fault = fmt.Errorf("%w: protocol not supported", xfrm.ErrNone)
	if _, again := p.update(); !again.IsZero() || plane.told() != "0 policies, 0 held" {
		t.Errorf("a kernel without IPsec: %s, again at %v", plane.told(), again)
	}
}

// A dataplane that is about to go live follows what changes while it is made, without a lock of
// the box. It gets nothing of its own if it has the tables of the live one.
func TestPoliciesDuringALoad(t *testing.T) {
	p, old := testPolicies(t, time.Minute)
	var some []xfrm.Policy
	p.read = func() ([]xfrm.Policy, xfrm.Defaults, error) {
		if !p.mu.TryLock() {
			t.Error("the policies are read under a lock")
		} else {
			p.mu.Unlock()
		}
		return some, xfrm.Defaults{}, nil
	}
	p.join(old, 0x7)
	next, kept := &fakePlane{}, &fakePlane{kept: true}
	p.join(next, 0xe0000000)
	p.join(kept, 0xe0000000)
	some = make([]xfrm.Policy, 3)
	for i := range some {
		some[i] = policyNumber(i)
	}
	p.update()
	for name, plane := range map[string]*fakePlane{"old": old, "next": next} {
		if got := plane.told(); got != "3 policies, 0 held" {
			t.Errorf("%s was told %s", name, got)
		}
	}
	if kept.sets != 0 {
		t.Errorf("tables that two generations share were written twice")
	}
	sets := old.sets
	p.update()
	if old.sets != sets {
		t.Error("what has not changed was written again")
	}
	p.leave(old)
	p.leave(next)
	some = some[:1]
	p.update()
	if got := kept.told(); got != "3 policies, 2 held" || next.told() != "3 policies, 0 held" {
		t.Errorf("the one that stays was told %s", got)
	}
}

// A policy that has gone is held beyond the end of the daemon that held it, and so is one that has gone while none ran.
func TestHeldPoliciesOutliveTheDaemon(t *testing.T) {
	cfg, plane := &Config{Log: slog.New(slog.DiscardHandler), Folder: rundir.Folder(t.TempDir())}, &fakePlane{}
	first := newPolicies(cfg)
	some := []xfrm.Policy{policyNumber(0), policyNumber(1), policyNumber(2)}
	read := func() ([]xfrm.Policy, xfrm.Defaults, error) { return some, xfrm.Defaults{}, nil }
	first.read = read
	first.join(plane, 0)
	some = some[1:]
	first.update()
	if got := plane.told(); got != "3 policies, 1 held" {
		t.Errorf("the first daemon: %s", got)
	}
	some = some[1:]
	next := newPolicies(cfg)
	next.read = read
	next.join(plane, 0)
	if got := plane.told(); got != "3 policies, 2 held" {
		t.Errorf("the next daemon: %s", got)
	}
	if plane.has(spd.Held) || !plane.has(spd.Secret) {
		t.Error("programs of an older build, which are still in force, do not know what is held")
	}
	next.goLive()
	next.update()
	if !plane.has(spd.Held) {
		t.Error("once its own programs are in force, nothing is held")
	}
}

// Without events the policies are read more often.
func TestPoliciesWithoutEvents(t *testing.T) {
	f := &policyFollower{}
	if got := f.wait(time.Time{}); got > policyRetry {
		t.Errorf("without events the policies are read after %v", got)
	}
	f.watcher = &xfrm.Watcher{}
	if got := f.wait(time.Time{}); got != policyLook {
		t.Errorf("with events the policies are read after %v", got)
	}
}

// weir downgrade says that the older weir does not follow policies, if there are any.
func TestDowngradeWarnsOfPolicies(t *testing.T) {
	var said strings.Builder
	cfg := &Config{Log: slog.New(slog.NewTextHandler(&said, nil)), Folder: rundir.Folder(t.TempDir())}
	for _, step := range []struct {
		policies *rundir.Policies
		layout   uint32
		want     bool
	}{
		{nil, 13, false},
		{&rundir.Policies{}, 13, false},
		{&rundir.Policies{Followed: 2}, 13, true},
		{&rundir.Policies{Followed: 2}, 14, false},
		{&rundir.Policies{Blocks: true}, 13, true},
	} {
		if step.policies != nil {
			if err := rundir.WriteJSON(cfg.Folder.Policies(), step.policies); err != nil {
				t.Fatal(err)
			}
		}
		said.Reset()
		if err := (Downgrade{Layout: step.layout}).warnOfPolicies(cfg); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(said.String(), "does not follow IPsec policies"); got != step.want {
			t.Errorf("%+v to layout %d: %s", step.policies, step.layout, said.String())
		}
	}
}

// policyNumber returns one of some policies that differ.
func policyNumber(i int) xfrm.Policy {
	network := func(text string) netip.Prefix { return netip.MustParsePrefix(fmt.Sprintf(text, i)) }
	return xfrm.Policy{
		Selector:  xfrm.Selector{Src: network("192.168.%d.0/24"), Dst: network("10.%d.0.0/16")},
		Direction: xfrm.Out, Index: uint32(i), Templates: 1, Required: 1,
	}
}
