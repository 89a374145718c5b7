package rundir

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"weir/internal/host/filelock"
	"weir/internal/killpoint"
)

// vpnEnding is what the name of the folder of weir vpn run has behind that of the run folder.
const vpnEnding = "-vpn"

// VPN is the folder of weir vpn run, which outlives the daemon and weir stop.
func (f Folder) VPN() string { return string(f) + vpnEnding }

// VPNLock is the file that weir vpn run locks.
func (f Folder) VPNLock() string { return filepath.Join(f.VPN(), "lock") }

// TunnelFolders returns the run folders beside which weir vpn run has a folder, with the cookies of their namespaces.
func TunnelFolders() (map[Folder]uint64, error) {
	all, err := filepath.Glob(filepath.Join(Root, "*"+vpnEnding))
	if err != nil {
		return nil, err
	}
	folders := map[Folder]uint64{}
	for _, path := range all {
		name := strings.TrimSuffix(path, vpnEnding)
		if cookie, err := strconv.ParseUint(filepath.Base(name), 10, 64); err == nil {
			folders[Folder(name)] = cookie
		}
	}
	return folders, nil
}

// RemoveVPN removes the folder of weir vpn run, unless one runs.
func (f Folder) RemoveVPN() error {
	lock, err := filelock.File(f.VPNLock(), filelock.Try)
	if errors.Is(err, filelock.ErrHeld) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := killpoint.RemoveAll(f.VPN()); err != nil {
		return fmt.Errorf("remove the folder of weir vpn run: %w", err)
	}
	return nil
}
