package ipsec

import (
	"slices"
	"strings"
)

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

// Algorithms returns the proposals of a profile: for IKE, and for packets.
func Algorithms(name string) (ike, esp []string) { return profiles[name].ike, profiles[name].esp }

// kindOf says what an algorithm of a proposal is for.
func kindOf(algorithm string) string {
	for _, k := range []struct{ kind, begins string }{
		{"prf", "prf"}, {"esn", "esn"}, {"esn", "noesn"}, {"group", "x25519"}, {"group", "x448"}, {"group", "curve"}, {"group", "ecp"}, {"group", "modp"}, {"group", "none"},
		{"integrity", "sha"},
	} {
		if strings.HasPrefix(algorithm, k.begins) {
			return k.kind
		}
	}
	return "encryption"
}

// kinds are those of which both ends need one in common, in the order of a proposal.
var kinds = []string{"encryption", "integrity", "prf", "group", "esn"}

// defaults are what charon takes of a kind that one of two proposals does not have.
var defaults = map[string][]string{"group": {"none"}, "esn": {"noesn"}}

// byKind takes a proposal apart.
func byKind(proposal string) map[string][]string {
	all := map[string][]string{}
	for algorithm := range strings.SplitSeq(proposal, "-") {
		all[kindOf(algorithm)] = append(all[kindOf(algorithm)], algorithm)
	}
	if all["prf"] == nil { // that of the integrity
		for _, hash := range all["integrity"] {
			all["prf"] = append(all["prf"], "prf"+hash)
		}
	}
	return all
}

// Common returns what two ends agree upon that have these proposals, the first of which is wanted most; ""
// if they cannot.
func Common(a, b []string) string {
	for _, ours := range a {
		for _, theirs := range b {
			if text := common(byKind(ours), byKind(theirs)); text != "" {
				return text
			}
		}
	}
	return ""
}

func common(a, b map[string][]string) string {
	var all []string
	for _, kind := range kinds {
		ours, theirs := a[kind], b[kind]
		switch {
		case ours == nil && theirs == nil:
			continue
		case ours == nil:
			ours = defaults[kind]
		case theirs == nil:
			theirs = defaults[kind]
		}
		at := slices.IndexFunc(ours, func(algorithm string) bool { return slices.Contains(theirs, algorithm) })
		if at < 0 {
			return ""
		}
		all = append(all, ours[at])
	}
	return strings.Join(all, "-")
}
