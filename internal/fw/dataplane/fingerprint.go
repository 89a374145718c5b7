package dataplane

import "weir/internal/fw/ruleset"

func rawFingerprint(f *ruleset.Fingerprint) xdpFingerprint {
	return xdpFingerprint{
		Options: f.Options, Window: f.Window, WindowKind: f.WindowKind, Size: f.Size, SizeKind: f.SizeKind,
		Mss: f.MSS, MssKind: f.MSSKind, Scale: f.Scale, ScaleKind: f.ScaleKind, Ttl: f.TTL,
		Df: asByte(f.DF), ZeroTime: asByte(f.ZeroTime),
	}
}
