package collect

import (
	"net"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/testenv"
)

// TestWatch checks that the kernel accepts the programs. They count received packets by
// core and interface during the span, nothing after its end, and report their own cost.
func TestWatch(t *testing.T) {
	testenv.NeedRoot(t)
	w, err := openWatch()
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := w.close(); err != nil {
			t.Error(err)
		}
	}()
	const packets = 200
	send := func() { // over lo, whose packets pass through the backlog
		c, err := net.Dial("udp", "127.0.0.1:9")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for range packets {
			_, _ = c.Write([]byte("x")) // nobody listens, so some writes return an error
		}
	}
	send()
	before, err := w.read(nil)
	if err != nil || len(before.Cores) != 0 || before.Runs != 0 {
		t.Errorf("before the start: %+v, %v", before, err)
	}
	const span = 500 * time.Millisecond
	if err := w.start(span); err != nil {
		t.Fatal(err)
	}
	send()
	time.Sleep(span)
	got, err := w.read(map[int]string{1: "lo"})
	if err != nil {
		t.Fatal(err)
	}
	var received uint64
	var spent float64
	for id, c := range got.Cores {
		received += c.Received["backlog"].Packets
		spent += c.Softirqs["NET_RX"]
		var all float64
		for _, seconds := range c.Softirqs {
			all += seconds
		}
		if all > span.Seconds() {
			t.Errorf("core %d spent %g s of %v in softirqs", id, all, span)
		}
	}
	if received < packets || spent <= 0 || got.Runs == 0 || got.OwnSeconds <= 0 || got.Seconds != span.Seconds() {
		t.Errorf("%d packets, %g s: %+v", received, spent, got)
	}
	send()
	again, err := w.read(map[int]string{1: "lo"})
	if diff := cmp.Diff(got, again); err != nil || diff != "" {
		t.Errorf("behind the end: %v\n%s", err, diff)
	}
}
