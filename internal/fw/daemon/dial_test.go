package daemon

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weir/internal/fw/bpfload"
	"weir/internal/pppoe/client"
	"weir/internal/pppoe/line"
	"weir/pf/resolve"
)

// The addresses that routers of the session before advertised are deprecated before packets of the new one come in: so here, where
// none can come. Those of the same session are not.
func TestDialDeprecatesFirst(t *testing.T) {
	inLab(t, "wdial", func() {
		const fs = "/run/weir-dial-test"
		dir := filepath.Join(fs, fmt.Sprint(os.Getpid()))
		if err := bpfload.MountFS(fs); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := errors.Join(os.RemoveAll(dir), bpfload.UnmountFS(fs)); err != nil {
				t.Error(err)
			}
		})
		device, err := line.Add("ppp0")
		if err != nil {
			t.Fatal(err)
		}
		programs, err := line.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer programs.Close()
		b := &box{cfg: &Config{Log: slog.New(slog.DiscardHandler)}}
		b.lines.programs = programs
		was := client.Ref{ID: 1}
		d := &dialler{box: b, records: map[string]pppoeRecord{"ppp0": {Saved: client.Saved{Ref: was}}}}
		s := &dial{dialler: d, of: resolve.PPPoE{Name: "ppp0"}, device: device}
		l, err := netlink.LinkByIndex(device.Index)
		if err != nil {
			t.Fatal(err)
		}
		advertised := &netlink.Addr{
			IPNet: &net.IPNet{IP: net.ParseIP("2001:db8::1"), Mask: net.CIDRMask(64, 128)}, Flags: unix.IFA_F_NODAD, ValidLft: 7200, PreferedLft: 3600,
		}
		if err := netlink.AddrAdd(l, advertised); err != nil {
			t.Fatal(err)
		}
		for _, ref := range []client.Ref{was, {ID: 2}} {
			const none = 1 << 30
			if err := s.up(&client.Event{Session: client.Session{Ref: ref, Interface: none}}); err == nil {
				t.Fatal("packets come in by an interface that is not there")
			}
			has, err := netlink.AddrList(l, netlink.FAMILY_V6)
			if err != nil {
				t.Fatal(err)
			}
			found := 0
			for i := range has {
				if !has[i].IP.Equal(advertised.IP) {
					continue
				}
				found++
				if got, want := has[i].Flags&unix.IFA_F_DEPRECATED != 0, ref != was; got != want {
					t.Errorf("session %d: deprecated is %v: %+v", ref.ID, got, has[i])
				}
			}
			if found != 1 {
				t.Errorf("session %d: %+v", ref.ID, has)
			}
		}
	})
}
