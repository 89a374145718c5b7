package dataplane

import "testing"

// How long a generation takes to be built beside the running one: mostly the verifier.
func BenchmarkBuild(b *testing.B) {
	n := newNet(b)
	for b.Loop() {
		check(b, build(b, n.config()).Close())
	}
}
