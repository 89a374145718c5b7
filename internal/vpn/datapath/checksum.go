package datapath

import (
	"encoding/binary"
	"math/bits"
)

// sum adds bytes to the sum that an Internet checksum is made of. Words are read in the order of memory,
// so fold returns what is to be written in that order.
func sum(b []byte, to uint64) uint64 {
	var carry uint64
	for len(b) >= 64 {
		to, carry = bits.Add64(to, binary.LittleEndian.Uint64(b), 0)
		to, carry = bits.Add64(to, binary.LittleEndian.Uint64(b[8:]), carry)
		to, carry = bits.Add64(to, binary.LittleEndian.Uint64(b[16:]), carry)
		to, carry = bits.Add64(to, binary.LittleEndian.Uint64(b[24:]), carry)
		to, carry = bits.Add64(to, binary.LittleEndian.Uint64(b[32:]), carry)
		to, carry = bits.Add64(to, binary.LittleEndian.Uint64(b[40:]), carry)
		to, carry = bits.Add64(to, binary.LittleEndian.Uint64(b[48:]), carry)
		to, carry = bits.Add64(to, binary.LittleEndian.Uint64(b[56:]), carry)
		to += carry
		b = b[64:]
	}
	for len(b) >= 8 {
		to, carry = bits.Add64(to, binary.LittleEndian.Uint64(b), 0)
		to += carry
		b = b[8:]
	}
	if len(b) > 0 {
		var rest [8]byte
		copy(rest[:], b)
		to, carry = bits.Add64(to, binary.LittleEndian.Uint64(rest[:]), 0)
		to += carry
	}
	return to
}

// fold returns a sum in 16 bits, not inverted.
func fold(s uint64) uint16 {
	s = s>>32 + s&0xffffffff
	s = s>>32 + s&0xffffffff
	s = s>>16 + s&0xffff
	s = s>>16 + s&0xffff
	return uint16(s)
}

// pseudo returns the sum of the header that TCP's and UDP's checksums have in front: of a packet's
// addresses, its protocol and the length of what follows its IP header.
func pseudo(packet []byte, protocol byte, length int) uint64 {
	var tail [8]byte
	tail[1] = protocol
	binary.BigEndian.PutUint32(tail[4:], uint32(length))
	addresses := packet[12:20]
	if packet[0]>>4 == 6 {
		addresses = packet[8:40]
	}
	return sum(tail[:], sum(addresses, 0))
}

// put writes a checksum: the inverted sum.
func put(to []byte, s uint64) { binary.LittleEndian.PutUint16(to, ^fold(s)) }
