package bpfload

import "testing"

func TestTooOld(t *testing.T) {
	for release, want := range map[string]bool{
		"2.6.32-754.el6": true, "5.15": true, "6.5.0-45-generic": true, "6.5.13": true,
		"6.6.0": false, "6.6": false, "6.12.117+deb12": false, "6.10.0": false, "7.0-rc1": false, "10.1": false,
		"unknown": false,
	} {
		if got := tooOld(release); got != want {
			t.Errorf("%s is too old: %v, want %v", release, got, want)
		}
	}
}
