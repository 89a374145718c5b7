package ppp

import (
	"net/netip"
	"testing"
)

// A peer that refuses the name server which it has just named means it: it is used, and not asked for again.
func TestNameServerRefusedTwice(t *testing.T) {
	terms := newIPCPTerms(V4{AskDNS: true})
	nak := []Option{{optionDNS1, []byte{192, 0, 2, 53}}, {optionDNS2, []byte{0, 0, 0, 0}}}
	for range 2 {
		terms.refused(ConfigureNak, nak)
	}
	if terms.ask != [2]bool{} || terms.dns[0] != netip.MustParseAddr("192.0.2.53") || !terms.dns[1].IsUnspecified() {
		t.Errorf("asks %v, has %v", terms.ask, terms.dns)
	}
	terms.refused(ConfigureReject, nak[:1]) // of what is not asked for
	if terms.dns[0] != netip.MustParseAddr("192.0.2.53") {
		t.Errorf("has %v", terms.dns)
	}
}
