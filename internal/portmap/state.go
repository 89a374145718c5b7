package portmap

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"weir/internal/killpoint"
	"weir/internal/portmap/mapping"
)

// A state is what outlives the server. Its times are seconds since boot, which nobody sets
// and which go on during suspend, so it is void after a boot.
type state struct {
	Boot     string            `json:"boot"`
	Since    int64             `json:"since"`
	Mappings []mapping.Mapping `json:"mappings"`
}

// bootID names this boot of the machine.
func bootID() (string, error) {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(text)), err
}

// uptime returns the seconds since boot.
func uptime() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		panic(err) // every kernel that weir runs on has this clock
	}
	return t.Sec
}

// readState reads a file; if there is none of this boot, an empty state that begins now.
func readState(path string) (*state, error) {
	boot, err := bootID()
	if err != nil {
		return nil, err
	}
	fresh := &state{Since: uptime()}
	file, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fresh, nil
	}
	if err != nil {
		return nil, err
	}
	var s state
	if err := json.Unmarshal(file, &s); err != nil {
		return nil, fmt.Errorf("read the mappings in %s: %w", path, err)
	}
	if s.Boot != boot || s.Since > fresh.Since {
		return fresh, nil
	}
	return &s, nil
}

func (s *state) write(path string) (err error) {
	if s.Boot, err = bootID(); err != nil {
		return err
	}
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return killpoint.Replace(path, text, 0o600)
}
