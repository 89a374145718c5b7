package daemon

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

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
