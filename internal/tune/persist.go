package tune

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// persist writes the file that keeps the entries' values for the next boot, or
// removes it where there are none. A namespace has no boot.
func (h *Host) persist(entries []entry) error {
	if !h.whole() {
		return nil
	}
	path := h.path(ownFile)
	if len(entries) == 0 {
		return removeFile(path)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("keep values for the next boot: %w", err)
	}
	if err := replace(path, []byte(bootText(entries)), 0o644); err != nil {
		return fmt.Errorf("keep values for the next boot: %w", err)
	}
	return nil
}

// bootText is the file for systemd's sysctl and procps'. A minus before a key has
// them go on where the kernel does not have it yet.
func bootText(entries []entry) string {
	var b strings.Builder
	b.WriteString("# Written by weir tune apply; weir tune revert removes it. To set a key yourself,\n" +
		"# write it into a file of your own: weir tune leaves it to you then.\n")
	for _, e := range entries {
		fmt.Fprintf(&b, "\n# %s\n-%s = %s\n", e.Why, e.Key, e.Set)
	}
	return b.String()
}
