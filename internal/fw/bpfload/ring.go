package bpfload

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/cilium/ebpf/ringbuf"
)

// A Ring reads a ring buffer that programs write to. Use one reader at a time: each
// record is read once.
type Ring struct {
	reader *ringbuf.Reader
	record ringbuf.Record
}

// recordHead is the number of bytes before a record in the ring (BPF_RINGBUF_HDR_SZ).
const recordHead = 8

// OpenRing returns a reader of the ring buffer. The caller closes it. The map may be
// closed before.
func OpenRing(m *Map) (*Ring, error) {
	reader, err := ringbuf.NewReader(m)
	if err != nil {
		return nil, fmt.Errorf("read the ring %s: %w", m, err)
	}
	return &Ring{reader: reader}, nil
}

// Read calls each with every record in the ring. It waits for more for at most patience,
// or until a program wakes the reader. It returns after reading as many bytes as the ring
// holds, however fast programs write. So the caller gets its turn even during a flood.
// The bytes are valid until each returns. The error wraps os.ErrClosed after Close.
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

// Pending returns how many bytes of the ring are unread.
func (r *Ring) Pending() int { return r.reader.AvailableBytes() }

// Close ends the reader, and a waiting Read.
func (r *Ring) Close() error { return r.reader.Close() }
