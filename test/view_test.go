package test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/internal/fw/rundir"
	"weir/internal/fw/state"
	"weir/internal/fw/view"
	"weir/internal/lab"
	"weir/test/lib"
)

// views is held while a story has a view open in this process. Who counts the process's maps
// holds it alone.
var views sync.RWMutex

//	fw: a view is read all the time    fw: 20 loads, another table of states, 2 take-overs
//
// A long-lived reader follows all loads: every read shows one complete ruleset, and no
// map of an earlier one stays open.
func TestViewFollowsLoads(t *testing.T) {
	weir.UnderTCX(t, func(b *lib.Box) {
		b.WeirRun(gatewayConf(t))
		b.Ping(lab.LAN, wanHost, 2)
		more := b.Rules(gatewayText(t) + "block in on wan0 inet proto tcp to (wan0) port 4711\n")
		larger := b.Rules(gatewayText(t) + "set limit states 150000\n")
		views.Lock()
		defer views.Unlock()
		reader := newReader(b)
		for range 10 {
			b.Weir("load", more)
			b.Weir("load", gatewayConf(t))
		}
		b.Weir("load", larger)
		for range 2 {
			b.WeirRun(larger)
		}
		reader.end()
		if reader.swaps < 3 {
			b.Errorf("the reader saw the number of rules change %d times", reader.swaps)
		}
		if reader.last.States.Limit != 150000 {
			b.Errorf("the reader last saw a limit of %d states, want 150000", reader.last.States.Limit)
		}
		if reader.opened != reader.open {
			b.Errorf("the reader held %d maps at first, and %d at the end", reader.opened, reader.open)
		}
	})
}

// Several read one view at once. One that takes its time with the states, such as a slow
// web client, keeps no other from reading, and reads its table to the end when the
// tables are replaced.
func TestSlowReader(t *testing.T) {
	weir.UnderTCX(t, func(b *lib.Box) {
		b.WeirRun(gatewayConf(t))
		b.Ping(lab.LAN, wanHost, 2)
		larger := b.Rules(gatewayText(t) + "set limit states 150000\n")
		views.RLock()
		defer views.RUnlock()
		var v *view.View
		folder := rundir.Folder(b.RunFolder())
		err := b.Do(lab.FW, func() (err error) {
			v, err = view.Open(folder)
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
		began, proceed, done := make(chan bool), make(chan bool), make(chan error)
		seen := 0
		go func() {
			done <- b.Do(lab.FW, func() error {
				return v.States(&state.Filter{}, func(*state.View) bool {
					if seen++; seen == 1 {
						began <- true
						<-proceed
					}
					return true
				})
			})
		}()
		<-began
		others := make(chan error)
		read := func() error {
			info, err := v.Info()
			if err == nil && info.States.Current == 0 {
				err = errors.New("no state is counted")
			}
			return err
		}
		for range 2 {
			go func() { others <- b.Do(lab.FW, read) }()
			select {
			case err := <-others:
				if err != nil {
					b.Error(err)
				}
			case <-time.After(10 * time.Second):
				b.Fatal("another reader waits for the slow one")
			}
			b.Weir("load", larger)
		}
		close(proceed)
		if err := <-done; err != nil || seen == 0 {
			b.Errorf("the slow reader saw %d states: %v", seen, err)
		}
		if err := v.Close(); err != nil {
			b.Error(err)
		}
	})
}

// A daemon that was killed at its first start, just before it recorded what is loaded,
// leaves a box that filters. Every command that reads says so.
func TestViewWithoutTheRecord(t *testing.T) {
	weir.Both(t, func(b *lib.Box) {
		b.WeirRun(gatewayConf(t))
		b.Ping(lab.LAN, wanHost, 2)
		rules := b.Weir("rules")
		if err := os.Remove(rundir.Folder(b.RunFolder()).Loaded()); err != nil {
			b.Fatal(err)
		}
		info := b.Info()
		if l := info.Loaded; !info.Enabled || l == nil || l.File != gatewayConf(t) || l.Rules != strings.Count(rules, "\n") || l.Started.IsZero() {
			b.Errorf("info without the record: %+v", l)
		}
		if again := b.Weir("rules"); again != rules {
			b.Errorf("rules without the record:\n%swith it:\n%s", again, rules)
		}
		if len(b.States()) == 0 {
			b.Error("no states without the record")
		}
	})
}

// A reader reads a view until it is ended.
type reader struct {
	b      *lib.Box
	stop   chan struct{}
	done   chan error
	swaps  int        // how often the number of rules changed
	last   *view.Info // the last one read
	opened int        // descriptors of maps after the first read
	open   int        // and before the view was closed
}

func newReader(b *lib.Box) *reader {
	r := &reader{b: b, stop: make(chan struct{}), done: make(chan error)}
	folder := rundir.Folder(b.RunFolder())
	go func() { r.done <- b.Do(lab.FW, func() error { return r.run(folder) }) }()
	return r
}

func (r *reader) end() {
	r.b.Helper()
	close(r.stop)
	if err := <-r.done; err != nil {
		r.b.Error(err)
	}
}

func (r *reader) run(folder rundir.Folder) (err error) {
	v, err := view.Open(folder)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	r.opened = openMaps()
	for rules := 0; ; time.Sleep(5 * time.Millisecond) {
		select {
		case <-r.stop:
			r.open = openMaps()
			return nil
		default:
		}
		n, err := r.read(v)
		if err != nil {
			return err
		}
		if rules != 0 && n != rules {
			r.swaps++
		}
		rules = n
	}
}

// read reads everything once, and returns the number of rules.
func (r *reader) read(v *view.View) (int, error) {
	rules, _, err := v.Rules()
	if err != nil {
		return 0, err
	}
	for i, rule := range rules {
		if rule.Nr != i {
			return 0, fmt.Errorf("rule %d has the number %d", i, rule.Nr)
		}
	}
	if r.last, err = v.Info(); err != nil {
		return 0, err
	}
	if !r.last.Enabled || r.last.Loaded == nil {
		return 0, fmt.Errorf("the view does not say what is loaded: %+v", r.last)
	}
	err = v.States(&state.Filter{}, func(*state.View) bool { return true })
	return len(rules), err
}

// openMaps counts this process's descriptors of BPF maps.
func openMaps() (count int) {
	links, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		return -1
	}
	for _, link := range links {
		if to, err := os.Readlink(link); err == nil && strings.Contains(to, "bpf-map") {
			count++
		}
	}
	return count
}
