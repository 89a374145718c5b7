package daemon

import (
	"strconv"
	"strings"
	"testing"

	"weir/internal/fw/dataplane"
	"weir/internal/fw/ruleset"
	"weir/pf/resolve"
)

// The language and the dataplane have the same limit on states. The language reports the
// place.
func TestMostStates(t *testing.T) {
	_, err := dataplane.Build(dataplane.Config{Options: ruleset.Options{MaxStates: resolve.MostStates + 1}})
	if err == nil || !strings.HasSuffix(err.Error(), " to "+strconv.Itoa(resolve.MostStates)) {
		t.Errorf("Build with one state more: %v", err)
	}
}
