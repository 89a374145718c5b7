package daemon

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/testenv"
)

// The guard accepts the marks that the programs set: both are one constant.
func TestMarksAreThoseOfConfigH(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(testenv.Root(t), "bpf", "config.h"))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]uint32{"MARK_MASK": markMask, "MARK_MAGIC": markMagic} {
		m := regexp.MustCompile(`#define ` + name + `\s+(0x[0-9a-f]+)u`).FindSubmatch(text)
		if m == nil || string(m[1]) != fmt.Sprintf("0x%08x", want) {
			t.Errorf("%s: bpf/config.h says %q, the guard 0x%08x", name, m, want)
		}
	}
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
