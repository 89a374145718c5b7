package daemon

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"weir/internal/fw/rundir"
	"weir/internal/host/hostdb"
	"weir/internal/host/netif"
	"weir/internal/lab"
	"weir/internal/testenv"
	"weir/pf/resolve"
)

// inLab calls f on a thread in a namespace of its own, in the middle of a lab. The lab is
// removed with the test.
func inLab(t *testing.T, name string, f func()) {
	t.Helper()
	testenv.NeedRoot(t)
	name = fmt.Sprintf("%s-%d", name, os.Getpid())
	t.Cleanup(func() {
		if _, err := lab.Remove(name, lab.Topology{}); err != nil {
			t.Errorf("remove the lab: %v", err)
		}
	})
	l, err := lab.Up(t.Context(), lab.Options{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	path, err := netif.NamespacePath(l.Namespace(lab.FW))
	if err != nil {
		t.Fatal(err)
	}
	ns, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	runtime.LockOSThread() // never unlocked: the thread ends with the test
	if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
		t.Fatal(err)
	}
	f()
}

func readSysctl(t *testing.T, name string) string {
	t.Helper()
	value, err := netif.Sysctl(name)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func TestForwardingIsRestored(t *testing.T) {
	inLab(t, "wfound", func() {
		m, err := readMachine(slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		set := map[string]string{
			"net/ipv4/conf/lan0/forwarding": "1", // was on before weir
			"net/ipv4/conf/wan0/forwarding": "0",
			"net/ipv6/conf/lan0/accept_ra":  "0",
			"net/ipv6/conf/wan0/accept_ra":  "1", // accepts router advertisements
			"net/ipv6/conf/wan0/forwarding": "0",
			"net/ipv6/conf/all/forwarding":  "0",
		}
		for name, value := range set {
			if err := netif.SetSysctl(name, value); err != nil {
				t.Fatal(err)
			}
		}
		before := snapshot(t, m)
		f, err := readFound(filepath.Join(t.TempDir(), "found.json"))
		if err != nil {
			t.Fatal(err)
		}
		if err := f.forwardOn(m.links, m.links); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"net/ipv4/conf/lan0/forwarding", "net/ipv4/conf/wan0/forwarding", "net/ipv6/conf/wan0/forwarding"} {
			if readSysctl(t, name) != "1" {
				t.Errorf("%s is off after forwarding was switched on", name)
			}
		}
		if got := readSysctl(t, "net/ipv6/conf/wan0/accept_ra"); got != "2" {
			t.Errorf("accept_ra of an interface that took router advertisements is %s, want 2", got)
		}
		if got := readSysctl(t, "net/ipv6/conf/lan0/accept_ra"); got != "0" {
			t.Errorf("accept_ra of an interface that took none is %s, want 0", got)
		}
		// A second daemon finds the first one's values and must not record them.
		again, err := readFound(f.path)
		if err != nil {
			t.Fatal(err)
		}
		if err := again.forwardOn(m.links, m.links); err != nil {
			t.Fatal(err)
		}
		if err := again.restoreForwarding(namesOf(m.names())); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before, snapshot(t, m)); diff != "" {
			t.Errorf("what was given back (-found +given back):\n%s", diff)
		}
	})
}

// namesOf returns lists of names one after the other. The last one repeats.
func namesOf(lists ...map[int]string) func() (map[int]string, error) {
	return func() (map[int]string, error) {
		names := lists[0]
		if len(lists) > 1 {
			lists = lists[1:]
		}
		return names, nil
	}
}

// An interface that is renamed while its settings are restored is found by its new name.
func TestForwardingOfARenamedInterface(t *testing.T) {
	inLab(t, "renamed", func() {
		f := &Found{path: filepath.Join(t.TempDir(), "found.json")}
		m, err := readMachine(slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		if err := f.forwardOn(m.links, m.links); err != nil {
			t.Fatal(err)
		}
		stale := m.names()
		for index, name := range stale {
			stale[index] = name + "-old"
		}
		if err := f.restoreForwarding(namesOf(stale, m.names())); err != nil {
			t.Fatal(err)
		}
		if got := readSysctl(t, "net/ipv4/conf/lan0/forwarding"); got != "0" {
			t.Errorf("lan0 forwards: %s", got)
		}
	})
}

// snapshot reads every sysctl that weir may change.
func snapshot(t *testing.T, m *machine) map[string]string {
	t.Helper()
	all := map[string]string{all6: readSysctl(t, all6)}
	for _, l := range m.links {
		for _, format := range []string{forwarding4, forwarding6, acceptRA, force6} {
			name := sysctlPath(format, l.Name)
			if netif.HasSysctl(name) {
				all[name] = readSysctl(t, name)
			}
		}
	}
	return all
}

func TestForwardingIsRestoredBeforeInterfaces(t *testing.T) {
	inLab(t, "wall6", func() {
		m, err := readMachine(slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		if err := netif.SetSysctl("net/ipv6/conf/lan0/forwarding", "1"); err != nil {
			t.Fatal(err)
		}
		before := snapshot(t, m)
		f, err := readFound(filepath.Join(t.TempDir(), "found.json"))
		if err != nil {
			t.Fatal(err)
		}
		if err := f.forwardAll6(m.links); err != nil {
			t.Fatal(err)
		}
		if readSysctl(t, "net/ipv6/conf/wan0/forwarding") != "1" {
			t.Error("conf.all.forwarding did not reach wan0")
		}
		if err := f.restoreForwarding(namesOf(m.names())); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before, snapshot(t, m)); diff != "" {
			t.Errorf("what was given back (-found +given back):\n%s", diff)
		}
	})
}

func TestRecordsOfGoneInterfacesAreRemoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "found.json")
	f, err := readFound(path)
	if err != nil {
		t.Fatal(err)
	}
	f.Sysctls = []FoundSysctl{
		{Format: forwarding4, Index: 2, Value: "0"},
		{Format: forwarding4, Index: 3, Value: "1"},
		{Format: all6, Value: "0"},
	}
	f.Features = []FoundFeatures{{Index: 3, Features: netif.Features{"rx-vlan-hw-parse": true}}}
	if err := f.forget(map[int]string{2: "lan0"}); err != nil {
		t.Fatal(err)
	}
	again, err := readFound(path)
	if err != nil {
		t.Fatal(err)
	}
	want := []FoundSysctl{{Format: forwarding4, Index: 2, Value: "0"}, {Format: all6, Value: "0"}}
	if diff := cmp.Diff(want, again.Sysctls); diff != "" || len(again.Features) != 0 {
		t.Errorf("after lan1 went (-want +got):\n%s%v", diff, again.Features)
	}
}

func TestLadderUndoesInReverse(t *testing.T) {
	var order []int
	var l ladder
	failed := errors.New("failed")
	l.add(func() error { order = append(order, 1); return nil })
	l.add(func() error { order = append(order, 2); return failed })
	l.add(func() error { order = append(order, 3); return nil })
	if err := l.down(); !errors.Is(err, failed) {
		t.Errorf("down = %v, want it to hold the rung's error", err)
	}
	if diff := cmp.Diff([]int{3, 2, 1}, order); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

func TestReadSource(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	missing := filepath.Join(dir, "weir.conf")
	cfg := &Config{Folder: rundir.Folder(dir), File: missing, Optional: true, Management: 2222, Log: slog.New(slog.DiscardHandler)}
	b := &box{cfg: cfg, dir: filepath.Join(dir, "pins")}
	if _, err := b.readSource(); err == nil || !strings.Contains(err.Error(), "there is no "+missing+": write one") {
		t.Errorf("without a file, and nothing in force: %v", err)
	}
	cfg.OrBlock = true
	s, err := b.readSource()
	if err != nil || !s.Builtin || s.Path != "built-in" || s.Text != "set skip on lo\nblock\npass in proto tcp to self port 2222\n" {
		t.Errorf("without a file: %+v, %v; want the built-in rules", s, err)
	}
	cfg.Optional, cfg.OrBlock = false, false
	if _, err := b.readSource(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that was named and is missing: %v, want that it does not exist", err)
	}
	if err := os.WriteFile("a.conf", []byte("pass\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg.File = "a.conf"
	want := Source{Name: "a.conf", Path: filepath.Join(dir, "a.conf"), Text: "pass\n"}
	s, err = b.readSource()
	if s.hosts == nil {
		t.Error("its hosts are not looked up")
	}
	if s.hosts = nil; err != nil || !s.equal(&want) {
		t.Errorf("of a relative path: %+v, %v; want %+v", s, err, want)
	}
	cfg.NoDNS = true
	if s, err := b.readSource(); err != nil || !s.equal(&want) {
		t.Errorf("with -N: %+v, %v; want %+v", s, err, want)
	}
}

// Host names keep their recorded addresses when a ruleset's record is loaded again,
// whether the DNS answers or not.
func TestRecordRemembersHosts(t *testing.T) {
	dir := t.TempDir()
	b := &box{cfg: &Config{Folder: rundir.Folder(dir)}}
	if err := os.MkdirAll(b.cfg.Folder.Sources(), 0o700); err != nil {
		t.Fatal(err)
	}
	s := Source{Name: "a.conf", Text: "pass from db.example.invalid to www.example.invalid\n", hosts: hostdb.NewDNS()}
	s.hosts.Remember(map[string][]netip.Addr{
		"db.example.invalid": {netip.MustParseAddr("192.0.2.9")}, "www.example.invalid": {netip.MustParseAddr("192.0.2.7")},
	})
	if err := b.recordSource(&s, 7); err != nil {
		t.Fatal(err)
	}
	var record rundir.Source
	if err := rundir.ReadJSON(b.cfg.Folder.SourceOf(7), &record); err != nil {
		t.Fatal(err)
	}
	rules, err := restored(&record).compile(&machine{host: &resolve.Host{}})
	if err != nil {
		t.Fatal(err)
	}
	if want := "pass inet from 192.0.2.9 to 192.0.2.7 flags S/SA"; len(rules.texts) != 1 || rules.texts[0].Text != want {
		t.Errorf("%+v, want %s", rules.texts, want)
	}
}

// An entry that could not be written to disk is not kept in memory either: its setting
// must not be changed.
func TestSettingsAreRecordedFirst(t *testing.T) {
	inLab(t, "wnote", func() {
		const setting = "net/ipv4/conf/lan0/forwarding"
		was := readSysctl(t, setting)
		other := map[string]string{"0": "1", "1": "0"}[was]
		path := filepath.Join(t.TempDir(), "missing", "found.json")
		f, err := readFound(path)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := f.sysctl(forwarding4, 1, "lan0", other); err == nil {
				t.Fatal("a change is made that cannot be written down")
			}
		}
		if now := readSysctl(t, setting); now != was || !f.empty() {
			t.Errorf("%s is %s, was %s; remembered: %+v", setting, now, was, f)
		}
		if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := f.sysctl(forwarding4, 1, "lan0", other); err != nil {
			t.Fatal(err)
		}
		// A later start finds weir's own value.
		if f, err = readFound(path); err != nil {
			t.Fatal(err)
		}
		if err := f.sysctl(forwarding4, 1, "lan0", was); err != nil {
			t.Fatal(err)
		}
		want := []FoundSysctl{{Format: forwarding4, Index: 1, Value: was}}
		if diff := cmp.Diff(want, f.Sysctls); diff != "" {
			t.Errorf("the record (-want +got):\n%s", diff)
		}
	})
}
