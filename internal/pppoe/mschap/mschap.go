// Package mschap computes what the two ends of MS-CHAPv2 say to each other (RFC 2759). It knows no
// packets.
package mschap

import (
	"crypto/des"
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"strings"
	"unicode/utf16"

	"golang.org/x/crypto/md4" //nolint:staticcheck // RFC 2759 knows no other
)

// Sizes in bytes.
const (
	ChallengeSize = 16
	ResponseSize  = 24
)

// Exchange is what both ends know once each has said its challenge.
type Exchange struct {
	Name                string // of who proves; a domain and a backslash in front do not count
	Authenticator, Peer [ChallengeSize]byte
}

// Response is what proves the password.
func (e *Exchange) Response(password string) [ResponseSize]byte {
	key, challenge := hash(password), e.challenge()
	var padded [21]byte
	copy(padded[:], key[:])
	var response [ResponseSize]byte
	for i := range 3 {
		encrypt(response[8*i:8*i+8], padded[7*i:7*i+7], challenge[:])
	}
	return response
}

// Success is what proves to the other end that this one knows the password, too, as it is said in the
// packet.
func (e *Exchange) Success(password string, response [ResponseSize]byte) string {
	key, challenge := hash(password), e.challenge()
	again := sum4(key[:])
	first := sum1(again[:], response[:], []byte("Magic server to client signing constant"))
	second := sum1(first[:], challenge[:], []byte("Pad to make it do more than one iteration"))
	return "S=" + strings.ToUpper(hex.EncodeToString(second[:]))
}

// challenge is that of both ends, for one name.
func (e *Exchange) challenge() [8]byte {
	name := e.Name[strings.LastIndexByte(e.Name, '\\')+1:]
	sum := sum1(e.Peer[:], e.Authenticator[:], []byte(name))
	return [8]byte(sum[:8])
}

// hash is the hash of a password by which Windows knows it.
func hash(password string) [16]byte {
	var text []byte
	for _, unit := range utf16.Encode([]rune(password)) {
		text = binary.LittleEndian.AppendUint16(text, unit)
	}
	return sum4(text)
}

func sum4(b []byte) (sum [16]byte) {
	h := md4.New()
	h.Write(b)
	h.Sum(sum[:0])
	return sum
}

func sum1(parts ...[]byte) (sum [sha1.Size]byte) {
	h := sha1.New()
	for _, b := range parts {
		h.Write(b)
	}
	h.Sum(sum[:0])
	return sum
}

// encrypt encrypts a block by a key of 56 bits, to which DES wants a bit of parity after each seven.
func encrypt(to, key, block []byte) {
	var bits [8]byte
	copy(bits[1:], key)
	all := binary.BigEndian.Uint64(bits[:])
	var wide [8]byte
	for i := range wide {
		wide[i] = byte(all>>(49-7*i)) << 1
	}
	c, err := des.NewCipher(wide[:])
	if err != nil {
		panic(err) // it has the right size
	}
	c.Encrypt(to, block)
}
