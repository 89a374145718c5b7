package collect

import (
	"fmt"

	"golang.zx2c4.com/wireguard/wgctrl"
)

// wireguardPeers counts the peers of an interface whose far end is known.
func wireguardPeers(name string) (peers int, err error) {
	c, err := wgctrl.New()
	if err != nil {
		return 0, fmt.Errorf("open WireGuard: %w", err)
	}
	defer c.Close()
	device, err := c.Device(name)
	if err != nil {
		return 0, fmt.Errorf("read the peers of %s: %w", name, err)
	}
	for i := range device.Peers {
		if device.Peers[i].Endpoint != nil {
			peers++
		}
	}
	return peers, nil
}
