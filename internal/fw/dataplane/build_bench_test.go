package dataplane

import "testing"

// How long it takes to build a generation beside the running one. Most of it is the
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
