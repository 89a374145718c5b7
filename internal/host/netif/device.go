package netif

import (
	"fmt"

	"github.com/safchain/ethtool"

	"weir/internal/killpoint"
)

// vlanStrip lists the features by which a device moves a VLAN tag out of the frame:
// 802.1Q and 802.1ad.
var vlanStrip = [...]string{"rx-vlan-hw-parse", "rx-vlan-stag-hw-parse"}

// Driver returns the name of an interface's driver, "" if it has none.
func Driver(name string) string {
	e, err := ethtool.NewEthtool()
	if err != nil {
		return ""
	}
	defer e.Close()
	driver, err := e.DriverName(name)
	if err != nil {
		return ""
	}
	return driver
}

// Queues returns the number of receive queues in use. If the driver does not report it,
// it is the kernel's number for the device.
func Queues(l *Link) int {
	e, err := ethtool.NewEthtool()
	if err != nil {
		return l.RxQueues
	}
	defer e.Close()
	c, err := e.GetChannels(l.Name)
	if n := int(c.RxCount + c.CombinedCount); err == nil && n > 0 {
		return n
	}
	return l.RxQueues
}

// Features are an interface's offloads that a reload changed or may change, by the
// kernel's names.
type Features map[string]bool

// VLANStripping returns the features by which the interface strips VLAN tags, and whether
// they are on. It returns none for an interface that never strips.
func VLANStripping(name string) (Features, error) {
	all, err := FeaturesOf(name)
	if err != nil {
		return nil, err
	}
	found := make(Features)
	for _, feature := range vlanStrip {
		if on, ok := all[feature]; ok {
			found[feature] = on
		}
	}
	return found, nil
}

// FeaturesOf returns all offloads of an interface.
func FeaturesOf(name string) (Features, error) {
	e, err := ethtool.NewEthtool()
	if err != nil {
		return nil, fmt.Errorf("open ethtool: %w", err)
	}
	defer e.Close()
	all, err := e.Features(name)
	if err != nil {
		return nil, fmt.Errorf("read the offloads of %s: %w", name, err)
	}
	return all, nil
}

// SetFeatures sets offloads of an interface and reads them back, because some drivers
// accept a change but do not make it.
func SetFeatures(name string, want Features) error {
	if len(want) == 0 {
		return nil
	}
	e, err := ethtool.NewEthtool()
	if err != nil {
		return fmt.Errorf("open ethtool: %w", err)
	}
	defer e.Close()
	if err := e.Change(name, want); err != nil {
		return fmt.Errorf("set offloads of %s: %w", name, err)
	}
	killpoint.Done("set offloads of %s", name)
	now, err := e.Features(name)
	if err != nil {
		return fmt.Errorf("read back the offloads of %s: %w", name, err)
	}
	for feature, on := range want {
		if now[feature] != on {
			return fmt.Errorf("set offload %s of %s: the driver did not change it", feature, name)
		}
	}
	return nil
}
