package resolve

import (
	"crypto/md5"
	"crypto/rand"
	"encoding/hex"
	"strings"

	"weir/pf/ast"
)

// hashKeySize is the size of a key of source-hash, in bytes.
const hashKeySize = 16

// hashKey returns the key of a pool of type source-hash as 0x and 32 digits: what
// the file says in this form, the MD5 sum of any other text as in pf, and a
// random one if the file says nothing.
func (r *resolver) hashKey(p *ast.Pool) *ast.Word {
	var key [hashKeySize]byte
	if p.Key == nil {
		_, _ = rand.Read(key[:]) // never fails
		return &ast.Word{Span: p.Span, Text: "0x" + hex.EncodeToString(key[:])}
	}
	digits, isHex := strings.CutPrefix(p.Key.Text, "0x")
	if !isHex {
		key = md5.Sum([]byte(p.Key.Text))
	} else if n, err := hex.Decode(key[:], []byte(digits[:min(len(digits), 2*hashKeySize)])); err != nil || n != hashKeySize || len(digits) != 2*hashKeySize {
		r.faults.Errorf(p.Key.Span, "a key in hexadecimal digits is 0x and %d of them", 2*hashKeySize)
	}
	return &ast.Word{Span: p.Key.Span, Text: "0x" + hex.EncodeToString(key[:])}
}

// lowerKey reads a key that hashKey has written.
func lowerKey(w *ast.Word) (key [hashKeySize]byte) {
	if w != nil {
		_, _ = hex.Decode(key[:], []byte(strings.TrimPrefix(w.Text, "0x")))
	}
	return key
}
