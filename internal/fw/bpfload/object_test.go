package bpfload

import (
	"runtime"
	"testing"
)

// While others need the machine, half of the cores load programs, and at least one does.
func TestAtOnce(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for cores, half := range map[int]int{1: 1, 2: 1, 3: 2, 4: 2, 8: 4} {
		runtime.GOMAXPROCS(cores)
		if n := new(Objects).atOnce(); n != cores {
			t.Errorf("%d cores load %d programs at a time", cores, n)
		}
		if n := (&Objects{aside: true}).atOnce(); n != half {
			t.Errorf("half of %d cores load %d programs at a time", cores, n)
		}
	}
}
