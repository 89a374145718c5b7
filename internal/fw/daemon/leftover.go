package daemon

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strconv"

	"weir/internal/fw/dataplane"
	"weir/internal/fw/rundir"
	"weir/internal/host/netif"
)

// removeLeftovers removes the remains of network namespaces that are gone, and of starts
// that were killed before they attached anything.
func removeLeftovers(cfg *Config) {
	if err := removeTunnelFolders(cfg.Folder); err != nil {
		cfg.Log.Warn("remove what weir vpn run has left in network namespaces that are gone", "error", err)
	}
	cookies, err := knownCookies()
	if err != nil {
		cfg.Log.Warn("look for leftovers of network namespaces that are gone", "error", err)
		return
	}
	for cookie := range cookies {
		if err := removeLeftover(cfg.Folder, rundir.FolderOf(cookie), filepath.Join(dataplane.Base, strconv.FormatUint(cookie, 10))); err != nil {
			cfg.Log.Warn("remove leftovers of a network namespace that is gone", "cookie", cookie, "error", err)
		}
	}
}

// removeTunnelFolders removes the folders of weir vpn run whose namespaces are gone. They have no links that would tell, and
// stay after weir stop. So the namespaces that there are are looked for, if there is such a folder.
func removeTunnelFolders(own rundir.Folder) error {
	folders, err := rundir.TunnelFolders()
	if err != nil {
		return err
	}
	delete(folders, own)
	if len(folders) == 0 {
		return nil
	}
	there, err := netif.Cookies()
	if err != nil {
		return err
	}
	var errs []error
	for f, cookie := range folders {
		if !there[cookie] {
			errs = append(errs, f.RemoveVPN())
		}
	}
	return errors.Join(errs...)
}

// knownCookies returns the cookies of all run folders and pins.
func knownCookies() (map[uint64]bool, error) {
	pins, err := dataplane.Folders()
	if err != nil {
		return nil, err
	}
	folders, err := filepath.Glob(filepath.Join(rundir.Root, "*"))
	if err != nil {
		return nil, err
	}
	cookies := make(map[uint64]bool)
	for _, dir := range append(pins, folders...) {
		if cookie, err := strconv.ParseUint(filepath.Base(dir), 10, 64); err == nil {
			cookies[cookie] = true
		}
	}
	return cookies, nil
}

// removeLeftover removes what is left in a run folder and its pins. own is the folder of
// this namespace, which is not gone even if every link has been detached: its record of
// the settings found is still needed.
func removeLeftover(own, f rundir.Folder, dir string) error {
	lock, err := f.Lock(0) // held by any start, stop or daemon there
	if errors.Is(err, rundir.ErrLocked) {
		return nil
	}
	if err != nil {
		return err
	}
	defer lock.Close()
	if f != own {
		gone, err := dataplane.Leftover(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if gone {
			return removeFolders(f, dir)
		}
	}
	return removeAbandoned(f, dir)
}

// removeAbandoned removes a run folder and its pins if nothing is attached and nothing on
// the box is changed. The caller holds the folder's lock.
func removeAbandoned(f rundir.Folder, dir string) error {
	view, err := dataplane.Open(dir)
	if err == nil {
		return view.Close()
	}
	if !errors.Is(err, dataplane.ErrNotLoaded) {
		return nil // something is there but unreadable: not abandoned
	}
	found, err := readFound(f.Found())
	if err != nil || !found.empty() {
		return err
	}
	return removeFolders(f, dir)
}

// removeFolders detaches everything pinned for a namespace and removes its run folder. If
// it was the last one, it also removes what all namespaces share.
func removeFolders(f rundir.Folder, dir string) error {
	if err := errors.Join(dataplane.Remove(dir), f.Remove()); err != nil {
		return err
	}
	return releaseRoot()
}
