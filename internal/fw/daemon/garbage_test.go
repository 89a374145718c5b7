package daemon

import (
	"runtime/metrics"
	"testing"
)

// The collector has its usual target again when all loads have ended, in whatever order they do.
func TestGarbage(t *testing.T) {
	sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	expect := func(when string, want uint64) {
		t.Helper()
		metrics.Read(sample)
		if got := sample[0].Value.Uint64(); got != want {
			t.Errorf("%s: the target is %d %%, not %d", when, got, want)
		}
	}
	metrics.Read(sample)
	usual := sample[0].Value.Uint64()
	var f frugal
	built := f.build(100)
	expect("while programs are loaded", buildGarbage)
	large := f.begin(smallText + 1)
	expect("beside a load of a large text", loadGarbage)
	built()
	expect("during that load", loadGarbage)
	second := f.build(100)
	expect("when programs are loaded again", loadGarbage)
	large()
	expect("after that load", buildGarbage)
	second()
	expect("after all", usual)
	f.build(smallText + 1)()
	f.begin(100)()
	expect("after others", usual)
	end := f.build(smallText + 1)
	expect("while programs are loaded for a large text", usual)
	end()
}
