package rundir

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"weir/pf/resolve"
)

// Each entry has the time of the last change that put it there, however many are put at
// once, and also after the record was written and read.
func TestTimes(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 0))
	want := make(map[netip.Prefix]uint32)
	times := NewTimes(1)
	for now := uint32(1); now < 200; now += random.Uint32N(2) {
		count := len(want)
		var put []resolve.TableEntry
		for range random.IntN(60) {
			p := netip.MustParsePrefix(fmt.Sprintf("10.0.0.%d/32", random.IntN(200)))
			put = append(put, resolve.TableEntry{Prefix: p})
			want[p] = now
		}
		var now2 []resolve.TableEntry
		for p := range want {
			now2 = append(now2, resolve.TableEntry{Prefix: p})
		}
		times.Put(put, now, count, slices.Values(now2))
		if random.IntN(8) == 0 {
			for p := range want {
				delete(want, p)
				times.Remove([]netip.Prefix{p})
				if random.IntN(20) == 0 {
					break
				}
			}
		}
		read := rewritten(t, times, want)
		for p, at := range want {
			if got := times.Of(p); got != at {
				t.Fatalf("at %d, %s is of %d, want %d", now, p, got, at)
			}
			if got := read.Of(p); got != at {
				t.Fatalf("at %d, the record says that %s is of %d, want %d", now, p, got, at)
			}
		}
	}
}

// rewritten writes a record and reads the times in it.
func rewritten(t *testing.T, times *Times, entries map[netip.Prefix]uint32) *Times {
	t.Helper()
	folder := t.TempDir()
	var table Table
	for p := range entries {
		table.Entries = append(table.Entries, resolve.TableEntry{Prefix: p})
	}
	table.Times = times
	if _, err := WriteTable(folder, "t", &table); err != nil {
		t.Fatal(err)
	}
	all, err := ReadTables(folder, failing)
	if err != nil {
		t.Fatal(err)
	}
	return all["t"].Times
}
