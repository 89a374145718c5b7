package daemon

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"weir/internal/fw/pktrecord"
)

// readStream reads all records in a queue, and how many it lost.
func readStream(t *testing.T, q *queue) (records [][]byte, lost uint64) {
	t.Helper()
	q.end()
	var all bytes.Buffer
	for {
		part, err := q.Next(t.Context())
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		all.Write(part)
	}
	stream := pktrecord.NewStream(&all)
	for {
		raw, err := stream.Next()
		if errors.Is(err, io.EOF) {
			return records, stream.Lost()
		}
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, bytes.Clone(raw))
	}
}

// A reader that does not read loses the records that have no room, and is told how many.
// Another reader that reads loses none.
func TestSlowReader(t *testing.T) {
	slow, quick := newQueue(), newQueue()
	raw := bytes.Repeat([]byte{7}, 64<<10-1)
	const sent = 2 * queueRoom / (64 << 10)
	read := 0
	for range sent {
		for _, q := range []*queue{slow, quick} {
			q.add(raw)
		}
		part, err := quick.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		read += len(part) / len(raw)
	}
	if read != sent {
		t.Errorf("the reader that reads has %d of %d records", read, sent)
	}
	records, lost := readStream(t, slow)
	if len(records) < sent/2-1 || len(records) >= sent || lost != uint64(sent-len(records)) {
		t.Errorf("the slow reader has %d of %d records and is told of %d that it lost", len(records), sent, lost)
	}
	if _, lost := readStream(t, quick); lost != 0 {
		t.Errorf("the reader that reads is told of %d lost records", lost)
	}
}

// Losses are reported even if no record follows.
func TestLostAlone(t *testing.T) {
	q := newQueue()
	q.wake(3)
	if records, lost := readStream(t, q); len(records) != 0 || lost != 3 {
		t.Errorf("%d records, %d lost; want none and 3", len(records), lost)
	}
}

// Next waits until a record comes, or the reader goes.
func TestQueueWaits(t *testing.T) {
	q := newQueue()
	ctx, cancel := context.WithCancel(t.Context())
	got := make(chan error)
	go func() {
		_, err := q.Next(ctx)
		got <- err
		_, err = q.Next(ctx)
		got <- err
	}()
	q.add([]byte("packet"))
	q.wake(0)
	if err := <-got; err != nil {
		t.Errorf("Next with a record: %v", err)
	}
	cancel()
	if err := <-got; !errors.Is(err, context.Canceled) {
		t.Errorf("Next of a reader that is gone: %v", err)
	}
}
