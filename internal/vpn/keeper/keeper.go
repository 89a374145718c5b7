package keeper

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"weir/internal/fw/rundir"
	"weir/internal/host/filelock"
	"weir/internal/host/service"
	"weir/internal/vpn/ipsec"
	"weir/internal/vpn/route"
	"weir/internal/vpn/tunnel"
	"weir/pf/resolve"
)

// Config is what weir vpn run needs.
type Config struct {
	Folder rundir.Folder
	Log    *slog.Logger
	VICI   string // charon's socket, for tunnels of IPsec
	State  string // a folder that is there after the next boot, too; "": there is none

	Summarize Summarize // for peers that ask; nil: none is told
}

// A keeper keeps the tunnels of the rules in force up.
type keeper struct {
	Config
	endpoints endpoints
	stamps    stamps
	journal   journal
	measuring sync.WaitGroup // what measures paths
	slots     chan struct{}  // for that
	routes    *route.Watch   // nil: nothing is heard of them
	charon    *ipsec.Charon

	mu      sync.Mutex  // of all below
	record  os.FileInfo // of the file that wanted is from
	wanted  resolve.Tunnels
	tunnels map[string]*running // by the name of the interface
	sites   map[string]*site    // likewise, of IPsec
	cards   *cards              // as they are in this turn
	tell    teller
	untold  string // why the teller does not listen; already logged
}

// Times between looks at the record, and at the tunnels.
const (
	recordPause = 200 * time.Millisecond
	tunnelPause = time.Second
	wayPause    = 250 * time.Millisecond // at the ways of peers that have several
)

// ErrHeld means that another process keeps the tunnels of this network namespace.
var ErrHeld = errors.New("another weir vpn run keeps the tunnels of this network namespace")

// lockPatience is how long a killed process may need to vanish.
const lockPatience = 2 * time.Second

// Run keeps the tunnels up until ctx ends. They stay as they are then.
func Run(ctx context.Context, c Config) error {
	lock, err := lock(c.Folder)
	if err != nil {
		return err
	}
	defer lock.Close()
	// CAP_NET_RAW: echoes through tunnels of the kernel's engine.
	if err := service.Keep(unix.CAP_NET_ADMIN, unix.CAP_NET_BIND_SERVICE, unix.CAP_NET_RAW); err != nil {
		return err
	}
	k := &keeper{Config: c, charon: newCharon(c), tunnels: map[string]*running{}, sites: map[string]*site{}, slots: make(chan struct{}, mostMeasured)}
	k.journal.began = time.Now()
	k.tell = teller{counts: k.counts, summary: k.summary, open: map[place]*told{}}
	k.endpoints.read(filepath.Join(c.Folder.VPN(), "endpoints.json"), c.Log)
	if k.routes, err = route.OpenWatch(); err != nil {
		c.Log.Warn("all routes are listed every few seconds", "error", err)
	} else {
		heard := make(chan struct{})
		go func() {
			defer close(heard)
			if err := k.routes.Run(); err != nil {
				c.Log.Debug("the routes of tunnels", "error", err)
			}
		}()
		defer func() { k.routes.Close(); <-heard }()
	}
	k.stamps = stamps{folder: c.Folder.VPN(), state: c.State}
	k.stamps.read(c.Log)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return k.serve(ctx) })
	group.Go(func() error { return k.charon.Run(ctx) })
	group.Go(func() error { return k.run(ctx) })
	return group.Wait()
}

func newCharon(c Config) *ipsec.Charon { return ipsec.New(c.VICI, ledger(c.Folder), c.Log) }

// ledger is the record of what charon was given.
func ledger(f rundir.Folder) string { return filepath.Join(f.VPN(), "charon.json") }

// lock makes the folder and locks it.
func lock(f rundir.Folder) (*os.File, error) {
	if err := os.MkdirAll(f.VPN(), 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of tunnels: %w", err)
	}
	for deadline := time.Now().Add(lockPatience); ; time.Sleep(recordPause / 10) {
		file, err := filelock.File(f.VPNLock(), filelock.Try)
		if errors.Is(err, filelock.ErrHeld) {
			if time.Now().Before(deadline) {
				continue
			}
			err = ErrHeld
		}
		return file, err
	}
}

func (k *keeper) run(ctx context.Context) error {
	defer k.leave()
	records, tunnels, ways := time.NewTicker(recordPause), time.NewTicker(tunnelPause), time.NewTicker(wayPause)
	defer k.measuring.Wait()
	defer records.Stop()
	defer tunnels.Stop()
	defer ways.Stop()
	k.look()
	k.Log.Info("ready", "tunnels", len(k.wanted.WireGuard)+len(k.wanted.IKEv2))
	if err := service.Notify("READY=1"); err != nil {
		k.Log.Warn("tell the service manager", "error", err)
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-records.C:
			k.look()
		case <-tunnels.C:
			k.tend(ctx)
		case <-ways.C:
			k.choose()
		}
	}
}

// leave ends the engines, and no tunnel.
func (k *keeper) leave() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.tell.closeAll()
	for _, t := range k.tunnels {
		t.leave()
	}
	k.stamps.write(time.Now(), true, k.Log)
}

// look follows the record of which tunnels there are to be.
func (k *keeper) look() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.follow()
}

// follow reads the record if it was written since, as each load does. It may be the same again, and the
// files of keys others. Without a record all stays as it is. The lock is held.
func (k *keeper) follow() {
	record, err := os.Stat(k.Folder.Tunnels())
	if errors.Is(err, fs.ErrNotExist) || err == nil && k.record != nil && os.SameFile(record, k.record) && record.ModTime().Equal(k.record.ModTime()) {
		return
	}
	var wanted resolve.Tunnels
	if err == nil {
		k.record = record // one that is written after this is read again
		err = rundir.ReadJSON(k.Folder.Tunnels(), &wanted)
	}
	if err != nil {
		k.Log.Error("read which tunnels there are to be", "error", err)
		return
	}
	stay := route.Blackholes(route.Of(wanted)...)
	gone := slices.DeleteFunc(route.Blackholes(route.Of(k.wanted)...), func(h route.Blackhole) bool { return slices.Contains(stay, h) })
	if err := route.Drop(gone); err != nil { // tend may have added one after the daemon removed it
		k.Log.Error("remove the blackholes of tunnels", "error", err)
	}
	k.wanted, k.cards = wanted, newCards()
	k.drop()
	for i := range wanted.WireGuard {
		t := k.tunnels[wanted.WireGuard[i].Name]
		if t == nil {
			t = &running{keeper: k}
			k.tunnels[wanted.WireGuard[i].Name] = t
		}
		t.be(wanted.WireGuard[i])
	}
	for i := range wanted.IKEv2 {
		t := k.sites[wanted.IKEv2[i].Name]
		if t == nil {
			t = &site{keeper: k}
			k.sites[wanted.IKEv2[i].Name] = t
		}
		t.be(wanted.IKEv2[i])
	}
	k.charon.Want(wanted.IKEv2)
}

// drop drops the tunnels that are wanted no more. The lock is held.
func (k *keeper) drop() {
	named := func(name string) bool {
		return slices.ContainsFunc(k.wanted.WireGuard, func(w resolve.WireGuard) bool { return w.Name == name })
	}
	ipsecNamed := func(name string) bool {
		return slices.ContainsFunc(k.wanted.IKEv2, func(w resolve.IKEv2) bool { return w.Name == name })
	}
	for name, t := range k.tunnels {
		if !named(name) {
			t.leave()
			k.routes.Forget(name)
			delete(k.tunnels, name)
			k.Log.Info("the tunnel is gone", "interface", name)
			t.note(OfTunnel, "", "the rules do not have it any more")
		}
	}
	for name := range k.sites {
		if !ipsecNamed(name) {
			k.routes.Forget(name)
			delete(k.sites, name)
			k.Log.Info("the tunnel is gone", "interface", name)
		}
	}
	if err := tunnel.Remove(func(name string) bool { return named(name) || ipsecNamed(name) }); err != nil {
		k.Log.Error("remove the interfaces of tunnels", "error", err)
	}
}

// tend looks after the tunnels that there are to be now.
func (k *keeper) tend(ctx context.Context) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.cards = newCards()
	k.follow()
	for _, t := range k.tunnels {
		t.tend(ctx, time.Now())
		k.stamps.note(t.engine)
	}
	for _, t := range k.sites {
		t.tend(time.Now())
	}
	k.tellLoad()
	k.endpoints.write(k.Log)
	k.stamps.write(time.Now(), false, k.Log)
}

// choose has peers be reached by the ways that work.
func (k *keeper) choose() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, t := range k.tunnels {
		t.choose(time.Now())
	}
}

// Down removes all tunnels, with their routes and blackholes. The error is ErrHeld while a process
// keeps them.
func Down(ctx context.Context, c Config) error {
	lock, err := lock(c.Folder)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := ipsec.Down(ctx, c.VICI, ledger(c.Folder), c.Log); err != nil { // while its record is there
		return err
	}
	return errors.Join(tunnel.Remove(func(string) bool { return false }), route.Unblock(nil), os.RemoveAll(c.Folder.VPN()))
}
