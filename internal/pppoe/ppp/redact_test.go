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
