package portmap

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/killpoint"
	"weir/internal/portmap/mapping"
)

// A state is what outlives the server. Its times are seconds since boot, which nobody sets
// and which go on during suspend. After a boot they are counted from what the clock said then.
type state struct {
	Boot     string            `json:"boot"`
	Since    int64             `json:"since"`
	At       int64             `json:"at"`   // second since boot at which it was written
	Wall     int64             `json:"wall"` // the same by the clock: seconds since 1970; 0: not known
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

// readState reads a file; if there is none of this boot, an empty state that begins now. over:
// what a file of an earlier boot has is opened again, and hosts are told that a new epoch begins.
func readState(path string, over bool) (*state, error) {
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
	if s.Boot == boot && s.Since <= fresh.Since {
		return &s, nil
	}
	if over && s.Boot != boot && s.Wall != 0 {
		fresh.Mappings = s.after(fresh.Since, time.Now().Unix())
	}
	return fresh, nil
}

// after returns the mappings that have not ended when the clock says wall, at second now of a
// later boot. If the clock has gone back, no time has passed.
func (s *state) after(now, wall int64) (left []mapping.Mapping) {
	passed := max(wall-s.Wall, 0)
	for _, m := range s.Mappings {
		live := false
		for by, l := range m.Leases {
			if l == nil || l.Ends != 0 && l.Ends-s.At <= passed {
				m.Leases[by] = nil
				continue
			}
			live = true
			if l.Ends != 0 {
				longer := *l
				longer.Ends += now - s.At - passed
				m.Leases[by] = &longer
			}
		}
		if live {
			left = append(left, m)
		}
	}
	return left
}

func (s *state) write(path string) (err error) {
	if s.Boot, err = bootID(); err != nil {
		return err
	}
	s.At, s.Wall = uptime(), time.Now().Unix()
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return killpoint.Replace(path, text, 0o600)
}
