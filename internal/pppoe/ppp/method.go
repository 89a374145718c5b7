package ppp

import (
	"crypto/md5"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
)

// Method is a way to prove who one is.
type Method uint8

// The methods. Only by PAP does the peer learn the secret itself.
const (
	ByPAP  Method = 1
	ByCHAP Method = 2 // with MD5
	// ByMSCHAPv2 is CHAP as Windows has it (RFC 2759). The other end proves that it knows the password,
	// too.
	ByMSCHAPv2 Method = 3
)

// Numbers of CHAP's algorithms (RFC 1994 3, RFC 2759 3).
const (
	algorithmMD5      = 5
	algorithmMSCHAPv2 = 0x81
)

// isCHAP says whether the method's packets are CHAP's.
func (m Method) isCHAP() bool { return m == ByCHAP || m == ByMSCHAPv2 }

// String returns the method's name.
func (m Method) String() string {
	switch m {
	case ByPAP:
		return "PAP"
	case ByCHAP:
		return "CHAP-MD5"
	case ByMSCHAPv2:
		return "MS-CHAPv2"
	}
	return "no authentication"
}

// option is the method as the data of the LCP option.
func (m Method) option() []byte {
	if m == ByPAP {
		return binary.BigEndian.AppendUint16(nil, uint16(PAP))
	}
	algorithm := byte(algorithmMD5)
	if m == ByMSCHAPv2 {
		algorithm = algorithmMSCHAPv2
	}
	return append(binary.BigEndian.AppendUint16(nil, uint16(CHAP)), algorithm)
}

// parseMethod reads the data of the LCP option; 0: a method that is not known.
func parseMethod(b []byte) Method {
	switch {
	case len(b) == 2 && Protocol(binary.BigEndian.Uint16(b)) == PAP:
		return ByPAP
	case len(b) == 3 && Protocol(binary.BigEndian.Uint16(b)) == CHAP && b[2] == algorithmMD5:
		return ByCHAP
	case len(b) == 3 && Protocol(binary.BigEndian.Uint16(b)) == CHAP && b[2] == algorithmMSCHAPv2:
		return ByMSCHAPv2
	}
	return 0
}

// describeMethod names the method of an LCP option, also one that is not known.
func describeMethod(b []byte) string {
	if m := parseMethod(b); m != 0 || len(b) == 0 {
		return m.String()
	}
	return fmt.Sprintf("an unknown way to prove the password (0x%x)", b[:min(len(b), 8)])
}

// listed names methods in a row.
func listed(methods []Method) string {
	names := make([]string, len(methods))
	for i, m := range methods {
		names[i] = m.String()
	}
	return strings.Join(names, ", ")
}

func has(methods []Method, m Method) bool { return m != 0 && slices.Contains(methods, m) }

// Secret is a password. However it is printed, marshalled or logged, it does not show.
type Secret struct{ text string }

// NewSecret keeps a password.
func NewSecret(text string) Secret { return Secret{text} }

const hidden = "[secret]"

// String hides the password.
func (Secret) String() string { return hidden }

// GoString hides the password from %#v.
func (Secret) GoString() string { return hidden }

// Format hides the password from every verb.
func (Secret) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, hidden) }

// MarshalText hides the password from JSON and the like.
func (Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// LogValue hides the password from logs.
func (Secret) LogValue() slog.Value { return slog.StringValue(hidden) }

// chapMD5 is the answer to a challenge (RFC 1994 4.1).
func (s Secret) chapMD5(id uint8, challenge []byte) []byte {
	hash := md5.New()
	hash.Write([]byte{id})
	_, _ = io.WriteString(hash, s.text)
	hash.Write(challenge)
	return hash.Sum(nil)
}

// Prove is who this end is, for a peer that asks.
type Prove struct {
	Name    string   // at most 255 bytes
	Secret  Secret   // at most 255 bytes
	Methods []Method // in the order of liking; none: CHAP, MS-CHAPv2, then PAP
}

func (p Prove) methods() []Method {
	if p.Name == "" && p.Secret == (Secret{}) {
		return nil
	}
	if len(p.Methods) == 0 {
		return []Method{ByCHAP, ByMSCHAPv2, ByPAP}
	}
	return p.Methods
}

// Ask is how a concentrator has its clients prove who they are.
type Ask struct {
	Methods []Method // the first is asked for, the others are agreed to; none: nobody has to
	Name    string   // of the concentrator, as CHAP says it
	// Secret returns the secret of a name.
	Secret func(name string) (Secret, bool)
}
