package parser_test

import (
	"strings"
	"testing"
	"time"

	"weir/internal/testenv"
	"weir/pf/parser"
	"weir/pf/token"
)

// A text of this size has to be parsed within this time.
const (
	fuzzBytes = 64 << 10
	fuzzTime  = time.Second
)

// FuzzParser checks that any text parses in time, that its statements have valid places,
// and that its faults can be shown.
func FuzzParser(f *testing.F) {
	for _, text := range testenv.RuleFiles(f) {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		if len(src) > fuzzBytes {
			return
		}
		inTime(t, func() { parser.Parse("in", src) })
		file, list := parser.Parse("in", src)
		if err := list.Fprint(&strings.Builder{}); err != nil {
			t.Fatal(err)
		}
		list.Records()
		last := token.Pos(0)
		for _, s := range file.Stmts {
			sp := file.Files.Use(s.Whole())
			if !sp.IsValid() || sp.End < sp.Pos || sp.Pos < last {
				t.Fatalf("%T stands at %d to %d, behind %d", s, sp.Pos, sp.End, last)
			}
			last = sp.Pos
		}
	})
}

// inTime checks that run takes less than fuzzTime. It tries again, because the machine
// may be busy.
func inTime(t *testing.T, run func()) {
	t.Helper()
	took := time.Duration(0)
	for range 3 {
		start := time.Now()
		run()
		if took = time.Since(start); took < fuzzTime {
			return
		}
	}
	t.Fatalf("it took %v", took)
}
