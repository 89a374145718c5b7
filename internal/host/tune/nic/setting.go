package nic

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/safchain/ethtool"
	"golang.org/x/sys/unix"
)

// setting is how a setting is read and set. Without set, it is a limit.
type setting struct {
	get func(d *device) (string, error)
	set func(d *device, value string) error
}

var settings = map[string]setting{
	"queues":      numbers((*ethtool.Ethtool).GetChannels, queues, present, (*ethtool.Ethtool).SetChannels),
	"queues-max":  numbers((*ethtool.Ethtool).GetChannels, maxQueues, present, nil),
	"rings":       numbers((*ethtool.Ethtool).GetRing, rings, all, (*ethtool.Ethtool).SetRing),
	"rings-max":   numbers((*ethtool.Ethtool).GetRing, maxRings, all, nil),
	"pause":       numbers((*ethtool.Ethtool).GetPause, pause, switches, (*ethtool.Ethtool).SetPause),
	"adaptive-rx": numbers((*ethtool.Ethtool).GetCoalesce, adaptive, switches, (*ethtool.Ethtool).SetCoalesce),
	"eee":         {getEEE, setEEE},
	"hash-udp4":   hash("udp4"),
	"hash-udp6":   hash("udp6"),
	"indirection": {getIndirection, setIndirection},
	"gro":         feature("rx-gro"),
	"hw-gro":      feature("rx-gro-hw"),
	"lro":         feature("rx-lro"),
}

// Get reads a setting of a card.
func Get(card, name string) (string, error) {
	var value string
	err := with(card, func(d *device) (err error) {
		s, known := settings[name]
		if !known {
			return fs.ErrNotExist
		}
		value, err = s.get(d)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("read %s of %s: %w", name, card, err)
	}
	return value, nil
}

// Set sets a setting of a card. Some drivers accept changes that they do not make, so
// read it back.
func Set(card, name, value string) error {
	err := with(card, func(d *device) error {
		s, known := settings[name]
		if !known || s.set == nil {
			return errors.New("it cannot be set")
		}
		return s.set(d, value)
	})
	if err != nil {
		return fmt.Errorf("set %s of %s to %q: %w", name, card, value, err)
	}
	return nil
}

// PermanentAddress returns the hardware's MAC address, "" if it has none.
func PermanentAddress(card string) string {
	var address string
	err := with(card, func(d *device) (err error) {
		address, err = d.PermAddr(card)
		return err
	})
	if err != nil || strings.Trim(address, "0:") == "" {
		return ""
	}
	return strings.ToLower(address)
}

// Cards talks to the cards' drivers through the library, and with requests of its own
// where the library lacks them.
type Cards struct {
	*ethtool.Ethtool
	fd int
}

// Open opens the cards of the process's network namespace. The caller closes them.
func Open() (*Cards, error) {
	e, err := ethtool.NewEthtool()
	if err != nil {
		return nil, fmt.Errorf("open ethtool: %w", err)
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		e.Close()
		return nil, fmt.Errorf("open a socket for ethtool: %w", err)
	}
	return &Cards{e, fd}, nil
}

// Close closes the connections to the drivers.
func (c *Cards) Close() {
	c.Ethtool.Close()
	unix.Close(c.fd)
}

// device is one card during a request.
type device struct {
	*Cards
	name string
}

func with(card string, do func(d *device) error) error {
	c, err := Open()
	if err != nil {
		return err
	}
	defer c.Close()
	err = do(&device{c, card})
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("%w (%w)", fs.ErrNotExist, err)
	}
	return err
}

// assign stores the numbers of a value such as "rx 4 tx 1" in their parts, on and off as
// 1 and 0. A single switch has no name.
func assign(value string, parts []part) error {
	fields := strings.Fields(value)
	if len(parts) == 1 && len(fields) == 1 {
		fields = append([]string{""}, fields...)
	}
	if len(fields)%2 != 0 || len(fields) == 0 {
		return fmt.Errorf("%q: want pairs of a name and a value", value)
	}
	for i := 0; i < len(fields); i += 2 {
		at := slices.IndexFunc(parts, func(p part) bool { return p.name == fields[i] })
		if at < 0 {
			return fmt.Errorf("%q: there is no %q", value, fields[i])
		}
		n, err := strconv.ParseUint(fields[i+1], 10, 32)
		if on, failed := isOn(fields[i+1]); failed == nil {
			n, err = uint64(flag(on)), nil
		}
		if err != nil {
			return fmt.Errorf("%q: %s is no number", value, fields[i+1])
		}
		*parts[at].value = uint32(n)
	}
	return nil
}

func flag(on bool) uint32 {
	if on {
		return 1
	}
	return 0
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

func isOn(value string) (bool, error) {
	switch value {
	case "on", "off":
		return value == "on", nil
	}
	return false, fmt.Errorf("%q: want on or off", value)
}
