package profile

import (
	"encoding/binary"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"weir/internal/fw/bpfload"
	"weir/internal/testenv"
)

func TestDecode(t *testing.T) {
	record := func(kind uint32, words ...uint64) []byte {
		b := binary.NativeEndian.AppendUint32(nil, kind)
		b = binary.NativeEndian.AppendUint16(b, 0)
		b = binary.NativeEndian.AppendUint16(b, uint16(8+8*len(words)))
		for _, w := range words {
			b = binary.NativeEndian.AppendUint64(b, w)
		}
		return b
	}
	kernel := ^uint64(127) // PERF_CONTEXT_KERNEL, -128
	b := append(record(recordSample, 3, kernel, 0xffff1000, 0xffff2000), record(recordLost, 7, 5)...)
	b = append(append(b, record(recordSample, 0)...), record(3, 1, 2, 3)...)
	stacks, lost := decode(append(b, 1, 2, 3)) // plus part of another
	if len(stacks) != 1 || len(stacks[0]) != 2 || stacks[0][0] != 0xffff1000 || lost != 5 {
		t.Errorf("%x, %d lost", stacks, lost)
	}
}

// A map of one program and a few functions of the kernel.
func exampleMap(t *testing.T) *Map {
	t.Helper()
	functions, err := readFunctions()
	if err != nil {
		t.Fatal(err)
	}
	line := func(file, name string) int {
		for _, f := range functions[file] {
			if f.name == name {
				return f.line + 1
			}
		}
		t.Fatalf("no function %s in %s", name, file)
		return 0
	}
	return &Map{functions: functions, code: []bpfload.Code{
		{Start: 100, End: 110, Program: fastPrograms[0], File: "parse.h", Line: line("parse.h", "parse")},
		{Start: 110, End: 120, Program: fastPrograms[0], File: "rewrite.h", Line: line("rewrite.h", "rewrite_ports")},
		{Start: 120, End: 130, Program: fastPrograms[0], File: "rewrite.h", Line: line("rewrite.h", "rewrite_ttl")},
		{Start: 130, End: 140, Program: fastPrograms[0], File: "lookup.h", Line: line("lookup.h", "lookup_verify")},
		{Start: 140, End: 150, Program: "weir_xdp_miss"},
		{Start: 150, End: 160, Program: "count"},
		{Start: 160, End: 170, Program: "generate"},
		{Start: 170, End: 180, Program: "weir_gc_start"},
		{Start: 180, End: 190, Program: foreign, File: "parse.h", Line: line("parse.h", "parse")},
	}, kernel: []symbol{{1000, "veth_poll"}, {1100, "xdp_do_redirect"}, {1200, "veth_xdp_xmit"}, {1300, "bpf_test_run_xdp_live"},
		{1400, "srso_safe_ret"}, {1500, "timer"}}}
}

func TestStage(t *testing.T) {
	m := exampleMap(t)
	for _, c := range []struct {
		stack Stack
		want  string
	}{
		{Stack{105, 1010, 1310}, Parse},
		{Stack{112, 1010, 1310}, NAT},
		{Stack{125, 1010, 1310}, Redirect},
		{Stack{139, 1010, 1310}, LookUp},
		{Stack{1410, 125, 1010, 1310}, Redirect}, // a safe return of the kernel
		{Stack{1210, 1110, 1010, 1310}, Transmit},
		{Stack{1210, 1110, 1310}, Generator}, // the generator's own redirect
		{Stack{165, 1310}, Generator},
		{Stack{155, 1010, 1310}, Receive},
		{Stack{1050, 1310}, Receive},
		{Stack{145, 1010}, Miss},
		{Stack{175, 1510}, Sweep},
		{Stack{1510}, Others},
		{Stack{185, 1010, 1310}, Others},
		{Stack{5}, Others},
	} {
		if got := m.Stage(c.stack); got != c.want {
			t.Errorf("%v: %s, want %s", c.stack, got, c.want)
		}
	}
	if got := m.Split([]Stack{{105}, {106}, {112}}); got[Parse] != 2 || got[NAT] != 1 {
		t.Errorf("split: %v", got)
	}
}

// A stack is named from the outside in. A program is one function, however many of its
// lines are in the stack.
func TestFunctions(t *testing.T) {
	m := exampleMap(t)
	for _, c := range []struct {
		stack Stack
		want  string
	}{
		{Stack{105, 112, 1010, 1310}, "bpf_test_run_xdp_live, veth_poll, bpf: " + fastPrograms[0]},
		{Stack{1210, 1110, 1010}, "veth_poll, xdp_do_redirect, veth_xdp_xmit"},
		{Stack{165, 1310}, "bpf_test_run_xdp_live, bpf: generate"},
		{Stack{1510}, OtherWork},
	} {
		if got := strings.Join(m.Functions(c.stack), ", "); got != c.want {
			t.Errorf("%v: %s, want %s", c.stack, got, c.want)
		}
	}
}

// Every header that the fast path includes belongs to a stage, and every named function
// exists.
func TestTables(t *testing.T) {
	functions, err := readFunctions()
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, list := range functions {
		for _, f := range list {
			names[f.name] = true
		}
	}
	for name := range byFunction {
		if !names[name] && !definedByMacro(t, name) {
			t.Errorf("bpf/ has no function %s", name)
		}
	}
	paths := sources(t)
	for file := range byFile {
		if paths[file] == "" {
			t.Errorf("bpf/ has no file %s", file)
		}
	}
	for _, file := range []string{"fast.h", "output.h", "rewrite.h", "track.h", "lookup.h"} {
		b, err := os.ReadFile(paths[file])
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^#include "(.*)"`).FindAllStringSubmatch(string(b), -1) {
			name := path.Base(m[1])
			if byFile[name] == "" {
				t.Errorf("%s includes %s, which belongs to no stage", file, m[1])
			}
		}
	}
}

// sources maps the base name of each source under bpf/ to its path. Samples carry
// base names alone, so two files must not share one.
func sources(t *testing.T) map[string]string {
	paths := map[string]string{}
	for _, pattern := range []string{"*.[ch]", "*/*.[ch]"} {
		files, err := filepath.Glob(filepath.Join("../../../bpf", pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			name := filepath.Base(file)
			if paths[name] != "" {
				t.Errorf("%s and %s have the same name", paths[name], file)
			}
			paths[name] = file
		}
	}
	return paths
}

func definedByMacro(t *testing.T, name string) bool {
	for _, file := range []string{"context.h", "xdp.h"} {
		b, err := os.ReadFile("../../../bpf/hook/" + file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(b), "#define "+name+"(") {
			return true
		}
	}
	return false
}

// A busy core is sampled about as often as requested, and its samples are in functions
// that the kernel names.
func TestSampler(t *testing.T) {
	testenv.NeedRoot(t)
	s, err := NewSampler(0)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	m, err := NewMap(0)
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	for time.Since(begin) < 300*time.Millisecond {
		if _, err := os.ReadFile("/proc/kallsyms"); err != nil {
			t.Fatal(err)
		}
	}
	stacks, lost, err := s.Stop()
	if err != nil || lost > 0 {
		t.Fatalf("%d lost, %v", lost, err)
	}
	named := 0
	for _, stack := range stacks {
		if m.At(stack[0]) != (Place{}) {
			named++
		}
	}
	took := time.Since(begin) // a busy machine takes longer than requested
	if most := int(took/period) + 1; len(stacks) > most || named < len(stacks)*9/10 {
		t.Errorf("%d samples in %v, which has room for %d; %d of a known place", len(stacks), took, most, named)
	}
}
