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

// Names that files of OpenBSD, FreeBSD and macOS use, and that Linux's /etc/services lacks.
func TestServicesOfBSD(t *testing.T) {
	for name, port := range map[string]uint16{
		"asip-webadmin": 311, "vslmp": 312, "apple-sasl": 3659, "xgrid": 4111, "webobjects": 1085, "wbem-http": 5988,
		"jabber-client": 5222, "jabber-server": 5269, "spamd": 8025, "afpovertcp": 548, "rwhois": 4321, "kpasswd": 464,
	} {
		if services[name] != port {
			t.Errorf("%s is port %d, want %d", name, services[name], port)
		}
	}
}
