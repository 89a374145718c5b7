package igd

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"weir/internal/portmap/mapping"
)

// Traffic is what has crossed the external interface.
type Traffic struct{ BytesSent, BytesReceived, PacketsSent, PacketsReceived uint64 }

// A Device answers what hosts of the LAN ask. All functions may be called at once.
type Device struct {
	// Change changes the mappings and loads their rules. After an error nothing has changed.
	Change func(context.Context, func(*mapping.Table) error) error
	// Table returns the mappings; nobody changes them.
	Table func() *mapping.Table
	// Clock returns the second since boot, and the seconds since the mappings were lost.
	Clock func() (now int64, epoch uint32)
	// External returns the address that hosts are told; not valid: there is none.
	External func() netip.Addr
	// Local reports whether a host may ask at all.
	Local func(netip.Addr) bool
	// Same reports whether two IPv6 addresses are of one host.
	Same    func(a, b netip.Addr) bool
	Traffic func() Traffic
	Others  bool     // a host may map for another
	UUID    [16]byte // the same after a restart
	Version string   // of weir
	Port    uint16   // of the descriptions
	Log     *slog.Logger

	events events
}

// versions of the device that there are.
var versions = []int{1, 2}

// parts are the devices within a device, and what each can do.
var parts = []struct{ kind, name string }{
	{"InternetGatewayDevice", "weir"},
	{"WANDevice", "the uplink"},
	{"WANConnectionDevice", "the connection"},
}

func deviceType(part, version int) string {
	return fmt.Sprintf("urn:schemas-upnp-org:device:%s:%d", parts[part].kind, version)
}

// partUUID names a device within the device.
func (d *Device) partUUID(part, version int) string {
	u := d.UUID
	u[14] += byte(part)
	u[15] += byte(version)
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}

// server is the header of that name.
func (d *Device) server() string { return "Linux UPnP/1.1 weir/" + d.Version }

// services are what a device of a version can do.
func services(version int) (all []*service) {
	for _, s := range allServices {
		if s.device == version || s.device == 0 {
			all = append(all, s)
		}
	}
	return all
}

// find returns a service by the last part of its addresses.
func find(version int, name string) *service {
	for _, s := range services(version) {
		if s.name == name {
			return s
		}
	}
	return nil
}

// longest is how long a device of version 2 lets a mapping be (WANIPConnection:2, 2.5.16).
const longest = 7 * 24 * time.Hour
