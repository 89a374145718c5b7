package nic

import (
	"fmt"
	"io/fs"
	"strconv"
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

// channels writes the numbers of queues, only for kinds that the card has.
func channels(combined, rx, tx uint32) (string, error) {
	var text []string
	for _, kind := range []struct {
		name  string
		count uint32
	}{{"combined", combined}, {"rx", rx}, {"tx", tx}} {
		if kind.count > 0 {
			text = append(text, kind.name, strconv.FormatUint(uint64(kind.count), 10))
		}
	}
	if text == nil {
		return "", fs.ErrNotExist
	}
	return strings.Join(text, " "), nil
}

func getQueues(d *device) (string, error) {
	c, err := d.GetChannels(d.name)
	if err != nil {
		return "", err
	}
	return channels(c.CombinedCount, c.RxCount, c.TxCount)
}

func getMaxQueues(d *device) (string, error) {
	c, err := d.GetChannels(d.name)
	if err != nil {
		return "", err
	}
	return channels(c.MaxCombined, c.MaxRx, c.MaxTx)
}

func setQueues(d *device, value string) error {
	c, err := d.GetChannels(d.name)
	if err != nil {
		return err
	}
	if err := assign(value, map[string]*uint32{"combined": &c.CombinedCount, "rx": &c.RxCount, "tx": &c.TxCount}); err != nil {
		return err
	}
	_, err = d.SetChannels(d.name, c)
	return err
}

func ringText(rx, tx uint32) (string, error) {
	if rx == 0 && tx == 0 {
		return "", fs.ErrNotExist
	}
	return fmt.Sprintf("rx %d tx %d", rx, tx), nil
}

func getRings(d *device) (string, error) {
	r, err := d.GetRing(d.name)
	if err != nil {
		return "", err
	}
	return ringText(r.RxPending, r.TxPending)
}

func getMaxRings(d *device) (string, error) {
	r, err := d.GetRing(d.name)
	if err != nil {
		return "", err
	}
	return ringText(r.RxMaxPending, r.TxMaxPending)
}

func setRings(d *device, value string) error {
	r, err := d.GetRing(d.name)
	if err != nil {
		return err
	}
	if err := assign(value, map[string]*uint32{"rx": &r.RxPending, "tx": &r.TxPending}); err != nil {
		return err
	}
	_, err = d.SetRing(d.name, r)
	return err
}

func getPause(d *device) (string, error) {
	p, err := d.GetPause(d.name)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("autoneg %s rx %s tx %s", onOff(p.Autoneg != 0), onOff(p.RxPause != 0), onOff(p.TxPause != 0)), nil
}

func setPause(d *device, value string) error {
	var p ethtool.Pause
	if err := assign(value, map[string]*uint32{"autoneg": &p.Autoneg, "rx": &p.RxPause, "tx": &p.TxPause}); err != nil {
		return err
	}
	_, err := d.SetPause(d.name, p)
	return err
}

func getAdaptive(d *device) (string, error) {
	c, err := d.GetCoalesce(d.name)
	if err != nil {
		return "", err
	}
	return onOff(c.UseAdaptiveRxCoalesce != 0), nil
}

func setAdaptive(d *device, value string) error {
	on, err := isOn(value)
	if err != nil {
		return err
	}
	c, err := d.GetCoalesce(d.name)
	if err != nil {
		return err
	}
	c.UseAdaptiveRxCoalesce = 0
	if on {
		c.UseAdaptiveRxCoalesce = 1
	}
	_, err = d.SetCoalesce(d.name, c)
	return err
}
