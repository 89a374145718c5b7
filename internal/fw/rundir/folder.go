package rundir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/killpoint"
)

// Root holds one folder for each network namespace that weir runs in.
const Root = "/run/weir"

// Folder is the run folder of one network namespace. The daemon writes it;
// everything in it may be read at any time.
type Folder string

// FolderOf is the folder of the network namespace with that cookie.
func FolderOf(cookie uint64) Folder {
	return Folder(filepath.Join(Root, strconv.FormatUint(cookie, 10)))
}

// Socket is the daemon's control socket.
func (f Folder) Socket() string { return filepath.Join(string(f), "control.sock") }

// Found is the file of what weir stop gives back.
func (f Folder) Found() string { return filepath.Join(string(f), "found.json") }

// Interfaces is the file of the interfaces that were judged last: []Interface.
func (f Folder) Interfaces() string { return filepath.Join(string(f), "interfaces.json") }

// Loaded is the file that names the rules in force: a Loaded.
func (f Folder) Loaded() string { return filepath.Join(string(f), "loaded.json") }

// Sources is the folder with the text of the rules in force.
func (f Folder) Sources() string { return filepath.Join(string(f), "sources") }

// SourceOf is the record of the text that a generation of the dataplane was made
// from: a Source.
func (f Folder) SourceOf(generation uint32) string {
	return filepath.Join(f.Sources(), strconv.FormatUint(uint64(generation), 10)+".json")
}

// Rules is the folder with one file for each ruleset whose rules are still counted.
func (f Folder) Rules() string { return filepath.Join(string(f), "rules") }

// RulesOf is the record of the ruleset whose rule 0 has that global number: []RuleText.
func (f Folder) RulesOf(base uint32) string {
	return filepath.Join(f.Rules(), strconv.FormatUint(uint64(base), 10)+".json")
}

func (f Folder) path(name string) string { return filepath.Join(string(f), name) }

func (f Folder) lock() string { return filepath.Join(string(f), "lock") }

// Make makes the folder and those in it, for root alone.
func (f Folder) Make() error {
	for _, dir := range []string{string(f), f.Rules(), f.Sources()} {
		if err := killpoint.MkdirAll(dir); err != nil {
			return fmt.Errorf("make the run folder: %w", err)
		}
	}
	return nil
}

// answerPatience is how long a daemon may take to be connected to.
const answerPatience = time.Second

// Answers reports whether a process holds the control socket.
func (f Folder) Answers() bool {
	c, err := net.DialTimeout("unix", f.Socket(), answerPatience)
	if err != nil {
		return false
	}
	c.Close()
	return true
}

// ErrLocked says that another process holds a folder's lock.
var ErrLocked = errors.New("another weir holds the run folder")

// lockPause is how long Lock waits before it tries again.
const lockPause = 20 * time.Millisecond

// Lock takes the folder for this process until the returned file is closed or
// the process ends, however it ends. It waits for at most patience; then the
// error is ErrLocked. The daemon holds the lock as long as it lives.
func (f Folder) Lock(patience time.Duration) (*os.File, error) {
	for deadline := time.Now().Add(patience); ; time.Sleep(lockPause) {
		file, err := f.tryLock()
		if err == nil || !errors.Is(err, ErrLocked) || time.Now().After(deadline) {
			return file, err
		}
	}
}

// tryLock makes the folder too. Whoever holds the lock may remove the folder
// while others make it: what vanishes meanwhile is another's, a lock is good only
// if its file still is the one in the folder, and the folder is whole only if it
// is made under the lock.
func (f Folder) tryLock() (*os.File, error) {
	file, err := f.openLock()
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist) {
		return nil, ErrLocked
	}
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil && f.current(file) {
		err = f.Make()
		if err == nil {
			return file, nil
		}
	} else if err == nil || errors.Is(err, unix.EWOULDBLOCK) {
		err = ErrLocked
	}
	file.Close()
	return nil, fmt.Errorf("lock the run folder: %w", err)
}

func (f Folder) openLock() (*os.File, error) {
	if err := f.Make(); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(f.lock(), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the run folder: %w", err)
	}
	return file, nil
}

func (f Folder) current(file *os.File) bool {
	held, err := file.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(f.lock())
	return err == nil && os.SameFile(held, named)
}

// Remove removes the folder, its lock last. The caller holds the lock, or the
// folder's namespace is gone. What others have made in it meanwhile stays theirs.
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

// WriteJSON replaces the file at path by v's JSON in one step, so that readers
// see the old or the new.
func WriteJSON(path string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	temporary := path + ".new"
	if err := writeSynced(temporary, append(b, '\n')); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := killpoint.Rename(temporary, path); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return syncFolder(filepath.Dir(path))
}

// writeSynced writes a file that is whole on its disk before it gets its name.
func writeSynced(path string, b []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Sync(), f.Close())
}

// syncFolder brings the names in a folder to its disk.
func syncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("sync a folder: %w", err)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("sync the folder %s: %w", path, err)
	}
	return nil
}

// ReadJSON reads what WriteJSON wrote.
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
