package ppp

import (
	"bytes"
	"testing"
)

// What is written for others has no password, whoever has said it.
func TestRedact(t *testing.T) {
	const secret = "tuesday-4711-horse"
	request := Packet{Code: papRequest, ID: 1, Data: appendField(appendField(nil, []byte("me")), []byte(secret))}
	response := Packet{Code: chapResponse, ID: 2, Data: append(appendField(nil, []byte(secret)), "me"...)}
	for name, test := range map[string]struct{ from, want []byte }{
		"PAP":              {frame(PAP, request), frame(PAP, Packet{Code: papRequest, ID: 1, Data: appendField(appendField(nil, []byte("me")), []byte("[secret]"))})},
		"PAP, rejected":    {frame(LCP, Packet{Code: ProtocolReject, ID: 3, Data: append([]byte{0xc0, 0x23}, request.Append(nil)...)}), frame(LCP, Packet{Code: ProtocolReject, ID: 3, Data: []byte{0xc0, 0x23}})},
		"a code":           {frame(LCP, Packet{Code: CodeReject, ID: 3, Data: request.Append(nil)}), frame(LCP, Packet{Code: CodeReject, ID: 3, Data: request.Append(nil)[:4]})},
		"CHAP":             {frame(CHAP, response), frame(CHAP, Packet{Code: chapResponse, ID: 2, Data: append(appendField(nil, make([]byte, len(secret))), "me"...)})},
		"a success":        {frame(CHAP, Packet{Code: chapSuccess, Data: []byte("S=" + secret + " M=welcome")}), frame(CHAP, Packet{Code: chapSuccess, Data: []byte("welcome")})},
		"a success of MD5": {frame(CHAP, Packet{Code: chapSuccess, Data: []byte("welcome")}), frame(CHAP, Packet{Code: chapSuccess, Data: []byte("welcome")})},
		"too short":        {append([]byte{0xc0, 0x23, 1, 1, 0, 200}, secret...), []byte{0xc0, 0x23}},
		"an address":       {frame(IPCP, Packet{Code: ConfigureRequest, Data: []byte{3, 6, 1, 2, 3, 4}}), frame(IPCP, Packet{Code: ConfigureRequest, Data: []byte{3, 6, 1, 2, 3, 4}})},
	} {
		if got := Redact(test.from); !bytes.Equal(got, test.want) || bytes.Contains(got, []byte(secret)) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// A field may have 255 bytes: nothing that reads it panics, and it is whole.
func TestLongField(t *testing.T) {
	name, rest, ok := field(longFields)
	password, end, ok2 := field(rest)
	if !ok || !ok2 || len(name) != 255 || len(password) != 255 || len(end) != 0 || name[254] != 'n' || password[0] != 'p' {
		t.Errorf("fields of %d and %d bytes, and %d more", len(name), len(password), len(end))
	}
	for _, protocol := range []Protocol{PAP, CHAP} {
		for code := range Code(6) {
			b := frame(protocol, Packet{Code: code, ID: 1, Data: longFields})
			Describe(b)
			Redact(b)
		}
	}
	if got := Redact(frame(PAP, Packet{Code: papRequest, ID: 1, Data: longFields})); bytes.Contains(got, []byte("pp")) {
		t.Errorf("the password is in %q", got)
	}
}
