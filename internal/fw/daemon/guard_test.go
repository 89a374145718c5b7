package daemon

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/testenv"
)

// A start that fails leaves the guard with the mask in use alone, and one whose nft fails
// does not replace the guard.
func TestGuardKeepsTheMaskInUse(t *testing.T) {
	testenv.NeedProgram(t, "nft")
	inLab(t, "guard", func() {
		const inUse, next = 0xff, 0xff00
		masks := func() []uint32 {
			masks, _, err := installedGuard()
			if err != nil {
				t.Fatal(err)
			}
			return masks
		}
		if got := masks(); got != nil {
			t.Fatalf("there is a guard with %x", got)
		}
		if err := raiseGuard([]uint32{inUse}); err != nil {
			t.Fatal(err)
		}
		b := &box{cfg: &Config{Log: slog.New(slog.DiscardHandler)}, found: &Found{path: filepath.Join(t.TempDir(), "found.json")}}
		var undo ladder
		if err := b.guard(&undo, next); err != nil || !slices.Equal(masks(), []uint32{inUse, next}) {
			t.Errorf("widened: %x, %v", masks(), err)
		}
		if err := undo.down(); err != nil || !slices.Equal(masks(), []uint32{inUse}) {
			t.Errorf("after a start that failed: %x, %v", masks(), err)
		}
		broken := t.TempDir()
		text := "#!/bin/sh\necho 'netlink: Error: cache initialization failed: Device or resource busy' >&2\nexit 1\n"
		testenv.WriteProgram(t, filepath.Join(broken, "nft"), []byte(text))
		path := os.Getenv("PATH")
		t.Setenv("PATH", broken+":"+path)
		if err := widenGuard(next); err == nil || errors.Is(err, errNoNft) {
			t.Errorf("nft fails: %v", err)
		}
		if err := lowerGuard(); err == nil {
			t.Error("the guard counts as lowered, and nft fails")
		}
		t.Setenv("PATH", path)
		if got := masks(); !slices.Equal(got, []uint32{inUse}) {
			t.Errorf("after nft failed: %x", got)
		}
	})
}

func TestForeignDrops(t *testing.T) {
	const list = `{"nftables": [
		{"metainfo": {"version": "1.0.6", "json_schema_version": 1}},
		{"chain": {"family": "inet", "table": "weir", "name": "forward", "handle": 1, "type": "filter", "hook": "forward", "prio": 0, "policy": "drop"}},
		{"chain": {"family": "ip", "table": "filter", "name": "FORWARD", "handle": 2, "type": "filter", "hook": "forward", "prio": 0, "policy": "drop"}},
		{"chain": {"family": "ip", "table": "filter", "name": "INPUT", "handle": 3, "type": "filter", "hook": "input", "prio": 0, "policy": "drop"}},
		{"chain": {"family": "ip", "table": "filter", "name": "DOCKER", "handle": 4}},
		{"chain": {"family": "ip6", "table": "filter", "name": "FORWARD", "handle": 5, "type": "filter", "hook": "forward", "prio": 0, "policy": "accept"}}]}`
	got, err := foreignDrops([]byte(list))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"nftables ip filter FORWARD"}, got); diff != "" {
		t.Errorf("foreign chains (-want +got):\n%s", diff)
	}
	if _, err := foreignDrops([]byte("no json")); err == nil {
		t.Error("no error for a list that is not JSON")
	}
}
