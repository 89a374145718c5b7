// Package vpn measures tunnels: weir's own path of data beside wireguard-go as it is released, both ends on
// this machine's cores, and one end of weir's alone.
package vpn
