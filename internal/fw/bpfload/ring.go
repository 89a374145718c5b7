package bpfload

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/cilium/ebpf/ringbuf"
)

// A Ring reads a ring buffer that programs write into. One reader at a time: what
// it has read, no other sees.
type Ring struct {
	reader *ringbuf.Reader
	record ringbuf.Record
}

// recordHead are the bytes in front of a record in the ring (BPF_RINGBUF_HDR_SZ).
const recordHead = 8

// OpenRing returns a reader of the ring buffer. The caller closes it; the map may
// be closed before.
func OpenRing(m *Map) (*Ring, error) {
	reader, err := ringbuf.NewReader(m)
	if err != nil {
		return nil, fmt.Errorf("read the ring %s: %w", m, err)
	}
	return &Ring{reader: reader}, nil
}

// Read calls each with every record that is in the ring and waits for more for at
// most patience, or until a program wakes the reader. It ends after as many bytes
// as the ring holds, however fast programs write: what the caller does between two
// calls it does during a flood too. The bytes are good until each returns. The
// error wraps os.ErrClosed after Close.
func (r *Ring) Read(patience time.Duration, each func([]byte)) error {
	r.reader.SetDeadline(time.Now().Add(patience))
	for left := r.reader.BufferSize(); left > 0; left -= len(r.record.RawSample) + recordHead {
		err := r.reader.ReadInto(&r.record)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read a ring: %w", err)
		}
		each(r.record.RawSample)
	}
	return nil
}

// Pending is how many bytes of the ring are unread.
func (r *Ring) Pending() int { return r.reader.AvailableBytes() }

// Close ends the reader, and a Read that waits.
func (r *Ring) Close() error { return r.reader.Close() }
