package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"weir/internal/dataplane"
)

// ErrNotRunning says that weir does nothing in this network namespace.
var ErrNotRunning = errors.New("weir does not run here: nothing to stop")

// Stop is weir stop: it ends the daemon, gives back what was found, detaches
// everything and says what the box does now. It needs no living daemon.
// Forwarding goes first, the guard last, so that no packet is forwarded
// unjudged that was not before weir came.
func Stop(ctx context.Context, cfg *Config) error {
	dir, err := dataplane.Folder("")
	if err != nil {
		return err
	}
	if !somethingRuns(cfg, dir) {
		return ErrNotRunning
	}
	lock, err := endDaemon(ctx, cfg)
	if err != nil {
		return err
	}
	defer lock.Close()
	m, err := look(cfg.Log)
	if err != nil {
		return err
	}
	found, err := readFound(cfg.Folder.Found())
	if err != nil {
		return err
	}
	err = errors.Join(
		found.restoreForwarding(m.names()),
		dataplane.Remove(dir),
		found.restoreFeatures(m.names()),
		lowerGuard(),
	)
	if err != nil {
		return err // the records stay, so that stop can be tried again
	}
	if err := removeFolders(cfg.Folder, dir); err != nil {
		return err
	}
	fmt.Fprintf(cfg.Stdout, "weir: detached from every interface; %s\n", afterwards(m))
	return nil
}

func somethingRuns(cfg *Config, dir string) bool {
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

// afterwards says what the box does without weir.
func afterwards(m *machine) string {
	v4, v6 := forwards(m.links)
	switch {
	case v4 && v6:
		return "this box forwards IPv4 and IPv6 as it did before, unfiltered by weir"
	case v4:
		return "this box forwards IPv4 as it did before, unfiltered by weir, and no IPv6"
	case v6:
		return "this box forwards IPv6 as it did before, unfiltered by weir, and no IPv4"
	}
	return "this box forwards nothing, as before"
}
