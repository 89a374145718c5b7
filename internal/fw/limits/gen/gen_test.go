package main

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The generated file must be what the header gives now.
func TestUpToDate(t *testing.T) {
	header, err := os.ReadFile("../../../../bpf/config.h")
	if err != nil {
		t.Fatal(err)
	}
	want, err := goSource(header)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../limits_gen.go")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("limits_gen.go is behind bpf/config.h; run make generate (-want +got):\n%s", diff)
	}
}

func TestGoSource(t *testing.T) {
	const header = `#ifndef WEIR_CONFIG_H
#define WEIR_CONFIG_H
#define TICK_NS		 10000000ULL /* 10 ms */
#define TICKS_PER_SECOND 100
#define DAEMON_DEAD (3 * TICKS_PER_SECOND)
#define MASK 0xf0u /* a comment that
		    * goes on */
#define macro(x) (x)
#define CAST ((__u32)1)
`
	const want = `// Code generated from bpf/config.h by internal/fw/limits/gen; DO NOT EDIT.

package limits

// See bpf/config.h.
const (
	TickNs         = 10000000
	TicksPerSecond = 100
	DaemonDead     = (3 * TicksPerSecond)
	Mask           = 0xf0
)
`
	got, err := goSource([]byte(header))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := goSource([]byte("int x;\n")); err == nil {
		t.Error("a header without numbers was accepted")
	}
}
