package doctor

import (
	"fmt"
	"strings"
	"testing"
)

// A bundle's number of queues that no card has makes it unreadable: it is not believed.
func TestBundleQueues(t *testing.T) {
	for count, ok := range map[string]bool{"-4": false, "1000000000000": false, "65536": true} {
		text := fmt.Sprintf(`{"format": "weir-doctor-bundle", "version": 1, "interfaces": [{"name": "eth0", "kind": "physical", "up": true, "rx_queues": %s}]}`, count)
		if _, err := Read(strings.NewReader(text)); (err == nil) != ok {
			t.Errorf("%s queues: %v", count, err)
		}
	}
}
