package daemon

import (
	"runtime/debug"
	"sync"
)

// loadGarbage is the garbage collector's target during a load of a large text, in per cent. What
// a rule file with a million addresses is read into has several hundred MiB.
const loadGarbage = 25

// smallText is how long a text is at most for whose load memory does not matter: about 10,000 rules.
// Collecting as often as for a large one takes longer than reading it.
const smallText = 1 << 20

// buildGarbage is the target while programs are loaded for a small text. Reading and preparing them
// makes 60 MiB of garbage within a second. At the usual target the collector takes a tenth of that
// second's computing, because little is in use yet.
const buildGarbage = 400

// frugal keeps memory low while loads of large texts run, and gives back what the last one leaves. It
// lets garbage lie while programs are loaded for small ones.
type frugal struct {
	mu     sync.Mutex
	loads  int // of large texts
	builds int // for small texts
	usual  int // the collector's target at other times
}

// begin begins a load of a text with that many bytes. The caller calls the result when it ends.
func (f *frugal) begin(bytes int) (end func()) {
	if bytes <= smallText {
		return func() {}
	}
	f.count(1, 0)
	return func() {
		if f.count(-1, 0) == 0 {
			go debug.FreeOSMemory() // nobody has to wait for it
		}
	}
}

// build is begin for the loading of programs.
func (f *frugal) build(bytes int) (end func()) {
	if bytes > smallText {
		return func() {}
	}
	f.count(0, 1)
	return func() { f.count(0, -1) }
}

// count counts what begins or ends, sets the collector's target and returns how many loads run.
func (f *frugal) count(loads, builds int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	idle := f.loads == 0 && f.builds == 0
	f.loads, f.builds = f.loads+loads, f.builds+builds
	target := f.usual
	switch {
	case f.loads > 0:
		target = loadGarbage
	case f.builds > 0:
		target = buildGarbage
	}
	if before := debug.SetGCPercent(target); idle {
		f.usual = before
	}
	return f.loads
}
