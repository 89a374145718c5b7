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

// frugal keeps memory low while loads of large texts run, and gives back what the last one leaves.
type frugal struct {
	mu    sync.Mutex
	loads int
	usual int // the collector's target at other times
}

// begin begins a load of a text with that many bytes. The caller calls the result when it ends.
func (f *frugal) begin(bytes int) (end func()) {
	if bytes <= smallText {
		return func() {}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.loads++; f.loads == 1 {
		f.usual = debug.SetGCPercent(loadGarbage)
	}
	return f.end
}

func (f *frugal) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.loads--; f.loads == 0 {
		debug.SetGCPercent(f.usual)
		go debug.FreeOSMemory() // nobody has to wait for it
	}
}
