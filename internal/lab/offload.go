package lab

import (
	"fmt"
	"path"

	"github.com/safchain/ethtool"

	"weir/internal/host/netif"
)

// Offloads says what work a lab's devices leave undone.
type Offloads int

const (
	// OffloadsOn keeps veth's defaults: frames of local sockets cross as
	// super-packets without checksums. TCX programs can handle them.
	OffloadsOn Offloads = iota
	// OffloadsOff makes the wire carry what a real wire would: complete frames with
	// checksums. XDP programs need that.
	OffloadsOff
)

func (o Offloads) String() string {
	if o == OffloadsOff {
		return "off"
	}
	return "on"
}

// wireOffloads are patterns of offloads that a real wire does not have, as the kernel
// names features.
var wireOffloads = [...]string{
	"tx-checksum-*", "rx-checksum", "tx-scatter-gather*", "tx-*-segmentation", "tx-gso-list",
	"tx-vlan-*hw-insert", "rx-vlan-*hw-parse",
}

// gro is always on at the hosts: a veth receives redirected XDP frames only by NAPI,
// which GRO or an XDP program turns on. At the firewall it is an offload like the others.
const gro = "rx-gro"

func (l *Lab) setOffloads(e *End, offloads Offloads) error {
	return l.Do(e.Host, func() error {
		have, err := features(e.Device)
		if err != nil {
			return fmt.Errorf("%s: %w", l.endName(e), err)
		}
		on := offloads == OffloadsOn
		want := netif.Features{gro: on || !l.topology.forwards(e.Host)}
		for name := range have {
			if isWireOffload(name) {
				want[name] = on
			}
		}
		if err := netif.SetFeatures(e.Device, changeable(have, want)); err != nil {
			return fmt.Errorf("%s: %w", l.endName(e), err)
		}
		return nil
	})
}

// SetOffloads changes the offloads of all wires.
func (l *Lab) SetOffloads(o Offloads) error {
	for _, w := range l.topology.Wires {
		for side := range w {
			if err := l.setOffloads(&w[side], o); err != nil {
				return err
			}
		}
	}
	return nil
}

func isWireOffload(feature string) bool {
	for _, pattern := range wireOffloads {
		if ok, err := path.Match(pattern, feature); ok && err == nil {
			return true
		}
	}
	return false
}

// SetGRO turns a device's receive offload on or off.
func (l *Lab) SetGRO(host, device string, on bool) error {
	return l.Do(host, func() error { return netif.SetFeatures(device, netif.Features{gro: on}) })
}

// changeable drops features that have the wanted value or that the driver fixes.
func changeable(have map[string]ethtool.FeatureState, want netif.Features) netif.Features {
	change := make(netif.Features)
	for name, on := range want {
		if s := have[name]; s.Active != on && s.Available && !s.NeverChanged {
			change[name] = on
		}
	}
	return change
}

func features(device string) (map[string]ethtool.FeatureState, error) {
	e, err := ethtool.NewEthtool()
	if err != nil {
		return nil, fmt.Errorf("open ethtool: %w", err)
	}
	defer e.Close()
	all, err := e.FeaturesWithState(device)
	if err != nil {
		return nil, fmt.Errorf("read offloads: %w", err)
	}
	return all, nil
}
