package daemon

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"weir/internal/fw/pktrecord"
)

// captured reads the next part of the stream that a reader is sent.
func captured(t *testing.T, r *captureReader) (records []string, lost uint64) {
	t.Helper()
	r.wake(0)
	part, err := r.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	stream := pktrecord.NewStream(bytes.NewReader(part))
	for {
		raw, err := stream.Next()
		if errors.Is(err, io.EOF) {
			return records, stream.Lost()
		}
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, string(raw))
	}
}

// A record goes to the readers that want it, even to one that joined since the set of
// readers was last read. A loss is reported once, and completely, even if no record
// follows it.
func TestCaptureIsDelivered(t *testing.T) {
	c := newCapturer(nil)
	var readers [2]*captureReader
	for i, number := range []int{0, 3} {
		readers[i] = &captureReader{queue: newQueue(), of: c, number: number}
		c.readers[number].Store(readers[i])
	}
	c.deliver([]byte("for both"), 1<<0|1<<3)
	c.deliver([]byte("for one, and one that is gone"), 1<<3|1<<5)
	if got, lost := captured(t, readers[0]); len(got) != 1 || got[0] != "for both" || lost != 0 {
		t.Errorf("the first reader has %q and lost %d", got, lost)
	}
	if got, lost := captured(t, readers[1]); len(got) != 2 || lost != 0 {
		t.Errorf("the second reader has %q and lost %d", got, lost)
	}
	readers[0].wake(5)
	if got, lost := captured(t, readers[0]); len(got) != 0 || lost != 5 {
		t.Errorf("after the ring was full the first reader has %q and lost %d, want 5", got, lost)
	}
	<-readers[0].arrived // reports the loss
	readers[0].wake(0)
	if len(readers[0].arrived) != 0 {
		t.Error("the reader is woken for what it has been told")
	}
	large := make([]byte, queueRoom)
	c.deliver([]byte("first"), 1<<0)
	c.deliver(large, 1<<0)
	if got, lost := captured(t, readers[0]); len(got) != 1 || lost != 6 {
		t.Errorf("a reader without room has %q and lost %d, want one record and 6", got, lost)
	}
}
