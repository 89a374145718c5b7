package daemon

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"weir/internal/fw/dataplane"
	"weir/internal/fw/htb"
)

// ErrNotRunning says that weir does not run in this network namespace.
var ErrNotRunning = errors.New("weir is not running here: nothing to stop")

// Afterwards says what the box does without weir: whether it forwards packets unfiltered,
// as it did before.
type Afterwards struct {
	ForwardsIPv4 bool `json:"forwards_ipv4"`
	ForwardsIPv6 bool `json:"forwards_ipv6"`
}

// Stop implements `weir stop`. It ends the daemon, restores the settings found, detaches
// everything and reports what the box does now. It needs no living daemon. Forwarding
// goes first and the guard last. So no packet is forwarded unfiltered unless it was
// before weir came.
func Stop(ctx context.Context, cfg *Config) (*Afterwards, error) {
	dir, err := dataplane.Folder("")
	if err != nil {
		return nil, err
	}
	if !isRunning(cfg, dir) {
		return nil, ErrNotRunning
	}
	lock, err := endDaemon(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	if err := restore(&box{cfg: cfg, dir: dir}); err != nil {
		return nil, err // the records stay, so that stop can be tried again
	}
	tellScripts(cfg)
	if err := removeFolders(cfg.Folder, dir); err != nil {
		return nil, err
	}
	m, err := readMachine(cfg.Log)
	if err != nil {
		return nil, err
	}
	var a Afterwards
	a.ForwardsIPv4, a.ForwardsIPv6 = forwards(m.links)
	return &a, nil
}

// tellScripts tells the scripts of the PPPoE interfaces that these are gone.
func tellScripts(cfg *Config) {
	s := newScripts(cfg)
	s.read()
	s.downBut(func(string) bool { return false })
	s.wait(2 * scriptPatience) // one of the daemon's may still run
}

// restore restores what weir has found and detaches everything. It ends at the first
// failure: the guard must stand as long as the box may forward what weir does not filter.
func restore(b *box) (err error) {
	if b.found, err = readFound(b.cfg.Folder.Found()); err != nil {
		return err
	}
	if err := b.found.restoreForwarding(b.readNames); err != nil {
		return err
	}
	if err := b.sayGoodbye(); err != nil {
		return err
	}
	if err := dataplane.Remove(b.dir); err != nil {
		return err
	}
	if err := htb.RemoveAll(); err != nil {
		return err
	}
	names, err := b.readNames()
	if err != nil {
		return err
	}
	if err := b.found.restoreFeatures(names); err != nil {
		return err
	}
	if err := b.found.divertOff(noDivert); err != nil {
		return err
	}
	return lowerGuard()
}

func isRunning(cfg *Config, dir string) bool {
	_, noFolder := os.Stat(string(cfg.Folder))
	_, noPins := os.Stat(dir)
	return !errors.Is(noFolder, fs.ErrNotExist) || !errors.Is(noPins, fs.ErrNotExist)
}

// endDaemon asks a living daemon to leave and takes the run folder's lock.
func endDaemon(ctx context.Context, cfg *Config) (*os.File, error) {
	lock, err := takeFolder(ctx, cfg)
	if lock != nil || err != nil {
		return lock, err
	}
	return takeOver(ctx, cfg, "weir stop (process %d) ends it and detaches from every interface")
}

// String says what the box does without weir.
func (a *Afterwards) String() string {
	switch {
	case a.ForwardsIPv4 && a.ForwardsIPv6:
		return "this box forwards IPv4 and IPv6 as it did before, unfiltered by weir"
	case a.ForwardsIPv4:
		return "this box forwards IPv4 as it did before, unfiltered by weir, and no IPv6"
	case a.ForwardsIPv6:
		return "this box forwards IPv6 as it did before, unfiltered by weir, and no IPv4"
	}
	return "this box forwards nothing, as before"
}
