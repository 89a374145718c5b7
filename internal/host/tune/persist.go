package tune

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"weir/internal/killpoint"
)

// persist writes the files that keep the entries' values for the next boot. If there is
// nothing to keep, it removes them. A namespace has no boot.
func (h *Host) persist(entries []entry) error {
	if !h.isWholeMachine() {
		return nil
	}
	devices := deviceEntries(entries)
	sysctls := slices.DeleteFunc(slices.Clone(entries), func(e entry) bool { return find(devices, e.Key) != nil })
	if err := h.keep(ownFile, bootText(sysctls)); err != nil {
		return err
	}
	links, rest := h.links(devices)
	if err := h.keepLinks(links); err != nil {
		return err
	}
	return h.keepUnit(rest)
}

// keep replaces a file below the root, or removes it if the text is empty.
func (h *Host) keep(name, text string) error {
	path := h.path(name)
	if text == "" {
		return killpoint.RemoveReplaced(path)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("keep values for the next boot: %w", err)
	}
	if err := killpoint.Replace(path, []byte(text), 0o644); err != nil {
		return fmt.Errorf("keep values for the next boot: %w", err)
	}
	return nil
}

// bootText returns the file for the sysctl programs of systemd and procps, "" without
// entries. With a minus before a key, they go on if the kernel does not have it yet.
func bootText(entries []entry) string {
	if len(entries) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("# Written by weir tune apply; weir tune revert removes it. To set a key yourself,\n" +
		"# write it into a file of your own: weir tune then leaves it alone.\n")
	for _, e := range entries {
		fmt.Fprintf(&b, "\n# %s\n-%s = %s\n", e.Why, e.Key, e.Set)
	}
	return b.String()
}
