package tune

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"weir/internal/host/tune/db"
)

// ownFile keeps weir's settings for the next boot. Its number sorts it after the
// distribution's files.
const ownFile = "etc/sysctl.d/90-weir-tune.conf"

// setter is a line of a sysctl file.
type setter struct {
	pattern string // the key; * matches any characters, as in the file
	value   string
	at      string // file:line
	lenient bool   // the line begins with a minus: errors do not matter
}

// admin returns the administrator's settings at boot: those in /etc, /run and /usr/local,
// in the order of systemd's sysctl. Files below /usr/lib are the distribution's and do
// not count. A file hides files of the same name in later directories.
func (h *Host) admin() ([]setter, error) {
	var all []setter
	seen := map[string]bool{}
	for _, folder := range []string{"etc/sysctl.d", "run/sysctl.d", "usr/local/lib/sysctl.d"} {
		files, err := filepath.Glob(h.path(folder, "*.conf"))
		if err != nil {
			return nil, err
		}
		slices.Sort(files)
		for _, file := range files {
			name := filepath.Base(file)
			if seen[name] || name == filepath.Base(ownFile) {
				continue
			}
			seen[name] = true
			if err := h.setters(&all, file, path.Join("/", folder, name)); err != nil {
				return nil, err
			}
		}
	}
	err := h.setters(&all, h.path("etc/sysctl.conf"), "/etc/sysctl.conf")
	return all, err
}

// setters adds the lines of a file, none if the file does not exist.
func (h *Host) setters(all *[]setter, file, shown string) error {
	f, err := os.Open(file)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read what the administrator sets: %w", err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		// A leading minus says that errors do not matter. A key with a minus and
		// no value is left as it is, which is also the administrator's decision.
		line, lenient := strings.CutPrefix(line, "-")
		name, value, _ := strings.Cut(line, "=")
		*all = append(*all, setter{db.Dotted(strings.TrimSpace(name)), strings.TrimSpace(value), fmt.Sprintf("%s:%d", shown, n), lenient})
	}
	return lines.Err()
}

// setBy returns the last line that sets a key, nil if none does.
func setBy(all []setter, key string) *setter {
	var last *setter
	for i := range all {
		// In a pattern, * matches within one part of the key.
		if ok, err := path.Match(strings.ReplaceAll(all[i].pattern, ".", "/"), strings.ReplaceAll(key, ".", "/")); err == nil && ok {
			last = &all[i]
		}
	}
	return last
}

// A Line is a line of a file that sets sysctls at boot.
type Line struct {
	At  string `json:"at"` // "/etc/sysctl.d/60-router.conf:3"
	Key string `json:"key"`
}

// UnknownLines returns the administrator's lines whose key this kernel does not have,
// although it has the key's directory. If the directory is missing too, a module or an
// interface may bring it later. The error is ErrNotWhole in a network namespace that does
// not show the machine's keys.
func (h *Host) UnknownLines() ([]Line, error) {
	if !h.isWholeMachine() {
		return nil, ErrNotWhole
	}
	lines, err := h.admin()
	if err != nil {
		return nil, err
	}
	unknown := []Line{}
	for i := range lines {
		l := &lines[i]
		if !l.lenient && h.lacks(l.pattern) {
			unknown = append(unknown, Line{l.at, l.pattern})
		}
	}
	return unknown, nil
}

// ErrNotWhole is returned if the machine's own settings are out of reach.
var ErrNotWhole = errors.New("this network namespace does not show all of the machine's settings")

// lacks reports whether the kernel has the directory of a key or pattern, but nothing of
// that name in it.
func (h *Host) lacks(pattern string) bool {
	file := h.path("proc/sys", db.Swapped(pattern))
	found, err := filepath.Glob(file)
	folders, err2 := filepath.Glob(filepath.Dir(file))
	return errors.Join(err, err2) == nil && len(found) == 0 && len(folders) > 0
}
