package lib

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"

	"weir/internal/host/netif"
	"weir/internal/lab"
	"weir/internal/testenv"
)

// Binary is the weir that stories run, built by Main.
type Binary string

// Main builds weir, runs the tests of a package with it and returns their exit status. If
// WEIR_BINARY names a weir, it uses that one: an emulated machine has no time for
// building.
func Main(m *testing.M, binary *Binary) int {
	manyAtOnce()
	if path := os.Getenv("WEIR_BINARY"); path != "" {
		*binary = Binary(path)
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "weir-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "make a folder for the binary:", err)
		return 1
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "weir")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", path, "weir/cmd/weir")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "build weir:", err)
		return 1
	}
	*binary = Binary(path)
	return m.Run()
}

// manyAtOnce runs more stories side by side than there are cores, unless the command line
// sets the number: they wait for timers more than they compute. A slow machine keeps its
// default.
func manyAtOnce() {
	if !emulated() {
		flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0))) //nolint:errcheck // it exists, and takes a number
	}
}

// stories numbers the labs of this process, so that their names are unique.
var stories atomic.Uint32

// A Box is the lab of one story: lan - fw - wan, with weir in the middle.
type Box struct {
	*lab.Lab
	testing.TB
	Hook string // xdp or tcx
	weir Binary
	dir  string
	at   string // the host that weir runs in; "": fw
}

var bothHooks = []string{"tcx", "xdp"}

// InTurn tells a story twice, first under one hook, then under the other, with nothing beside it. It is for floods
// that may not lose a packet to a busy machine, and for stories that look at the whole machine. Each has a new lab.
func (w Binary) InTurn(t *testing.T, story func(b *Box)) {
	for _, hook := range bothHooks {
		t.Run(hook, func(t *testing.T) { story(w.Box(t, hook)) })
	}
}

// Both is InTurn for stories that need little of the machine, but that at once: the two run side by side, and
// nothing else beside them.
func (w Binary) Both(t *testing.T, story func(b *Box)) {
	for _, hook := range bothHooks {
		t.Run(hook, func(t *testing.T) {
			t.Parallel()
			story(w.Box(t, hook))
		})
	}
}

// BothAtOnce is Both for all other stories, which mostly wait. The two run side by side,
// and beside those of other tests.
func (w Binary) BothAtOnce(t *testing.T, story func(b *Box)) {
	w.AtOnce(t, bothHooks, story)
}

// UnderTCX tells a story once: of what the daemon and the commands do by themselves, or of what
// rules mean. Both hooks evaluate rules by the same code, and the tests of the dataplane give
// packets to each. TCX starts faster.
func (w Binary) UnderTCX(t *testing.T, story func(b *Box)) {
	w.AtOnce(t, []string{"tcx"}, story)
}

// AtOnce is BothAtOnce for some hooks.
func (w Binary) AtOnce(t *testing.T, hooks []string, story func(b *Box)) {
	t.Parallel()
	for _, hook := range hooks {
		t.Run(hook, func(t *testing.T) {
			t.Parallel()
			story(w.Box(t, hook))
		})
	}
}

// Box builds a lab for one hook: offloads are on for tcx and off for xdp.
func (w Binary) Box(t testing.TB, hook string) *Box {
	t.Helper()
	return w.build(t, hook, lab.Topology{})
}

func (w Binary) build(t testing.TB, hook string, topology lab.Topology) *Box {
	t.Helper()
	return w.buildOf(t, hook, lab.Options{Topology: topology})
}

// buildOf is build with options. The name and the offloads are its own.
func (w Binary) buildOf(t testing.TB, hook string, o lab.Options) *Box {
	t.Helper()
	testenv.NeedRoot(t)
	o.Name = fmt.Sprintf("wt%d-%d", os.Getpid(), stories.Add(1))
	if hook == "xdp" {
		o.Offloads = lab.OffloadsOff
	}
	t.Cleanup(func() {
		if _, err := lab.Remove(o.Name, o.Topology); err != nil {
			t.Errorf("remove the lab: %v", err)
		}
	})
	l, err := lab.Up(t.Context(), o)
	if err != nil {
		t.Fatalf("build the lab: %v", err)
	}
	b := &Box{Lab: l, TB: t, Hook: hook, weir: w, dir: t.TempDir()}
	// weir first: its pins and run folder would outlive the namespace.
	t.Cleanup(func() {
		if t.Failed() {
			b.Dump()
		}
		b.stopWeir()
	})
	return b
}

// Tell tells a part of a story in the same lab, as a test of its own.
func (b *Box) Tell(name string, part func(b *Box)) {
	b.Helper()
	t, ok := b.TB.(*testing.T)
	if !ok {
		b.Fatal("only a test tells parts")
	}
	t.Run(name, func(t *testing.T) {
		copied := *b
		copied.TB = t
		part(&copied)
	})
}

// At returns the same lab, with another weir in one of its hosts.
func (b *Box) At(host string) *Box {
	b.Helper()
	copied := *b
	copied.at = host
	b.Cleanup(copied.stopWeir)
	return &copied
}

// host returns that of weir.
func (b *Box) host() string {
	if b.at != "" {
		return b.at
	}
	return lab.FW
}

// namespace returns that of weir.
func (b *Box) namespace() string { return b.Namespace(b.host()) }

// stopWeir ends what the story left running, unless its lab is gone.
func (b *Box) stopWeir() {
	if _, err := netif.NamespacePath(b.namespace()); err != nil {
		return
	}
	folder, err := b.folderIn(b.host())
	if err == nil { // weir vpn run has ended, and its folder would stay until a weir starts
		err = folder.RemoveVPN()
	}
	if err != nil {
		b.Errorf("remove the folder of weir vpn run: %v", err)
	}
	out, err := exec.Command(string(b.weir), "--netns", b.namespace(), "stop").CombinedOutput()
	if err != nil && !notRunning(out) {
		b.Errorf("weir stop at the end: %v: %s", err, out)
	}
}
