package pktrecord

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// The daemon sends captured packets as a stream of records. Each record has its size in
// four bytes, little-endian, then the bytes from the ring. A size of streamLost is
// followed by eight bytes and a record. The eight bytes say how many records were lost so
// far because the ring or the reader was full. The reader turns numbers into names, so
// that a packet costs the daemon only two copies.

const (
	streamLost = 0xffffffff
	streamMax  = 1 << 16 // most bytes of a record
)

// errStream is the error for input that is no such stream.
var errStream = errors.New("read the stream of packets: it is not one of this version")

// AppendStream appends a record's bytes to the stream.
func AppendStream(to, raw []byte) []byte {
	return append(binary.LittleEndian.AppendUint32(to, uint32(len(raw))), raw...)
}

// AppendLost appends how many records were lost so far.
func AppendLost(to []byte, lost uint64) []byte {
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint32(to, streamLost), lost)
}

// A Stream reads what AppendStream and AppendLost wrote.
type Stream struct {
	r    *bufio.Reader
	raw  []byte
	lost uint64
}

// NewStream reads from r.
func NewStream(r io.Reader) *Stream {
	return &Stream{r: bufio.NewReaderSize(r, streamMax), raw: make([]byte, streamMax)}
}

// Next returns the bytes of the next record. They are valid until the next call. The
// error is io.EOF if the stream ends between two records.
func (s *Stream) Next() ([]byte, error) {
	for {
		var head [8]byte
		if _, err := io.ReadFull(s.r, head[:4]); err != nil {
			return nil, err
		}
		size := binary.LittleEndian.Uint32(head[:])
		switch {
		case size == streamLost:
			if _, err := io.ReadFull(s.r, head[:]); err != nil {
				return nil, err
			}
			s.lost = binary.LittleEndian.Uint64(head[:])
		case size > streamMax:
			return nil, errStream
		default:
			if _, err := io.ReadFull(s.r, s.raw[:size]); err != nil {
				return nil, fmt.Errorf("read the stream of packets: %w", err)
			}
			return s.raw[:size], nil
		}
	}
}

// Lost returns how many records were lost, according to the stream so far.
func (s *Stream) Lost() uint64 { return s.lost }

// Pending reports whether more of the stream is already there.
func (s *Stream) Pending() bool { return s.r.Buffered() > 0 }
