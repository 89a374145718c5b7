package tune

import (
	"cmp"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// governorKey is the only key of the cores. Its value is each core's governor, or one
// word if all have the same.
const governorKey = "cpu.governor"

// governors returns the governors' files, core by core.
func (h *Host) governors() ([]string, error) {
	files, err := filepath.Glob(h.path("sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor"))
	if err != nil {
		return nil, err
	}
	if files == nil {
		return nil, fs.ErrNotExist
	}
	slices.SortFunc(files, func(a, b string) int { // cpu10 after cpu9
		return cmp.Or(len(a)-len(b), strings.Compare(a, b))
	})
	return files, nil
}

func (h *Host) readGovernors() (string, error) {
	files, err := h.governors()
	if err != nil {
		return "", err
	}
	text, err := h.readFields(files)
	if words := slices.Compact(strings.Fields(text)); len(words) == 1 {
		return words[0], err
	}
	return text, err
}

func (h *Host) setGovernors(value string) error {
	files, err := h.governors()
	if err != nil {
		return err
	}
	if words := strings.Fields(value); len(words) == 1 {
		value = strings.Repeat(words[0]+" ", len(files))
	}
	return setFields(files, value)
}

// hasGovernor reports whether all cores know a governor.
func (h *Host) hasGovernor(name string) bool {
	files, err := h.governors()
	if err != nil {
		return false
	}
	for _, file := range files {
		folder := strings.TrimPrefix(filepath.Dir(file), filepath.Clean(h.path()))
		if !slices.Contains(strings.Fields(h.text(folder, "scaling_available_governors")), name) {
			return false
		}
	}
	return true
}
