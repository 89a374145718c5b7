package dataplane

import (
	"weir/internal/fw/bpfload"
	"weir/internal/fw/ruleset"
)

// fillFingerprints writes the fingerprints that rules ask for. Without any, the map may be
// missing, and what is in it is not read.
func fillFingerprints(m *bpfload.Map, fingerprints []ruleset.Fingerprint) error {
	if len(fingerprints) == 0 {
		return nil
	}
	return fillArray(m, 0, fingerprints, rawFingerprint)
}

func rawFingerprint(f *ruleset.Fingerprint) xdpFingerprint {
	return xdpFingerprint{
		Options: f.Options, Window: f.Window, WindowKind: f.WindowKind, Size: f.Size, SizeKind: f.SizeKind,
		Mss: f.MSS, MssKind: f.MSSKind, Scale: f.Scale, ScaleKind: f.ScaleKind, Ttl: f.TTL,
		Df: asByte(f.DF), ZeroTime: asByte(f.ZeroTime),
	}
}
