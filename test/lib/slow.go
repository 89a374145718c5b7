package lib

import (
	"os"
	"strconv"
	"time"
)

// Slow is the environment variable that says how many times slower a machine is: one that
// is emulated in software. It stretches every patience of a story, but not what a story
// asserts.
const Slow = "WEIR_TEST_SLOW"

// Scaled returns a patience for this machine.
func Scaled(patience time.Duration) time.Duration {
	text := os.Getenv(Slow)
	if text == "" {
		return patience
	}
	factor, err := strconv.Atoi(text)
	if err != nil || factor < 1 {
		panic(Slow + " has to be a whole number, 1 or more, and is " + text)
	}
	return time.Duration(factor) * patience
}

// emulated reports whether this is such a machine.
func emulated() bool { return os.Getenv(Slow) != "" }

// Fewer returns how often a story repeats a step: n times, or a third of it on an
// emulated machine, where each time takes long and adds little to what real ones show.
func Fewer(n int) int {
	if emulated() {
		return max(n/3, 1)
	}
	return n
}
