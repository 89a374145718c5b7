package netif

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// Pieces splits what the kernel's messages of routes hold one after the other: attributes, or the ways of a route. Each begins with its length in
// two bytes and has a header of that size at least. What follows a damaged one is left out. The pieces are slices of b.
func Pieces(b []byte, header int) (all [][]byte) {
	for len(b) >= header {
		length := int(binary.NativeEndian.Uint16(b))
		if length < header || length > len(b) {
			break
		}
		all = append(all, b[:length:length])
		b = b[min(Aligned(length), len(b)):]
	}
	return all
}

// Aligned is where the next piece begins after one of that length.
func Aligned(length int) int { return (length + unix.RTA_ALIGNTO - 1) &^ (unix.RTA_ALIGNTO - 1) }
