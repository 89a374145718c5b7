package collect

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/host/doctor"
)

// asPrinted returns a session's number as the kernel prints it.
func asPrinted(session uint16) string {
	return fmt.Sprintf("%08X", binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, session)))
}

// TestSessions checks that a recorded tree of a PPPoE box tells which session runs over
// which interface: from the only device, or from pppd's options.
func TestSessions(t *testing.T) {
	const head = "Id       Address              Device\n"
	line := func(session uint16, device string) string {
		return fmt.Sprintf("%s 02:00:00:00:00:01 %8s\n", asPrinted(session), device)
	}
	pppd := func(args string) string { return "/usr/sbin/pppd\x00" + args + "\x00" }
	type place struct {
		Parent  string
		Session int
	}
	for name, c := range map[string]struct {
		files map[string]string
		want  map[string]place
	}{
		"one device": {
			files: map[string]string{"proc/net/pppoe": head + line(0x1234, "wan0.7")},
			want:  map[string]place{"ppp0": {"wan0.7", 0x1234}},
		},
		"two sessions on one device": {
			files: map[string]string{"proc/net/pppoe": head + line(1, "wan0") + line(2, "wan0")},
			want:  map[string]place{"ppp0": {"wan0", 0}, "ppp1": {"wan0", 0}},
		},
		"the command line, the peer's file, and a link's name": {
			files: map[string]string{
				"proc/net/pppoe": head + line(1, "wan0") + line(2, "wan1") + line(3, "wan2.7"),
				"run/ppp0.pid":   "100\n", "proc/100/cmdline": pppd("plugin\x00rp-pppoe.so\x00nic-wan0\x00user\x00me"),
				"run/pppd/ppp1.pid": "101\n", "proc/101/cmdline": pppd("call\x00isp"), "etc/ppp/peers/isp": "# wan0 was it once\nplugin pppoe.so\nwan1\nuser \"wan\"\n",
				"run/ppp-backup.pid": "102\nppp2\n", "proc/102/cmdline": pppd("plugin\x00rp-pppoe.so\x00wan2.7"),
			},
			want: map[string]place{"ppp0": {"wan0", 1}, "ppp1": {"wan1", 2}, "ppp2": {"wan2.7", 3}},
		},
		"told of none, of two, another program, an old file": {
			files: map[string]string{
				"proc/net/pppoe": head + line(1, "wan0") + line(2, "wan1"),
				"run/ppp0.pid":   "100\n", "proc/100/cmdline": pppd("call\x00../../secret"), "etc/secret": "wan0\n",
				"run/ppp1.pid": "101\n", "proc/101/cmdline": pppd("wan0\x00nic-wan1"),
				"run/ppp2.pid": "102\n", "proc/102/cmdline": "vi\x00wan0\x00",
				"run/ppp3.pid": "103\n",
			},
			want: map[string]place{"ppp0": {}, "ppp1": {}, "ppp2": {}, "ppp3": {}},
		},
		"none": {files: map[string]string{"proc/net/pppoe": head}, want: map[string]place{"ppp0": {}}},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for file, text := range c.files {
				path := filepath.Join(root, file)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			r := &reader{proc: filepath.Join(root, "proc"), root: root, snapshot: &doctor.Snapshot{Unreadable: map[string]string{}}}
			for i := range len(c.want) {
				r.snapshot.Interfaces = append(r.snapshot.Interfaces, doctor.Interface{Name: fmt.Sprintf("ppp%d", i), Kind: "ppp"})
			}
			r.snapshot.Interfaces = append(r.snapshot.Interfaces, doctor.Interface{Name: "wan0", Kind: "physical"})
			r.placeSessions()
			got := map[string]place{}
			for _, n := range r.snapshot.Interfaces {
				p := place{Parent: n.Parent}
				if n.PPPoE != nil {
					p.Session = n.PPPoE.Session
				}
				if n.Kind == "ppp" {
					got[n.Name] = p
				} else if p != (place{}) {
					t.Errorf("%s: %+v", n.Name, p)
				}
				if why := r.snapshot.Unreadable["interfaces."+n.Name+".parent"]; n.Kind == "ppp" && (why == "") != (p.Parent != "") {
					t.Errorf("%s runs over %q: %q", n.Name, p.Parent, why)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
