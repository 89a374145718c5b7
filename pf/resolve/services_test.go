package resolve

import "testing"

// TestServiceNames finds ports with several names and no printed name, whose name would
// change from run to run.
func TestServiceNames(t *testing.T) {
	count := make(map[uint16]int)
	for _, port := range services {
		count[port]++
	}
	for port, n := range count {
		if n > 1 && services[namesOfPorts[port]] != port {
			t.Errorf("port %d has %d names", port, n)
		}
	}
	for port, name := range udpNames {
		if services[name] != port {
			t.Errorf("%s is not port %d", name, port)
		}
	}
}
