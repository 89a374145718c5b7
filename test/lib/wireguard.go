package lib

import (
	"fmt"
	"path/filepath"
	"strings"

	"golang.zx2c4.com/wireguard/conn"
	"golang.zx2c4.com/wireguard/device"
	"golang.zx2c4.com/wireguard/tun"

	"weir/internal/lab"
	"weir/internal/vpn/key"
)

// A FarEnd is a peer of the box that is not weir: the kernel's WireGuard where there is one, as
// wg sets it up, else wireguard-go as it is released.
type FarEnd struct {
	Key    key.Public
	Port   uint16
	Kernel bool // it is the kernel's

	b      *Box
	host   string
	box    key.Public
	device *device.Device // nil: the kernel has it
}

// FarDevice is the interface of a far end.
const FarDevice = "far0"

// FarEnd makes the far end of a tunnel in wan, with these addresses inside. The box has a public key and sends
// from these networks.
func (b *Box) FarEnd(box key.Public, preshared key.Secret, networks string, addresses ...string) *FarEnd {
	b.Helper()
	return b.FarEndIn(lab.WAN, box, preshared, networks, addresses...)
}

// FarEndIn is FarEnd in another host.
func (b *Box) FarEndIn(host string, box key.Public, preshared key.Secret, networks string, addresses ...string) *FarEnd {
	b.Helper()
	private := key.NewPrivate()
	far := &FarEnd{Key: private.Public(), Port: 51999, b: b, host: host, box: box}
	if _, err := b.Try(host, "ip", "link", "add", FarDevice, "type", "wireguard"); err == nil {
		far.Kernel = true
		path, psk := filepath.Join(b.dir, "far.key"), filepath.Join(b.dir, "far.psk")
		for path, k := range map[string]key.Secret{path: private, psk: preshared} {
			if err := key.WriteFile(path, k); err != nil {
				b.Fatal(err)
			}
		}
		b.Run(host, "wg", "set", FarDevice, "listen-port", fmt.Sprint(far.Port), "private-key", path,
			"peer", box.String(), "preshared-key", psk, "allowed-ips", networks)
		b.IP(host, "link set "+FarDevice+" mtu 1420")
	} else {
		b.goFarEnd(far, private, preshared, box, networks)
	}
	b.IP(host, "link set "+FarDevice+" up")
	for _, a := range addresses {
		b.Address(host, FarDevice, a)
	}
	return far
}

// Meet has the far end send to the box at an address.
func (f *FarEnd) Meet(endpoint string) {
	f.b.Helper()
	if f.device == nil {
		f.b.Run(f.host, "wg", "set", FarDevice, "peer", f.box.String(), "endpoint", endpoint)
		return
	}
	if err := f.device.IpcSet("public_key=" + f.box.Hex() + "\nupdate_only=true\nendpoint=" + endpoint + "\n"); err != nil {
		f.b.Fatal(err)
	}
}

// goFarEnd runs wireguard-go in this process, with its device and its sockets in the host.
func (b *Box) goFarEnd(far *FarEnd, private, preshared key.Secret, box key.Public, networks string) {
	b.Helper()
	hidden := func(k key.Secret) string { raw := k.Reveal(); return key.Public(raw).Hex() }
	text := fmt.Sprintf("private_key=%s\nlisten_port=%d\npublic_key=%s\npreshared_key=%s\n", hidden(private), far.Port, box.Hex(), hidden(preshared))
	for _, n := range strings.Split(networks, ",") {
		text += "allowed_ip=" + n + "\n"
	}
	err := b.Do(far.host, func() error {
		t, err := tun.CreateTUN(FarDevice, 1420)
		if err != nil {
			return err
		}
		d := device.NewDevice(t, &bindIn{conn.NewDefaultBind(), b, far.host}, device.NewLogger(device.LogLevelSilent, ""))
		b.Cleanup(d.Close)
		far.device = d
		if err := d.IpcSet(text); err != nil {
			return err
		}
		return d.Up()
	})
	if err != nil {
		b.Fatal(err)
	}
}

// bindIn opens its sockets in a host. wireguard-go opens them again, in any thread, when its device was down.
type bindIn struct {
	conn.Bind
	b    *Box
	host string
}

// Open opens the sockets.
func (i *bindIn) Open(port uint16) (receive []conn.ReceiveFunc, actual uint16, err error) {
	err = i.b.Do(i.host, func() (err error) {
		receive, actual, err = i.Bind.Open(port)
		return err
	})
	return receive, actual, err
}
