package ipsec

// A profile is a set of algorithms: for IKE, and for packets. The latter's groups are those of the key
// exchange at each rekeying.
type profile struct{ ike, esp []string }

// profiles are those that the configuration may name. In compatible, a peer may do without a key
// exchange at a rekeying, as several vendors do unless they are told otherwise; IKE has one always.
var profiles = map[string]profile{
	"modern": {
		ike: []string{"aes256gcm16-aes128gcm16-prfsha384-prfsha256-x25519-ecp384-ecp256"},
		esp: []string{"aes256gcm16-aes128gcm16-x25519-ecp384-ecp256-esn-noesn"},
	},
	// RFC 9206, and RFC 6379 for peers without AES-GCM in IKE.
	"suite-b": {
		ike: []string{"aes256gcm16-prfsha384-ecp384", "aes256-sha384-ecp384"},
		esp: []string{"aes256gcm16-ecp384-esn-noesn"},
	},
	"compatible": {
		ike: []string{
			"aes256gcm16-aes128gcm16-prfsha384-prfsha256-x25519-ecp384-ecp256-modp4096-modp3072-modp2048",
			"aes256-aes128-sha384-sha256-x25519-ecp384-ecp256-modp4096-modp3072-modp2048",
		},
		esp: []string{
			"aes256gcm16-aes128gcm16-x25519-ecp384-ecp256-modp4096-modp3072-modp2048-none",
			"aes256-aes128-sha256-x25519-ecp384-ecp256-modp4096-modp3072-modp2048-none",
		},
	},
}
