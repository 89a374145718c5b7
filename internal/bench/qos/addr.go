package qos

import (
	"net"
	"net/netip"

	"go4.org/netipx"
)

func ipNet(p netip.Prefix) *net.IPNet { return netipx.PrefixIPNet(p) }

// mac returns an address of the lab, which it has made itself.
func mac(text string) net.HardwareAddr {
	m, err := net.ParseMAC(text)
	if err != nil {
		return nil
	}
	return m
}
