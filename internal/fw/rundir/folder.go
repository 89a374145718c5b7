package rundir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/host/filelock"
	"weir/internal/killpoint"
)

// Root contains one folder for each network namespace that weir runs in.
const Root = "/run/weir"

// Folder is the run folder of one network namespace. The daemon writes it. Everything in
// it can be read at any time.
type Folder string

// FolderOf returns the folder of the network namespace with a cookie.
func FolderOf(cookie uint64) Folder {
	return Folder(filepath.Join(Root, strconv.FormatUint(cookie, 10)))
}

// Socket returns the path of the daemon's control socket.
func (f Folder) Socket() string { return filepath.Join(string(f), "control.sock") }

// Found returns the file with the settings that weir stop restores.
func (f Folder) Found() string { return filepath.Join(string(f), "found.json") }

// Interfaces returns the file with the interfaces as last recorded: []Interface.
func (f Folder) Interfaces() string { return filepath.Join(string(f), "interfaces.json") }

// Prefetch is the file that says why packets are not prefetched.
func (f Folder) Prefetch() string { return filepath.Join(string(f), "prefetch.json") }

// Policies is the file that says which IPsec policies the dataplane follows.
func (f Folder) Policies() string { return filepath.Join(string(f), "policies.json") }

// SecretPolicies is the record of the IPsec policies in force whose packets must not leave in clear, for a daemon that goes on with them.
func (f Folder) SecretPolicies() string { return filepath.Join(string(f), "policies-secret.json") }

// Engines returns the path of the list of what keeps each tree of queues within its rates: []Engine.
func (f Folder) Engines() string { return filepath.Join(string(f), "engines.json") }

// Gateways returns the path of the list of gateways that are down.
func (f Folder) Gateways() string { return filepath.Join(string(f), "gateways.json") }

// Addresses is the record of the addresses that interfaces have and had, whose states may still be there.
func (f Folder) Addresses() string { return f.path("addresses.json") }

// PPPoE is the record of the sessions that are up, for a daemon that goes on with them.
func (f Folder) PPPoE() string { return filepath.Join(string(f), "pppoe.json") }

// PPPoEScripts is the record of which scripts were told of a session, and not of its end yet.
func (f Folder) PPPoEScripts() string { return f.path("pppoe-scripts.json") }

// PPPoEScript is the file that is locked while a process runs the script of an interface.
func (f Folder) PPPoEScript(name string) string {
	return f.path("pppoe-script-" + url.PathEscape(name) + ".lock")
}

// Prefixes is the record of what providers have delegated, and of what hosts were told of it.
func (f Folder) Prefixes() string { return filepath.Join(string(f), "prefixes.json") }

// Tunnels is the record of the tunnels of the rules in force, for weir vpn run.
func (f Folder) Tunnels() string { return f.path("tunnels.json") }

// Portmap returns the file with the mappings of weir portmap, whose rules are in an anchor.
func (f Folder) Portmap(anchor string) string {
	return f.path("portmap-" + url.PathEscape(anchor) + ".json")
}

// PfctlZero is the record of the counters that pfctl was told to clear.
func (f Folder) PfctlZero() string { return f.path("pfctl-zero.json") }

// Loaded returns the file that names the rules in force: a Loaded.
func (f Folder) Loaded() string { return filepath.Join(string(f), "loaded.json") }

// Sources returns the folder with the text of the rules in force.
func (f Folder) Sources() string { return filepath.Join(string(f), "sources") }

// SourceOf returns the record of the text that a generation of the dataplane was
// compiled from: a Source.
func (f Folder) SourceOf(generation uint32) string {
	return filepath.Join(f.Sources(), strconv.FormatUint(uint64(generation), 10)+".json")
}

// Rules returns the folder with one file for each ruleset whose rules are still counted.
func (f Folder) Rules() string { return filepath.Join(string(f), "rules") }

// RulesOf returns the record of the ruleset whose rule 0 has a global number: []RuleText.
func (f Folder) RulesOf(base uint32) string {
	return filepath.Join(f.Rules(), strconv.FormatUint(uint64(base), 10)+".json")
}

func (f Folder) path(name string) string { return filepath.Join(string(f), name) }

func (f Folder) lock() string { return filepath.Join(string(f), "lock") }

// Make makes the folder and its subfolders, for root only.
func (f Folder) Make() error {
	for _, dir := range []string{string(f), f.Rules(), f.Sources(), f.Tables()} {
		if err := killpoint.MkdirAll(dir); err != nil {
			return fmt.Errorf("make the run folder: %w", err)
		}
	}
	return nil
}

// connectPatience is how long connecting to a daemon may take.
const connectPatience = time.Second

// IsServed reports whether a process holds the control socket.
func (f Folder) IsServed() bool {
	c, err := net.DialTimeout("unix", f.Socket(), connectPatience)
	if err != nil {
		return false
	}
	c.Close()
	return true
}

// ErrLocked means that another process holds the folder's lock.
var ErrLocked = errors.New("another weir holds the run folder")

// lockPause is how long Lock waits before it tries again.
const lockPause = 20 * time.Millisecond

// Lock locks the folder until the returned file is closed or the process ends, however
// it ends. It waits for at most patience. After that the error is ErrLocked. The daemon
// holds the lock as long as it lives.
func (f Folder) Lock(patience time.Duration) (*os.File, error) {
	for deadline := time.Now().Add(patience); ; time.Sleep(lockPause) {
		file, err := f.tryLock()
		if err == nil || !errors.Is(err, ErrLocked) || time.Now().After(deadline) {
			return file, err
		}
	}
}

// tryLock also makes the folder. The holder of the lock may remove the folder while
// others make it. So the folder is complete only if it is made under the lock.
func (f Folder) tryLock() (*os.File, error) {
	file, err := f.makeLocked()
	if errors.Is(err, filelock.ErrHeld) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist) {
		return nil, ErrLocked
	}
	return file, err
}

func (f Folder) makeLocked() (*os.File, error) {
	if err := f.Make(); err != nil {
		return nil, err
	}
	file, err := filelock.File(f.lock(), filelock.Try)
	if err != nil {
		return nil, err
	}
	if err := f.Make(); err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// WriteLeftOut writes the rules of an anchor that a start has left out, and returns the path
// of the file.
func (f Folder) WriteLeftOut(anchor, rules string) (string, error) {
	folder := f.path("left-out")
	file := filepath.Join(folder, url.PathEscape(anchor)+".conf")
	if err := killpoint.MkdirAll(folder); err != nil {
		return file, err
	}
	return file, killpoint.Replace(file, []byte(rules), 0o600)
}

// Remove removes the folder, with its lock last. The caller holds the lock, or the
// folder's namespace is gone. Remove leaves what others have made in it meanwhile.
func (f Folder) Remove() error {
	entries, err := os.ReadDir(string(f))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the run folder: %w", err)
	}
	for _, e := range entries {
		path := filepath.Join(string(f), e.Name())
		if path == f.lock() {
			continue
		}
		if err := killpoint.RemoveAll(path); err != nil {
			return fmt.Errorf("remove the run folder: %w", err)
		}
	}
	for _, path := range []string{f.lock(), string(f)} {
		err := killpoint.Remove(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTEMPTY) {
			return fmt.Errorf("remove the run folder: %w", err)
		}
	}
	return nil
}

// WriteJSON replaces the file at path with the JSON of v in one step, so readers see the
// old or the new one.
func WriteJSON(path string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := killpoint.Replace(path, append(b, '\n'), 0o600); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// ReadJSON reads a file that WriteJSON has written.
func ReadJSON(path string, v any) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}
