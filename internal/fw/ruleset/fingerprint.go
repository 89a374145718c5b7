package ruleset

import "weir/pf/fingerprint"

// A Fingerprint is what some SYNs look like: struct fingerprint of bpf/rules/fingerprint.h.
type Fingerprint struct {
	Options                                  uint64
	Window, Size, MSS, Scale                 uint16
	WindowKind, SizeKind, MSSKind, ScaleKind uint8
	TTL                                      uint8
	DF, ZeroTime                             bool
}

const optionBits = 3 // of each option

// options are the numbers of options: enum fingerprint_option.
var options = map[rune]uint64{'N': 1, 'W': 2, 'M': 3, 'S': 4, 'T': 5}

func fingerprintOf(f *fingerprint.Fingerprint) Fingerprint {
	to := Fingerprint{
		Window: f.Window.N, WindowKind: uint8(f.Window.Kind), Size: f.Size.N, SizeKind: uint8(f.Size.Kind),
		MSS: f.MSS.N, MSSKind: uint8(f.MSS.Kind), Scale: f.Scale.N, ScaleKind: uint8(f.Scale.Kind),
		TTL: f.TTL, DF: f.DF, ZeroTime: f.ZeroTime,
	}
	for _, letter := range f.Options {
		to.Options = to.Options<<optionBits | options[letter]
	}
	return to
}
