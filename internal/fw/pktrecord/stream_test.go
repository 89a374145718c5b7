package pktrecord

import (
	"bytes"
	"errors"
	"io"
	"testing"
)

func TestStream(t *testing.T) {
	var b []byte
	b = AppendLost(b, 0)
	b = AppendStream(b, []byte("one"))
	b = AppendStream(b, []byte("two"))
	b = AppendLost(b, 7)
	b = AppendStream(b, nil)
	s := NewStream(bytes.NewReader(b))
	for i, want := range []struct {
		text    string
		lost    uint64
		pending bool
	}{{"one", 0, true}, {"two", 0, true}, {"", 7, false}} {
		got, err := s.Next()
		if err != nil || string(got) != want.text || s.Lost() != want.lost || s.Pending() != want.pending {
			t.Errorf("record %d: %q, %v, %d lost, pending %v; want %+v", i, got, err, s.Lost(), s.Pending(), want)
		}
	}
	if _, err := s.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
}

// A truncated stream, or input that is none, causes an error and no record of wrong
// bytes.
func TestStreamCut(t *testing.T) {
	whole := AppendStream(AppendLost(nil, 3), []byte("record"))
	for n := range whole {
		s := NewStream(bytes.NewReader(whole[:n]))
		if got, err := s.Next(); err == nil {
			t.Errorf("%d of %d bytes are the record %q", n, len(whole), got)
		}
	}
	if _, err := NewStream(bytes.NewReader([]byte("<html><body>"))).Next(); !errors.Is(err, errStream) {
		t.Errorf("something else is read with error %v", err)
	}
}
