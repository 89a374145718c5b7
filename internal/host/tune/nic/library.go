package nic

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/safchain/ethtool"
)

// feature returns the setting of an offload, by the kernel's name.
func feature(name string) setting {
	return setting{
		get: func(d *device) (string, error) {
			all, err := d.FeaturesWithState(d.name)
			if err != nil {
				return "", err
			}
			state, known := all[name]
			// The card lacks an offload that is off and cannot be turned on.
			// One that is always on cannot be set.
			if !known || !state.Active && !state.Available || state.NeverChanged {
				return "", fs.ErrNotExist
			}
			return onOff(state.Active), nil
		},
		set: func(d *device, value string) error {
			on, err := isOn(value)
			if err != nil {
				return err
			}
			return d.Change(d.name, map[string]bool{name: on})
		},
	}
}

// part is one number of a setting that has several.
type part struct {
	name  string
	value *uint32
}

// numbers returns a setting of numbers, in a structure that the library reads and writes:
// "rx 4 tx 1". parts names its parts and how they are written. Without set, it is a limit.
func numbers[T any](get func(*ethtool.Ethtool, string) (T, error), parts func(*T) []part, write func([]part) (string, error),
	set func(*ethtool.Ethtool, string, T) (T, error)) setting {
	s := setting{get: func(d *device) (string, error) {
		all, err := get(d.Ethtool, d.name)
		if err != nil {
			return "", err
		}
		return write(parts(&all))
	}}
	if set != nil {
		s.set = func(d *device, value string) error {
			all, err := get(d.Ethtool, d.name)
			if err == nil {
				err = assign(value, parts(&all))
			}
			if err == nil {
				_, err = set(d.Ethtool, d.name, all)
			}
			return err
		}
	}
	return s
}

func queues(c *ethtool.Channels) []part {
	return []part{{"combined", &c.CombinedCount}, {"rx", &c.RxCount}, {"tx", &c.TxCount}}
}

func maxQueues(c *ethtool.Channels) []part {
	return []part{{"combined", &c.MaxCombined}, {"rx", &c.MaxRx}, {"tx", &c.MaxTx}}
}

func rings(r *ethtool.Ring) []part { return []part{{"rx", &r.RxPending}, {"tx", &r.TxPending}} }

func maxRings(r *ethtool.Ring) []part {
	return []part{{"rx", &r.RxMaxPending}, {"tx", &r.TxMaxPending}}
}

func pause(p *ethtool.Pause) []part {
	return []part{{"autoneg", &p.Autoneg}, {"rx", &p.RxPause}, {"tx", &p.TxPause}}
}

func adaptive(c *ethtool.Coalesce) []part { return []part{{"", &c.UseAdaptiveRxCoalesce}} }

// present writes the numbers that are not 0. Without any, the card has no such setting.
func present(parts []part) (string, error) {
	return all(slices.DeleteFunc(parts, func(p part) bool { return *p.value == 0 }))
}

// all writes all numbers, unless all are 0.
func all(parts []part) (string, error) {
	text, sum := "", uint32(0)
	for _, p := range parts {
		text += fmt.Sprintf(" %s %d", p.name, *p.value)
		sum |= *p.value
	}
	if sum == 0 {
		return "", fs.ErrNotExist
	}
	return strings.TrimSpace(text), nil
}

// switches writes each number as on or off.
func switches(parts []part) (string, error) {
	text := ""
	for _, p := range parts {
		text += " " + p.name + " " + onOff(*p.value != 0)
	}
	return strings.TrimSpace(text), nil
}
