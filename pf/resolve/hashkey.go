package resolve

import (
	"crypto/hmac"
	"crypto/md5"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"weir/pf/ast"
)

// hashKeySize is the size of a key of source-hash, in bytes.
const hashKeySize = 16

// hashKey returns the key of a source-hash pool as 0x and 32 digits: the key in the file,
// the MD5 sum of any other text as in pf, or a random key if the file has none. If the
// host has a secret, such a key is made from it and the pool's text: rules that are read
// again for the same load stay the same.
func (r *resolver) hashKey(p *ast.Pool) *ast.Word {
	var key [hashKeySize]byte
	if p.Key == nil {
		_, _ = rand.Read(key[:]) // never fails
		if r.host.Secret != nil {
			sum := hmac.New(sha256.New, r.host.Secret)
			sum.Write([]byte(r.faults.Files.Text(p.Span)))
			copy(key[:], sum.Sum(nil))
		}
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

// lowerKey reads a key written by hashKey.
func lowerKey(w *ast.Word) (key [hashKeySize]byte) {
	if w != nil {
		_, _ = hex.Decode(key[:], []byte(strings.TrimPrefix(w.Text, "0x")))
	}
	return key
}
