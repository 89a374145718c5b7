// Package summary writes what an end of a tunnel is configured as, signed for the other end, and compares it with what
// that end has.
//
// The key of the signature (HMAC-SHA-256) comes from the X25519 secret that the static keys of both ends have in common,
// by HKDF with a label of its own: only who has one of the two private keys can make or check a signature. That secret
// is in no output, HKDF gives nothing back of it, and no private key follows from it; the handshakes of WireGuard derive
// other keys from it by other means. A summary has no secret in it.
//
// Ends of IPsec seal theirs by their preshared key, through a hash that takes long, or by their certificate.
package summary
