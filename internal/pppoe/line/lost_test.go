package line_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"weir/internal/pppoe/line"
)

// lostHead is how many bytes of an entry of the ring stand in front of the frame's first bytes.
const lostHead = 24

// FuzzLost parses anything. What it takes is what the bytes say, and no more of the frame than there is.
func FuzzLost(f *testing.F) {
	entry := make([]byte, lostHead+256)
	binary.NativeEndian.PutUint64(entry, 77)
	binary.NativeEndian.PutUint32(entry[8:], 3)
	binary.NativeEndian.PutUint32(entry[12:], 1514)
	for _, captured := range []uint16{0, 60, 255, 256, 257, 0xffff} {
		binary.NativeEndian.PutUint16(entry[16:], captured)
		entry[18] = byte(line.LostOver)
		f.Add(bytes.Clone(entry))
	}
	f.Add(entry[:len(entry)-1])
	f.Add([]byte{})
	f.Add(append(bytes.Clone(entry), 1))
	f.Fuzz(func(t *testing.T, b []byte) {
		lost, err := line.ParseLost(b)
		whole := len(b) >= lostHead+256
		var captured int
		if whole {
			captured = int(binary.NativeEndian.Uint16(b[16:]))
		}
		if good := whole && captured <= 256; good != (err == nil) {
			t.Fatalf("%d bytes, %d of the frame: %v", len(b), captured, err)
		}
		if err != nil {
			return
		}
		if !bytes.Equal(lost.Data, b[lostHead:][:captured]) || lost.Time != binary.NativeEndian.Uint64(b) || uint32(lost.Ifindex) != binary.NativeEndian.Uint32(b[8:]) ||
			uint32(lost.Length) != binary.NativeEndian.Uint32(b[12:]) || lost.Why != line.Why(b[18]) {
			t.Errorf("%+v of % x", lost, b)
		}
	})
}
