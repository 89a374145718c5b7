package tune_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/host/tune"
	"weir/internal/host/tune/db"
	"weir/internal/host/undolog"
)

// recorded is a host as a tree: a gateway with 8 GB and a 10 Gbit/s card, which has
// exhausted its budget and dropped packets for a full backlog.
var recorded = map[string]string{
	"proc/meminfo":                                   "MemTotal:        8000000 kB\nMemFree:         1000000 kB\n",
	"proc/cpuinfo":                                   "processor : 0\nphysical id : 0\ncore id : 0\n\nprocessor : 1\nphysical id : 0\ncore id : 1\n\nprocessor : 2\nphysical id : 0\ncore id : 0\n\nprocessor : 3\nphysical id : 1\ncore id : 0\n",
	"proc/net/softnet_stat":                          "000f4240 00000007 0000000c 0 0 0 0 0 0 0 0 0 00000000 0 0\n000f4240 00000000 00000001 0 0 0 0 0 0 0 0 0 00000001 0 0\n",
	"proc/net/arp":                                   "IP address  HW type  Flags  HW address  Mask  Device\n192.0.2.1 0x1 0x2 02:00:00:00:00:01 * eth0\n",
	"proc/sys/net/core/netdev_budget":                "300\n",
	"proc/sys/net/core/netdev_max_backlog":           "1000\n",
	"proc/sys/net/core/rmem_max":                     "212992\n",
	"proc/sys/net/core/wmem_max":                     "212992\n",
	"proc/sys/net/core/somaxconn":                    "4096\n",
	"proc/sys/net/ipv4/ip_early_demux":               "1\n",
	"proc/sys/net/ipv4/neigh/default/gc_thresh1":     "128\n",
	"proc/sys/net/ipv4/neigh/default/gc_thresh2":     "512\n",
	"proc/sys/net/ipv4/neigh/default/gc_thresh3":     "1024\n",
	"proc/sys/net/ipv4/tcp_rmem":                     "4096\t131072\t6291456\n",
	"proc/sys/net/ipv4/tcp_wmem":                     "4096\t16384\t4194304\n",
	"proc/sys/net/ipv4/tcp_window_scaling":           "1\n",
	"proc/sys/net/ipv4/tcp_sack":                     "1\n",
	"proc/sys/net/ipv4/tcp_moderate_rcvbuf":          "1\n",
	"proc/sys/net/ipv4/tcp_mtu_probing":              "0\n",
	"proc/sys/net/ipv4/tcp_no_metrics_save":          "0\n",
	"proc/sys/net/ipv4/tcp_slow_start_after_idle":    "1\n",
	"proc/sys/net/ipv4/conf/all/accept_redirects":    "1\n",
	"proc/sys/net/ipv4/conf/all/accept_source_route": "0\n",
	"sys/class/net/eth0/speed":                       "1000\n",
	"sys/class/net/eth0/device/vendor":               "0x8086\n",
	"sys/class/net/eth1/speed":                       "10000\n",
	"sys/class/net/eth1/device/vendor":               "0x8086\n",
	"sys/class/net/br0/speed":                        "40000\n",
	"etc/sysctl.conf":                                "# nothing\n",
}

// tree writes files, and returns a function that reads them all back.
func tree(t *testing.T, more map[string]string) (*tune.Host, func() map[string]string) {
	t.Helper()
	root := t.TempDir()
	for _, files := range []map[string]string{recorded, more} {
		for name, text := range files {
			path := filepath.Join(root, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	return &tune.Host{Root: root}, func() map[string]string {
		all := map[string]string{}
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			name, _ := filepath.Rel(root, path)
			if d.Type()&fs.ModeSymlink != 0 {
				all[name], err = os.Readlink(path)
				return err
			}
			text, err := os.ReadFile(path)
			all[name] = string(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
}

var load = sync.OnceValues(db.Load)

func records(t *testing.T) *db.DB {
	t.Helper()
	d, err := load()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func plan(t *testing.T, h *tune.Host, in tune.Inputs, keys ...string) *tune.Plan {
	t.Helper()
	p, err := h.Plan(records(t), in, keys...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// changes returns a plan's changes as key=value.
func changes(p *tune.Plan) []string {
	var all []string
	for _, c := range p.Changes {
		all = append(all, c.Key+"="+c.To)
	}
	slices.Sort(all)
	return all
}

// why returns the reason why a plan leaves a key alone, "" if it does not.
func why(p *tune.Plan, key string) string {
	for _, s := range p.Skips {
		if s.Key == key {
			return s.Why
		}
	}
	return ""
}

func TestPlanForwarder(t *testing.T) {
	h, _ := tree(t, nil)
	p := plan(t, h, tune.Inputs{Role: db.Forwarder})
	want := []string{"net.core.netdev_budget=1625", "net.core.netdev_max_backlog=8333"}
	if diff := cmp.Diff(want, changes(p)); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	if p.Inputs.Link != 10_000_000_000 || p.Inputs.Memory != 8_000_000*1024 {
		t.Errorf("the host tells %+v", p.Inputs)
	}
	for key, says := range map[string]string{
		"net.ipv4.ip_early_demux":            "a measurement proved no effect of 0 (+2.8 %",
		"net.netfilter.nf_conntrack_max":     "this kernel does not have it",
		"net.ipv4.neigh.default.gc_thresh3":  "there are 1 neighbours, and room for 128",
		"net.core.rmem_max":                  "",
		"net.ipv4.tcp_slow_start_after_idle": "",
	} {
		if got := why(p, key); !strings.Contains(got, says) || (says == "") != (got == "") {
			t.Errorf("%s: %q, want %q", key, got, says)
		}
	}
	var b strings.Builder
	if err := p.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"net.core.netdev_budget: 300 -> 1625\n",
		"  figure    frames of 1500 bytes in 2 ms at 10 Gbit/s, from 300 to 4096 = 1625\n",
		"  evidence  C (vendor or standard): the kernel's Documentation/admin-guide/sysctl/net.rst\n",
	} {
		if !strings.Contains(b.String(), line) {
			t.Errorf("the plan lacks %q:\n%s", line, b.String())
		}
	}
}

// TestArithmetic checks that the arithmetic shows the figures that the inputs allow.
func TestArithmetic(t *testing.T) {
	h, _ := tree(t, nil)
	p := plan(t, h, tune.Inputs{
		Role: db.Forwarder, Link: 10_000_000_000, RTT: 80 * time.Millisecond, MTU: 1500, PPPoE: true, Ports: 2, Burst: 250, Accepted: 128,
	})
	want := []tune.Arithmetic{
		{Name: "bdp", Value: 100_000_000, Shown: "10 Gbit/s x 80ms / 8 = 100000000 bytes"},
		{Name: "socket-buffer", Value: 200_003_584, Shown: "2 x 10 Gbit/s x 80ms / 8 = 200003584 bytes (190.7 MiB); window scale 12: 65535 x 2^12 = 268431360"},
		{Name: "mss", Value: 1452, Shown: "1500 - 8 (PPPoE) - 40 = 1452; with timestamps 1440 of 1514 bytes in a frame are data, 95.11 %"},
		{Name: "initial-window", Value: 45, Shown: "65535 / 1452 = 45 segments"},
		{Name: "queues", Value: 2, Shown: "3 cores / 2 ports, at least 2, at most the cores = 2"},
		{Name: "ifqmaxlen", Value: 42808, Shown: "max(256 x 2 ports, 42808.22 packets of 1460 bytes in 50 ms at 10 Gbit/s) = 42808"},
		{Name: "backlog", Value: 512, Shown: "250 arrive - 128 accepted = 122 short; 4 x that, up to a power of two = 512"},
		{Name: "budget", Value: 1625, Shown: "frames of 1500 bytes in 2 ms at 10 Gbit/s, from 300 to 4096 = 1625"},
		{Name: "netdev-backlog", Value: 8333, Shown: "packets of 1500 bytes in 10 ms at 10 Gbit/s, at least 1000 = 8333"},
		{Name: "conntrack", Value: 262144, Shown: "7.6 GiB / 16 KiB, a power of two from 65536 to 1048576 = 262144"},
	}
	if diff := cmp.Diff(want, p.Arithmetic); diff != "" {
		t.Errorf("arithmetic (-want +got):\n%s", diff)
	}
	bare := &tune.Host{Root: t.TempDir()}
	if p := plan(t, bare, tune.Inputs{Role: db.Forwarder}); len(p.Arithmetic) > 0 {
		t.Errorf("of nothing: %+v", p.Arithmetic)
	}
}

// TestPlanNoNeed checks that a setting without need, judged by its counter, is left
// alone, and is made if named.
func TestPlanNoNeed(t *testing.T) {
	h, _ := tree(t, map[string]string{
		"proc/net/softnet_stat":                         "000f4240 00000000 00000000 0 0 0 0 0 0 0 0 0 0 0 0\n",
		"proc/sys/net/netfilter/nf_conntrack_count":     "17\n",
		"proc/sys/net/netfilter/nf_conntrack_max":       "65536\n",
		"proc/sys/net/ipv4/icmp_echo_ignore_broadcasts": "1\n",
	})
	p := plan(t, h, tune.Inputs{Role: db.Forwarder})
	if got := changes(p); len(got) > 0 {
		t.Errorf("changes: %q", got)
	}
	for key, says := range map[string]string{
		"net.core.netdev_budget":         "no core has exhausted its budget",
		"net.core.netdev_max_backlog":    "no packet was dropped because of a full backlog",
		"net.netfilter.nf_conntrack_max": "the kernel tracks 17 connections of 65536; to set it anyway: weir tune apply net.netfilter.nf_conntrack_max",
	} {
		if got := why(p, key); !strings.Contains(got, says) {
			t.Errorf("%s: %q, want %q", key, got, says)
		}
	}
	p = plan(t, h, tune.Inputs{Role: db.Forwarder}, "net.netfilter.nf_conntrack_max", "net.ipv4.tcp_slow_start_after_idle")
	want := []string{"net.ipv4.tcp_slow_start_after_idle=0", "net.netfilter.nf_conntrack_max=262144"}
	if diff := cmp.Diff(want, changes(p)); diff != "" {
		t.Errorf("by name (-want +got):\n%s", diff)
	}
	if _, err := h.Plan(records(t), tune.Inputs{}, "net.inet.ip.redirect"); err == nil || !strings.Contains(err.Error(), "does not set net.inet.ip.redirect on Linux") {
		t.Errorf("a key of another system: %v", err)
	}
}

func TestPlanEndpoint(t *testing.T) {
	h, _ := tree(t, nil)
	p := plan(t, h, tune.Inputs{Role: db.Endpoint, RTT: 80 * time.Millisecond, Burst: 4000, Accepted: 1000})
	want := []string{
		"net.core.rmem_max=200003584", "net.core.somaxconn=16384", "net.core.wmem_max=200003584",
		"net.ipv4.tcp_mtu_probing=1", "net.ipv4.tcp_rmem=4096 131072 200003584", "net.ipv4.tcp_wmem=4096 16384 200003584",
	}
	if diff := cmp.Diff(want, changes(p)); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	if got := why(p, "net.ipv4.tcp_no_metrics_save"); !strings.Contains(got, "only a guide recommends 1; to try it: weir tune apply net.ipv4.tcp_no_metrics_save") {
		t.Errorf("folklore: %q", got)
	}
	for _, c := range p.Changes {
		if c.Key == "net.ipv4.tcp_rmem" && c.Figure != "2 x 10 Gbit/s x 80ms / 8 = 200003584 bytes (190.7 MiB); window scale 12: 65535 x 2^12 = 268431360" {
			t.Errorf("figure: %s", c.Figure)
		}
	}
	p = plan(t, h, tune.Inputs{Role: db.Endpoint})
	if got := why(p, "net.core.rmem_max"); got != "not known: --rtt" {
		t.Errorf("without a round-trip time: %q", got)
	}
	// A larger value is not lowered.
	p = plan(t, h, tune.Inputs{Role: db.Endpoint, Link: 1_000_000, RTT: time.Millisecond})
	if got := changes(p); !slices.Equal(got, []string{"net.ipv4.tcp_mtu_probing=1"}) {
		t.Errorf("on a slow line: %q", got)
	}
}

// TestAdministrator checks that a key that the administrator sets is left alone, in each
// place and form.
func TestAdministrator(t *testing.T) {
	for _, c := range []struct{ file, text, key, at string }{
		{"etc/sysctl.conf", "net.core.netdev_budget = 500\n", "net.core.netdev_budget", "/etc/sysctl.conf:1"},
		{"etc/sysctl.d/10-mine.conf", "# mine\n\nnet/core/netdev_budget=500\n", "net.core.netdev_budget", "/etc/sysctl.d/10-mine.conf:3"},
		{"run/sysctl.d/x.conf", "-net.core.netdev_budget=500\n", "net.core.netdev_budget", "/run/sysctl.d/x.conf:1"},
		{"usr/local/lib/sysctl.d/x.conf", "net.ipv4.ip_early_*=1\n", "net.ipv4.ip_early_demux", "/usr/local/lib/sysctl.d/x.conf:1"},
		{"etc/sysctl.d/x.conf", "-net.ipv4.ip_early_demux\n", "net.ipv4.ip_early_demux", "/etc/sysctl.d/x.conf:1"},
		{"etc/sysctl.d/x.conf", "; net.ipv4.ip_early_demux=1\n", "net.ipv4.ip_early_demux", ""},
		{"usr/lib/sysctl.d/50-default.conf", "net.ipv4.ip_early_demux=1\n", "net.ipv4.ip_early_demux", ""},
		{"etc/sysctl.d/x.txt", "net.ipv4.ip_early_demux=1\n", "net.ipv4.ip_early_demux", ""},
	} {
		h, _ := tree(t, map[string]string{c.file: c.text})
		got := why(plan(t, h, tune.Inputs{Role: db.Forwarder}, c.key), c.key)
		want := ""
		if c.at != "" {
			want = "the administrator sets it in " + c.at
		}
		if got != want {
			t.Errorf("%s with %q: %q, want %q", c.file, c.text, got, want)
		}
	}
}

// apply makes and applies a plan.
func apply(t *testing.T, h *tune.Host, in tune.Inputs, keys ...string) *tune.Plan {
	t.Helper()
	p := plan(t, h, in, keys...)
	if err := h.Apply(p); err != nil {
		t.Fatal(err)
	}
	return p
}

func status(t *testing.T, h *tune.Host) *tune.Status {
	t.Helper()
	s, err := h.Status()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestApplyRevert checks that applying a second time changes nothing, and that revert
// restores the tree byte for byte, including its directories.
func TestApplyRevert(t *testing.T) {
	h, files := tree(t, map[string]string{"proc/sys/net/ipv4/ip_early_demux": "1"}) // without a final newline
	before := files()
	apply(t, h, tune.Inputs{Role: db.Forwarder})
	apply(t, h, tune.Inputs{Role: db.Forwarder}, "net.ipv4.ip_early_demux")
	after := files()
	if got := after["proc/sys/net/core/netdev_budget"]; got != "1625\n" {
		t.Errorf("netdev_budget is %q", got)
	}
	if got := after["etc/sysctl.d/90-weir-tune.conf"]; !strings.Contains(got, "\n-net.core.netdev_budget = 1625\n") {
		t.Errorf("for the boot: %q", got)
	}
	if p := apply(t, h, tune.Inputs{Role: db.Forwarder}); len(p.Changes) > 0 {
		t.Errorf("a second time: %q", changes(p))
	}
	if diff := cmp.Diff(after, files()); diff != "" {
		t.Errorf("a second time (-before +after):\n%s", diff)
	}
	apply(t, h, tune.Inputs{Role: db.Endpoint, RTT: 100 * time.Millisecond})
	apply(t, h, tune.Inputs{Role: db.Endpoint, RTT: 200 * time.Millisecond})
	s := status(t, h)
	if s.Drift != 0 || s.CutOff || s.Confirm != nil || len(s.Keys) != 8 {
		t.Errorf("status: %+v", s)
	}
	restored, err := h.Revert(false)
	if err != nil || len(restored) != 8 {
		t.Errorf("revert: %+v, %v", restored, err)
	}
	if diff := cmp.Diff(before, files()); diff != "" {
		t.Errorf("reverted (-before +after):\n%s", diff)
	}
	for _, folder := range []string{"var", "etc/sysctl.d", "etc/systemd"} {
		if _, err := os.Stat(filepath.Join(h.Root, folder)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s, which was not there: %v", folder, err)
		}
	}
	if restored, err := h.Revert(false); err != nil || len(restored) != 0 {
		t.Errorf("a second revert: %+v, %v", restored, err)
	}
}

// TestApplyFails checks that a value that cannot be written undoes the whole transaction.
func TestApplyFails(t *testing.T) {
	h, files := tree(t, nil)
	apply(t, h, tune.Inputs{}, "net.ipv4.tcp_mtu_probing")
	before := files()
	p := plan(t, h, tune.Inputs{Role: db.Forwarder})
	p.Changes = append(p.Changes, tune.Change{Key: "net.ipv4.not_there", From: "1", To: "2"})
	err := h.Apply(p)
	if err == nil || !strings.Contains(err.Error(), `set net.ipv4.not_there to "2": no such file or directory`) {
		t.Errorf("apply: %v", err)
	}
	if diff := cmp.Diff(before, files()); diff != "" {
		t.Errorf("afterwards (-before +after):\n%s", diff)
	}
	if s := status(t, h); s.CutOff || len(s.Keys) != 1 {
		t.Errorf("status: %+v", s)
	}
}

// TestCutOff checks that nothing is built on an interrupted transaction, and that revert
// puts all of it back.
func TestCutOff(t *testing.T) {
	h, files := tree(t, nil)
	before := files()
	journal := filepath.Join(h.Root, "var/lib/weir/tune.json")
	if err := os.MkdirAll(filepath.Dir(journal), 0o700); err != nil {
		t.Fatal(err)
	}
	const text = `{"entries": [{"key": "net.core.netdev_budget", "before": "300", "set": "1625"},
		{"key": "net.ipv4.ip_early_demux", "before": "1", "set": "0"}, {"key": "net.x.gone", "before": "1", "set": "2"}],
		"changing": ["net.core.netdev_budget", "net.ipv4.ip_early_demux", "net.x.gone"]}`
	if err := os.WriteFile(journal, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(h.Root, "proc/sys/net/core/netdev_budget"), []byte("1625\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if s := status(t, h); !s.CutOff {
		t.Errorf("status: %+v", s)
	}
	if err := h.Apply(plan(t, h, tune.Inputs{Role: db.Forwarder})); err == nil || !strings.Contains(err.Error(), "was interrupted: weir tune revert") {
		t.Errorf("apply: %v", err)
	}
	if _, err := h.Revert(false); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, files()); diff != "" {
		t.Errorf("reverted (-before +after):\n%s", diff)
	}
}

// TestApplyCannotKeep checks that, if the boot file cannot be written, nothing stays in
// force and the earlier transaction remains.
func TestApplyCannotKeep(t *testing.T) {
	h, files := tree(t, nil)
	apply(t, h, tune.Inputs{}, "net.ipv4.tcp_mtu_probing")
	folder := filepath.Join(h.Root, "etc/sysctl.d")
	saved := filepath.Join(h.Root, "etc/saved")
	if err := os.Rename(folder, saved); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(folder, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := h.Apply(plan(t, h, tune.Inputs{Role: db.Forwarder})); err == nil || !strings.Contains(err.Error(), "keep values for the next boot") {
		t.Errorf("apply: %v", err)
	}
	now := files()
	for key, want := range map[string]string{
		"proc/sys/net/core/netdev_budget":      "300\n",
		"proc/sys/net/ipv4/ip_early_demux":     "1\n",
		"proc/sys/net/ipv4/tcp_mtu_probing":    "1\n",
		"etc/saved/90-weir-tune.conf":          now["etc/saved/90-weir-tune.conf"],
		"proc/sys/net/core/somaxconn":          "4096\n",
		"proc/sys/net/ipv4/tcp_window_scaling": "1\n",
	} {
		if now[key] != want {
			t.Errorf("%s is %q, want %q", key, now[key], want)
		}
	}
}

// TestDrift checks that later changes by hand are shown as drift and left alone. What
// somebody writes into a file is his, and leaves the journal.
func TestDrift(t *testing.T) {
	h, files := tree(t, nil)
	apply(t, h, tune.Inputs{Role: db.Forwarder})
	set := func(name, text string) {
		t.Helper()
		path := filepath.Join(h.Root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	set("proc/sys/net/core/netdev_budget", "999\n")
	s := status(t, h)
	if s.Drift != 1 {
		t.Errorf("status: %+v", s)
	}
	var b strings.Builder
	if err := s.WriteText(&b); err != nil || !strings.Contains(b.String(), "net.core.netdev_budget = 1625 (was 300): somebody has set it to 999\n") {
		t.Errorf("status: %v\n%s", err, b.String())
	}
	p := apply(t, h, tune.Inputs{Role: db.Forwarder})
	if got := why(p, "net.core.netdev_budget"); !strings.Contains(got, "weir set it to 1625, and somebody has since set it to 999") || len(p.Changes) > 0 {
		t.Errorf("drift: %q, %q", got, changes(p))
	}
	set("etc/sysctl.d/50-mine.conf", "net.core.netdev_budget=999\n")
	apply(t, h, tune.Inputs{Role: db.Forwarder})
	if s := status(t, h); s.Drift != 0 || len(s.Keys) != 1 {
		t.Errorf("his by file: %+v", s)
	}
	if got := files()["etc/sysctl.d/90-weir-tune.conf"]; strings.Contains(got, "netdev_budget") {
		t.Errorf("for the boot: %q", got)
	}
	set("proc/sys/net/ipv4/ip_early_demux", "1\n")
	if _, err := h.Revert(false); err != nil {
		t.Fatal(err)
	}
	if got := files()["proc/sys/net/core/netdev_budget"]; got != "999\n" {
		t.Errorf("his own: %q", got)
	}
}

// TestTry checks that a trial is put back unless it is confirmed. Until then nothing is
// kept for the boot, and no second trial begins.
func TestTry(t *testing.T) {
	h, files := tree(t, nil)
	before := files()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	p := plan(t, h, tune.Inputs{Role: db.Forwarder})
	go func() { done <- h.Try(ctx, p, time.Hour) }()
	waitFor(t, func() bool { return status(t, h).Confirm != nil && status(t, h).Drift == 0 })
	if _, kept := files()["etc/sysctl.d/90-weir-tune.conf"]; kept {
		t.Error("a trial is kept for the boot")
	}
	again := plan(t, h, tune.Inputs{}, "net.ipv4.tcp_mtu_probing")
	waitFor(t, func() bool {
		err := h.Apply(again)
		return err != nil && strings.Contains(err.Error(), "is not confirmed yet")
	})
	cancel()
	if err := <-done; !errors.Is(err, undolog.ErrUnconfirmed) {
		t.Errorf("cut off: %v", err)
	}
	if diff := cmp.Diff(before, files()); diff != "" {
		t.Errorf("not confirmed (-before +after):\n%s", diff)
	}
	if err := h.Try(t.Context(), p, 0); !errors.Is(err, undolog.ErrUnconfirmed) {
		t.Errorf("no time at all: %v", err)
	}
	if _, err := h.Confirm(); err == nil || err.Error() != "nothing waits to be confirmed" {
		t.Errorf("confirm: %v", err)
	}
	go func() { done <- h.Try(t.Context(), p, time.Hour) }()
	waitFor(t, func() bool {
		if status(t, h).Confirm == nil {
			return false
		}
		kept, err := h.Confirm()
		return err == nil && len(kept) > 0
	})
	if err := <-done; err != nil {
		t.Errorf("confirmed: %v", err)
	}
	if _, kept := files()["etc/sysctl.d/90-weir-tune.conf"]; !kept {
		t.Error("a confirmed trial is not kept for the boot")
	}
}

// waitFor waits until a condition holds.
func waitFor(t *testing.T, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not come")
		}
	}
}

func TestParse(t *testing.T) {
	for text, want := range map[string]uint64{"10G": 1e10, "2.5Gbit": 25e8, "100M": 1e8, "64k": 64000, "1500": 1500, "1Gbit/s": 1e9} {
		if got, err := tune.ParseRate(text); err != nil || got != want {
			t.Errorf("%s = %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "G", "-1M", "0", "10", "10T", "1e300G", "NaN"} {
		if got, err := tune.ParseRate(text); err == nil {
			t.Errorf("%q = %d", text, got)
		}
	}
	if got, err := tune.ParseSize("8G"); err != nil || got != 8<<30 {
		t.Errorf("8G = %d, %v", got, err)
	}
	if got, err := tune.ParseSize("8589934592"); err != nil || got != 8<<30 {
		t.Errorf("8589934592 = %d, %v", got, err)
	}
	for _, text := range []string{"", "0", "x", "-1G", "1.5G", "4194305G", "18446744073709551616"} {
		if got, err := tune.ParseSize(text); err == nil {
			t.Errorf("%q = %d", text, got)
		}
	}
}

// TestRestless checks that a card that wants another number of queues after each change
// of queues is left as it was.
func TestRestless(t *testing.T) {
	h, files := tree(t, gateway())
	before := files()
	p := plan(t, h, tune.Inputs{}, "nic.eth0.queues")
	rounds := 0
	p.PlanAgain(func() (*tune.Plan, error) {
		rounds++
		next := *p
		next.Changes = []tune.Change{{Key: "nic.eth0.queues", From: "combined 2", To: fmt.Sprintf("combined %d", 1+rounds%2)}}
		return &next, nil
	})
	if err := h.Apply(p); err == nil || !strings.Contains(err.Error(), "after the queues changed, the plan wants another number again: nic.eth0.queues") || rounds > 10 {
		t.Errorf("%d rounds: %v", rounds, err)
	}
	if diff := cmp.Diff(before, files()); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
}

// TestUnknownLines checks that keys set by a file that the kernel does not have are
// reported with their line. Lines that ignore errors, and keys that a module or an
// interface may bring, are not reported.
func TestUnknownLines(t *testing.T) {
	h, _ := tree(t, map[string]string{
		"etc/sysctl.d/60-router.conf": "# copied\nnet.ipv4.tcp_sack = 1\nnet.ipv4.tcp_low_latency = 1\n-net.ipv4.tcp_fack = 1\n" +
			"net.netfilter.nf_conntrack_max = 9\nnet.ipv4.conf.eth9.rp_filter = 2\nnet/ipv4/conf/*/accept_redirects = 0\nnet.ipv4.conf.*.medium = 1\n" +
			"net/ipv4/conf/wan0.7/forwarding = 1\n",
		"etc/sysctl.conf":                          "net.ipv4.icmp_echo = 1\n",
		"usr/lib/sysctl.d/50-default.conf":         "net.ipv4.nobody_asked = 1\n",
		"proc/sys/net/ipv4/conf/wan0.7/forwarding": "0\n",
		"etc/sysctl.d/90-weir-tune.conf":           "net.ipv4.old_weir = 1\n",
		"proc/sys/net/core/netdev_budget":          "300\n",
	})
	got, err := h.UnknownLines()
	want := []tune.Line{
		{At: "/etc/sysctl.d/60-router.conf:3", Key: "net.ipv4.tcp_low_latency"},
		{At: "/etc/sysctl.d/60-router.conf:8", Key: "net.ipv4.conf.*.medium"},
		{At: "/etc/sysctl.conf:1", Key: "net.ipv4.icmp_echo"},
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
}
