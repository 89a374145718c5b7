package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"weir/internal/fw/rundir"
	"weir/internal/host/filelock"
	"weir/internal/killpoint"
	"weir/internal/pppoe/client"
	"weir/pf/resolve"
)

const (
	// scriptPatience is how long a script may run, and how long the next one waits for one of another process.
	scriptPatience = time.Minute
	// scriptPause is the time between two looks at whether a script of another process still runs.
	scriptPause = 50 * time.Millisecond
	// mostOfScript is how much of what a script has written is logged, in bytes.
	mostOfScript = 2000
	// outputPatience is how long what a script has written may take to arrive after its end.
	outputPatience = 100 * time.Millisecond
)

// A call is one run of the script of a PPPoE interface, as it is recorded. It has no secret.
type call struct {
	Script, What string
	Env          []string
}

// scripts runs the scripts of the PPPoE interfaces, those of one interface one after another, and beside all else: a
// script may take a minute, and the session must not wait for it. While one runs, only the newest call waits.
//
// Which of them were told "up", and not "down" since, is recorded: the next daemon tells those whose session is over.
type scripts struct {
	log      *slog.Logger
	folder   rundir.Folder
	path     string        // of the record
	patience time.Duration // with scripts of other processes

	mu   sync.Mutex
	told map[string]call  // by the interface's name: the last "up"
	next map[string]*call // what waits; nil: nothing, but one runs
	runs sync.WaitGroup   // goroutines, one for each key of next
}

func newScripts(cfg *Config) *scripts {
	return &scripts{
		log: cfg.Log, folder: cfg.Folder, path: cfg.Folder.PPPoEScripts(), patience: scriptPatience, told: map[string]call{}, next: map[string]*call{},
	}
}

// read reads what an earlier daemon has told the scripts.
func (s *scripts) read() {
	s.mu.Lock()
	err := rundir.ReadJSON(s.path, &s.told)
	s.mu.Unlock()
	if errors.Is(err, fs.ErrNotExist) {
		err = s.readOld()
	}
	if err != nil {
		s.log.Error("read which scripts of PPPoE interfaces were run", "error", err)
	}
}

// readOld takes over from a daemon that had no such record: its records of sessions say whose script was told.
func (s *scripts) readOld() error {
	var records map[string]struct {
		pppoeRecord
		Scripted bool // the script was run with "up", and not with "down" since
	}
	if err := rundir.ReadJSON(s.folder.PPPoE(), &records); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for name, r := range records {
		if !r.Scripted {
			continue
		}
		link := &r.Saved.Link
		s.note(name, &call{Script: r.Of.Script, What: "up", Env: scriptEnvironment(&r.Of, &client.Session{
			AC: r.Saved.AC, MTU: min(link.PeerMRU, r.Saved.Payload), MRU: link.MRU, DNS: link.DNS,
			IPv4: link.Own, PeerIPv4: link.Peer, ID6: link.OwnID, PeerID6: link.PeerID,
		})})
	}
	return nil
}

// up tells the script of an interface that its session is up, or has changed.
func (s *scripts) up(of *resolve.PPPoE, at *client.Session) {
	s.ask(of.Name, call{Script: of.Script, What: "up", Env: scriptEnvironment(of, at)})
}

// down tells whoever was told that the interface has a session that it has none.
func (s *scripts) down(name string) { s.ask(name, call{What: "down"}) }

// downBut is down for all interfaces but those that keep reports.
func (s *scripts) downBut(keep func(name string) bool) {
	s.mu.Lock()
	told := maps.Clone(s.told)
	s.mu.Unlock()
	for name := range told {
		if !keep(name) {
			s.down(name)
		}
	}
}

// ask has a call run when those before have ended.
func (s *scripts) ask(name string, c call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, runs := s.next[name]
	if _, told := s.told[name]; !runs && !told && c.Script == "" {
		return
	}
	s.next[name] = &c
	if !runs {
		s.runs.Add(1)
		go s.run(name)
	}
}

// wait waits until no script runs, at most so long.
func (s *scripts) wait(most time.Duration) {
	done := make(chan struct{})
	go func() {
		s.runs.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(most):
	}
}

// run runs what waits for an interface, until nothing does.
func (s *scripts) run(name string) {
	defer s.runs.Done()
	for c := s.take(name); c != nil; c = s.take(name) {
		last, told := s.lastUp(name)
		if told && (c.What == "down" || c.Script != last.Script) {
			last.What = "down"
			s.execute(name, &last)
			s.note(name, nil) // not before: a daemon that ends meanwhile may take the script with it, and the next one tells it again
		}
		if c.What == "up" && c.Script != "" {
			s.note(name, c)
			s.execute(name, c)
		}
	}
}

// take returns the call that waits; nil: none does, and the next one begins a goroutine.
func (s *scripts) take(name string) *call {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.next[name]
	if c == nil {
		delete(s.next, name)
	} else {
		s.next[name] = nil
	}
	return c
}

func (s *scripts) lastUp(name string) (call, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, ok := s.told[name]
	return c, ok
}

// note records the last "up" of an interface; nil: it was told "down".
func (s *scripts) note(name string, c *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c == nil {
		delete(s.told, name)
	} else {
		s.told[name] = *c
	}
	if err := rundir.WriteJSON(s.path, s.told); err != nil {
		s.log.Error("PPPoE", "error", err)
	}
}

// execute runs a script to its end. What it has left running may go on; systemd ends it with the service.
func (s *scripts) execute(name string, c *call) {
	lock, err := s.lock(name)
	if err != nil {
		s.log.Error("lock the script of a PPPoE interface", "interface", name, "error", err)
	}
	out, err := output(c, lock)
	if err != nil {
		s.log.Error("the script of a PPPoE interface", "interface", name, "script", c.Script, "error", err, "output", out)
	}
	if err := unlock(lock); err != nil {
		s.log.Error("PPPoE", "error", err)
	}
}

// lock waits until no process runs the script of an interface, at most s.patience: an earlier daemon may have left one.
// What that has left running may have its lock for ever; the next call does not wait for it again.
func (s *scripts) lock(name string) (*os.File, error) {
	path := s.folder.PPPoEScript(name)
	for deadline := time.Now().Add(s.patience); time.Now().Before(deadline); time.Sleep(scriptPause) {
		if lock, err := filelock.File(path, filelock.Try); !errors.Is(err, filelock.ErrHeld) {
			return lock, err
		}
	}
	s.log.Warn("an earlier run of the script of a PPPoE interface does not end", "interface", name)
	if err := killpoint.Remove(path); err != nil {
		return nil, err
	}
	return filelock.File(path, filelock.Try)
}

// unlock ends a lock also for what the script has left running, which has inherited it.
func unlock(lock *os.File) error {
	if lock == nil {
		return nil
	}
	return errors.Join(filelock.Unlock(lock), lock.Close())
}

// output runs a script, which inherits the lock: it holds it also when this process has ended.
func output(c *call, lock *os.File) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), scriptPatience)
	defer cancel()
	r, w, err := os.Pipe()
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, c.Script, c.What)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, c.Env...)
	cmd.Stdout, cmd.Stderr = w, w
	if lock != nil {
		cmd.ExtraFiles = []*os.File{lock}
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // with all that it has started
	said := make(chan string, 1)
	go func() { // to the end of the last process that the script leaves: it must not be held up by a full pipe
		defer r.Close()
		b, _ := io.ReadAll(io.LimitReader(r, mostOfScript)) //nolint:errcheck // what there is
		said <- string(b)
		io.Copy(io.Discard, r) //nolint:errcheck // nobody needs it
	}()
	err = cmd.Run()
	w.Close()
	if ctx.Err() != nil {
		err = fmt.Errorf("it has not ended within %s: %w", scriptPatience, err)
	}
	select {
	case text := <-said:
		return text, err
	case <-time.After(outputPatience): // something that it has started goes on
		return "", err
	}
}

// scriptEnvironment is what a script learns of a session.
func scriptEnvironment(of *resolve.PPPoE, at *client.Session) []string {
	dns := make([]string, len(at.DNS))
	for i, a := range at.DNS {
		dns[i] = a.String()
	}
	env := []string{
		"WEIR_INTERFACE=" + of.Name, "WEIR_CARRIER=" + of.On, "WEIR_AC=" + at.AC,
		fmt.Sprintf("WEIR_MTU=%d", min(at.MTU, at.MRU)), "WEIR_DNS=" + strings.Join(dns, " "),
	}
	for _, v := range []struct {
		name string
		a    interface {
			IsValid() bool
			String() string
		}
	}{
		{"WEIR_IPV4", at.IPv4}, {"WEIR_PEER_IPV4", at.PeerIPv4},
		{"WEIR_IPV6", client.LinkLocal(at.ID6)}, {"WEIR_PEER_IPV6", client.LinkLocal(at.PeerID6)},
	} {
		if v.a.IsValid() {
			env = append(env, v.name+"="+v.a.String())
		}
	}
	return env
}
