package doctor

import (
	"fmt"
	"strings"
	"testing"
)

// TestBundleQueues checks that a bundle with an impossible number of queues is refused.
func TestBundleQueues(t *testing.T) {
	for count, ok := range map[string]bool{"-4": false, "1000000000000": false, "65536": true} {
		text := fmt.Sprintf(`{"format": "weir-doctor-bundle", "version": 1, "interfaces": [{"name": "eth0", "kind": "physical", "up": true, "rx_queues": %s}]}`, count)
		if _, err := Read(strings.NewReader(text)); (err == nil) != ok {
			t.Errorf("%s queues: %v", count, err)
		}
	}
}
