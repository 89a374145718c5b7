package daemon

import (
	"net/netip"
	"testing"
	"time"
)

// The states are looked through only when an address is gone that no other interface has.
func TestPPPoEEndStates(t *testing.T) {
	for _, test := range []struct {
		name, gone, has string
		looks           bool
	}{
		{name: "none before", has: "240.0.0.1"},
		{name: "the same", gone: "240.0.0.1", has: "240.0.0.1"},
		{name: "another interface has it", gone: "127.0.0.1", has: "240.0.0.1"},
		{name: "none now", gone: "240.0.0.2"},
		{name: "another one", gone: "240.0.0.2", has: "240.0.0.1", looks: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := &box{}
			s := &dial{dialler: &dialler{box: b}}
			if test.gone != "" {
				s.gone = []netip.Addr{netip.MustParseAddr(test.gone)}
			}
			var has netip.Addr
			if test.has != "" {
				has = netip.MustParseAddr(test.has)
			}
			b.mu.Lock() // who looks through the states waits for it
			done := make(chan struct{})
			go func() {
				defer close(done)
				s.endStates(has)
			}()
			looks := false
			select {
			case <-done:
			case <-time.After(500 * time.Millisecond):
				looks = true
			}
			b.mu.Unlock()
			<-done
			if looks != test.looks {
				t.Errorf("looks through the states: %v, want %v", looks, test.looks)
			}
			if kept := len(s.gone) > 0; kept == has.IsValid() {
				t.Errorf("%v is kept for the next session", s.gone)
			}
		})
	}
}
