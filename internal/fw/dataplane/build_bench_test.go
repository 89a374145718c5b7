package dataplane

import "testing"

// How long a load's generation takes to be built beside the running one: mostly the
// verifier.
func BenchmarkBuild(b *testing.B) {
	n := newNet(b)
	commit(b, build(b, n.config()), n.attachments(true))
	for b.Loop() {
		d, err := Build(n.config())
		check(b, err)
		check(b, d.Close())
	}
}
