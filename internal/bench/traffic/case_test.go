package traffic

import "testing"

// Small limits must not skip the default case.
func TestNeeded(t *testing.T) {
	if n := (Case{Flows: 1000}).Needed(); n > 65536 {
		t.Errorf("1,000 flows need %d connections, more than small machines hold", n)
	}
}
