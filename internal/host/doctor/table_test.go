package doctor

import (
	"slices"
	"testing"
)

// TestConntrackClashes checks that packets dropped by connection tracking for a clash are
// a loss, even with room in its table.
func TestConntrackClashes(t *testing.T) {
	for failed, want := range map[uint64]string{5: "", 20: "notice", 400: "warning"} {
		b := newBox(2)
		b.card("eth0", "igc", 2500, 2, 2)
		b.traffic("eth0", 500, 50000, 50000)
		b.s.After.Conntrack.InsertFailed += failed
		r, err := Examine(b.s, nil)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.Check == "CT-1" })
		got := ""
		if i >= 0 {
			got = r.Findings[i].Severity.String()
		}
		if got != want {
			t.Errorf("%d: %q, want %q", failed, got, want)
		}
	}
}

// TestShortLists checks that lists of a few entries explain no full cores: their cost is
// small beside the rest.
func TestShortLists(t *testing.T) {
	for _, c := range []struct {
		entries int
		first   string
	}{{5 * 65536, "CPU-2"}, {longLists*65536 - 1, "CPU-2"}, {longLists * 65536, "CT-1"}} {
		b := forwarding(4, 97)
		b.s.Sysctls["net.netfilter.nf_conntrack_max"], b.s.Sysctls["net.netfilter.nf_conntrack_buckets"] = "4194304", "65536"
		b.s.After.Conntrack = &Conntrack{Count: c.entries}
		r, err := Examine(b.s, nil)
		if err != nil {
			t.Fatal(err)
		}
		if r.Verdict.Check != c.first {
			t.Errorf("%d entries: %s; want %s: %s", c.entries, r.Verdict.Check, c.first, r.Verdict.Sentence)
		}
	}
}
