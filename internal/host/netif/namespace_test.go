package netif_test

import (
	"os"
	"testing"

	"weir/internal/host/netif"
)

// A process that is in the namespace already does not restart.
func TestEnterOwnNamespace(t *testing.T) {
	if err := netif.Enter("/proc/self/ns/net"); err != nil {
		t.Fatal(err)
	}
	if os.Getenv("WEIR_ENTERED") != "" {
		t.Error("the test was restarted")
	}
}
