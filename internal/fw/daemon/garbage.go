package daemon

import (
	"runtime/debug"
	"sync"
)

// loadGarbage is the garbage collector's target during a load, in per cent. What a rule
// file with a million addresses is read into has several hundred MiB.
const loadGarbage = 25

// frugal keeps memory low while loads run, and gives back what the last one leaves.
type frugal struct {
	mu    sync.Mutex
	loads int
	usual int // the collector's target at other times
}

// begin begins a load. The caller calls the result when it ends.
func (f *frugal) begin() (end func()) {
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
