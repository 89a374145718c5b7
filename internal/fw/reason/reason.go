package reason

import (
	"errors"
	"fmt"
)

// ErrUnknown is returned by Parse for a name that is not in the list.
var ErrUnknown = errors.New("unknown reason")

// A Reason is why a packet was passed or dropped. Its number is that of
// bpf/observe/reason.h, and thereby the index into the dataplane's counters.
type Reason uint8

// String returns the reason's name as logs and metrics print it ("no-rule").
// A number beyond the list prints as "reason-N".
func (r Reason) String() string {
	if r >= Count {
		return fmt.Sprintf("reason-%d", uint8(r))
	}
	return table[r].name
}

// Text says in one sentence what the reason means; empty beyond the list.
func (r Reason) Text() string {
	if r >= Count {
		return ""
	}
	return table[r].text
}

// IsPass reports whether a packet with this reason goes on or up. Every other
// reason drops it.
func (r Reason) IsPass() bool { return r <= LastPass }

// Parse returns the reason of that name, or an error that wraps ErrUnknown.
func Parse(name string) (Reason, error) {
	for r := range Count {
		if table[r].name == name {
			return r, nil
		}
	}
	return 0, fmt.Errorf("%w %q", ErrUnknown, name)
}

// All returns every reason in the order of bpf/observe/reason.h: passes first.
func All() []Reason {
	all := make([]Reason, Count)
	for i := range all {
		all[i] = Reason(i)
	}
	return all
}

// MarshalText and UnmarshalText make reasons readable in JSON.
func (r Reason) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText accepts what Parse accepts.
func (r *Reason) UnmarshalText(text []byte) error {
	parsed, err := Parse(string(text))
	if err != nil {
		return err
	}
	*r = parsed
	return nil
}
