package dataplane

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"weir/internal/fw/bpfload"
	"weir/internal/host/filelock"
	"weir/internal/host/netif"
	"weir/internal/killpoint"
)

// Base is the mount point of weir's own bpffs. It has one folder per network namespace,
// named by the namespace's cookie.
const Base = "/run/weir/bpf"

// Names in a folder. Generations and tables are pinned under a "next" name first and
// renamed when they are live, because a crash cannot interrupt a rename.
const (
	tablesDir         = "tables"
	nextTablesDir     = "next_tables"
	oldTablesDir      = "old_tables"
	generationDir     = "generation"
	nextGenerationDir = "next_generation"
	oldGenerationDir  = "old_generation"
	linksDir          = "links"
)

// ErrBusy is returned (wrapped) while another process is replacing the same folder's
// dataplane.
var ErrBusy = errors.New("the dataplane is being replaced by another process")

// Folder returns the path of the namespace's folder in weir's own bpffs. Build makes it.
// netns is as in Config.
func Folder(netns string) (string, error) {
	cookie, err := bpfload.From(bpfload.At(netns), netif.Cookie)
	return filepath.Join(Base, strconv.FormatUint(cookie, 10)), err
}

// Mount mounts weir's own bpffs if it is not there. It uses the mount namespace of
// process 1, so that the mount outlives the caller. Build needs it for folders in Base.
func Mount() error {
	return bpfload.At("").Do(func() error { return bpfload.MountFS(Base) })
}

// Unmount unmounts weir's own bpffs, unless a namespace has a folder in it. The caller
// makes sure that no process mounts it or makes a folder meanwhile.
func Unmount() error {
	return bpfload.At("").Do(func() error { return bpfload.UnmountFS(Base) })
}

// Folders returns the folders of all namespaces that weir has run in.
func Folders() ([]string, error) {
	entries, err := bpfload.From(bpfload.At(""), func() ([]os.DirEntry, error) { return os.ReadDir(Base) })
	if err != nil && !isMissing(err) {
		return nil, fmt.Errorf("list the namespaces' folders: %w", err)
	}
	var folders []string
	for _, e := range entries {
		if e.IsDir() { // the kernel puts files of its own beside them
			folders = append(folders, filepath.Join(Base, e.Name()))
		}
	}
	return folders, nil
}

// Leftover reports whether the folder's network namespace is gone: the folder has pinned
// links, and each has lost its interface. Remove removes such a folder.
func Leftover(dir string) (bool, error) {
	return withLinks(bpfload.At(""), dir, func(links map[linkKey]*pinnedLink) (bool, error) {
		for _, l := range links {
			if !l.gone {
				return false, nil
			}
		}
		return len(links) > 0, nil
	})
}

// Remove detaches every program pinned in the folder and removes the folder with
// everything in it, including the states. It is not an error if there is none.
func Remove(dir string) error {
	return bpfload.At("").Do(func() error {
		if _, err := os.Stat(dir); isMissing(err) {
			return nil
		}
		lock, err := lockFolder(dir, true)
		if err != nil {
			return err
		}
		defer lock.Close()
		links, err := openLinks(dir)
		if err != nil {
			return err
		}
		defer closeLinks(links)
		for _, l := range links {
			if err := l.remove(); err != nil {
				return err
			}
		}
		// Remove the tables first: without them nothing counts as loaded,
		// whatever else is left.
		if err := removeAll(dir, tablesDir, nextTablesDir, oldTablesDir); err != nil {
			return err
		}
		return removeAll(dir, "")
	})
}

// lockFolder makes the folder if it is missing. It returns the folder open and locked
// against other processes, and against other Dataplanes of this one. With wait it waits
// for them. Otherwise the error wraps ErrBusy.
func lockFolder(dir string, wait bool) (*os.File, error) {
	if err := killpoint.MkdirAll(dir); err != nil {
		return nil, fmt.Errorf("make the folder for pins: %w", err)
	}
	mode := filelock.Try
	if wait {
		mode = filelock.Wait
	}
	f, err := filelock.Folder(dir, mode)
	if errors.Is(err, filelock.ErrHeld) {
		return nil, fmt.Errorf("lock %s: %w", dir, ErrBusy)
	}
	return f, err
}

// repair finishes or undoes an interrupted Commit. If links already hold a generation,
// its pins become the live ones; other pins are removed. If other links still hold the
// previous generation, its pins stay until the next Commit. Without them its tail calls
// would lead nowhere.
func repair(dir string) error {
	if err := undoDowngrade(dir); err != nil {
		return err
	}
	if err := forgetOld(dir); err != nil {
		return err
	}
	live, err := isInUse(dir, nextGenerationDir)
	if err != nil {
		return err
	}
	if !live {
		return removeAll(dir, nextTablesDir, nextGenerationDir)
	}
	if err := promote(dir); err != nil {
		return err
	}
	return forgetOld(dir)
}

// forgetOld removes the pins of the previous generation, unless links hold it. Its tables
// stay: they exist only if a Commit was interrupted while it copied from them, and the
// next one continues.
func forgetOld(dir string) error {
	held, err := isInUse(dir, oldGenerationDir)
	if err != nil || held {
		return err
	}
	return removeAll(dir, oldGenerationDir)
}

// isInUse reports whether any link's program uses the maps of a generation.
func isInUse(dir, generation string) (bool, error) {
	maps, err := bpfload.MapIDs(filepath.Join(dir, generation))
	if err != nil || len(maps) == 0 {
		return false, err
	}
	used, err := usedMaps(dir)
	for id := range maps {
		if used[id] {
			return true, err
		}
	}
	return false, err
}

// livePins returns the folder of what is in force. That is the live name, or the next one
// if a promotion was interrupted between its renames.
func livePins(dir, live, next, old string) string {
	_, noLive := os.Stat(filepath.Join(dir, live))
	_, noOld := os.Stat(filepath.Join(dir, old))
	if isMissing(noLive) && noOld == nil {
		return filepath.Join(dir, next)
	}
	return filepath.Join(dir, live)
}

// liveTables returns the folder of the tables in use. It does not have the live name
// while an older version is offered its own tables.
func liveTables(dir string) string {
	newer := filepath.Join(dir, newerTablesDir)
	if _, err := os.Stat(newer); err == nil {
		return newer
	}
	return livePins(dir, tablesDir, nextTablesDir, oldTablesDir)
}

func liveGeneration(dir string) string {
	return livePins(dir, generationDir, nextGenerationDir, oldGenerationDir)
}

// promote moves the live pins to the old name and the next pins to the live name.
func promote(dir string) error {
	for _, name := range [][3]string{
		{nextTablesDir, tablesDir, oldTablesDir},
		{nextGenerationDir, generationDir, oldGenerationDir},
	} {
		next, live, old := filepath.Join(dir, name[0]), filepath.Join(dir, name[1]), filepath.Join(dir, name[2])
		if _, err := os.Stat(next); isMissing(err) {
			continue
		}
		if _, err := os.Stat(live); err == nil { // otherwise an earlier promotion has already done this
			if err := removeAll(dir, name[2]); err != nil {
				return err
			}
		}
		if err := killpoint.Rename(live, old); err != nil && !isMissing(err) {
			return fmt.Errorf("replace pins: %w", err)
		}
		if err := killpoint.Rename(next, live); err != nil {
			return fmt.Errorf("replace pins: %w", err)
		}
	}
	return nil
}

func removeAll(dir string, names ...string) error {
	for _, name := range names {
		if err := killpoint.RemoveAll(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("remove pins: %w", err)
		}
	}
	return nil
}
