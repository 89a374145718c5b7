package mschap_test

import (
	"encoding/hex"
	"testing"

	"weir/internal/pppoe/mschap"
)

// The example of RFC 2759 9.2.
func TestExample(t *testing.T) {
	bytes := func(text string) []byte {
		b, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for _, name := range []string{"User", `DOMAIN\User`} {
		e := mschap.Exchange{
			Name: name, Authenticator: [16]byte(bytes("5B5D7C7D7B3F2F3E3C2C602132262628")), Peer: [16]byte(bytes("21402324255E262A28295F2B3A337C7E")),
		}
		response := e.Response("clientPass")
		if want := [24]byte(bytes("82309ECD8D708B5EA08FAA3981CD83544233114A3D85D6DF")); response != want {
			t.Errorf("%s: response %x, want %x", name, response, want)
		}
		if got, want := e.Success("clientPass", response), "S=407A5589115FD0D6209F510FE9C04566932CDA56"; got != want {
			t.Errorf("%s: success %s, want %s", name, got, want)
		}
	}
}
