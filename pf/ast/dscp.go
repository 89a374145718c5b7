package ast

// MostDSCP is the largest code point.
const MostDSCP = 63

// dscpNames are the names of code points: of RFC 2474, 2597, 3246, 5865 and 8622.
var dscpNames = [MostDSCP + 1]string{
	0: "cs0", 8: "cs1", 16: "cs2", 24: "cs3", 32: "cs4", 40: "cs5", 48: "cs6", 56: "cs7",
	10: "af11", 12: "af12", 14: "af13", 18: "af21", 20: "af22", 22: "af23",
	26: "af31", 28: "af32", 30: "af33", 34: "af41", 36: "af42", 38: "af43",
	1: "le", 44: "va", 46: "ef",
}

// DSCP returns the code point of a name.
func DSCP(name string) (n uint32, known bool) {
	for n, is := range dscpNames {
		if is != "" && is == name {
			return uint32(n), true
		}
	}
	return 0, false
}

// DSCPName returns the name of a code point, or "".
func DSCPName(n uint32) string { return dscpNames[n] }
