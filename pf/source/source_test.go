package source_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/pf/source"
)

func TestPath(t *testing.T) {
	for _, test := range [][3]string{
		{"pf.conf", "a", "a"},
		{"/etc/pf.conf", "a", "/etc/a"},
		{"/etc/pf.conf", "/var/a", "/var/a"},
		{"etc/pf.conf", "../a/./b", "a/b"},
	} {
		if got := source.Path(test[0], test[1]); got != test[2] {
			t.Errorf("%s names %s: %s, want %s", test[0], test[1], got, test[2])
		}
	}
}

func TestFrom(t *testing.T) {
	for _, test := range [][4]string{
		{"pf.conf", "pf.conf", "a", "a"},
		{"pf.conf", "more/rules", "a", "more/a"},
		{"/etc/pf.conf", "/etc/more/rules", "../a", "a"},
		{"/etc/pf.conf", "/etc/more/rules", "/dev/null", "/dev/null"},
		{"/etc/pf.conf", "/var/rules", "a", "../var/a"},
	} {
		if got := source.From(test[0], test[1], test[2]); got != test[3] || source.Path(test[0], got) != source.Path(test[1], test[2]) {
			t.Errorf("%s in %s, from %s: %s", test[2], test[1], test[0], got)
		}
	}
}

func TestParseMacro(t *testing.T) {
	m, err := source.ParseMacro("if_1={ em0, em1 } = x")
	if want := (source.Macro{Name: "if_1", Value: "{ em0, em1 } = x"}); err != nil || m != want {
		t.Errorf("%+v, %v", m, err)
	}
	for _, bad := range []string{"", "x", "=x", "a b=c", "a-b=c"} {
		if m, err := source.ParseMacro(bad); err == nil {
			t.Errorf("%q is taken for %+v", bad, m)
		}
	}
}

// TestRecorder checks that what was recorded is what was read, also if the
// files change, and that faults are recorded too.
func TestRecorder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a")
	if err := os.WriteFile(file, []byte("one"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := source.Recorder{From: source.Disk{}}
	for range 2 {
		text, err := r.Open(file, 100)
		if err != nil || string(text) != "one" {
			t.Errorf("%q, %v", text, err)
		}
		if err := os.WriteFile(file, []byte("two"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, missing := r.Open(file+"b", 100)
	_, again := r.Files.Open(file+"b", 100)
	if missing == nil || again == nil || missing.Error() != again.Error() || strings.Contains(again.Error(), file) {
		t.Errorf("a missing file: %v, then %v; messages name the file themselves", missing, again)
	}
	if _, err := r.Files.Open("other", 100); err == nil {
		t.Error("a file that was never read can be opened")
	}
}

// TestDisk checks that no more than a file's limit is read, and nothing that
// is no file.
func TestDisk(t *testing.T) {
	text, err := source.Disk{}.Open("/dev/zero", 1000)
	if err != nil || len(text) != 1001 {
		t.Errorf("a file without an end: %d bytes, %v", len(text), err)
	}
	if _, err := (source.Disk{}).Open(t.TempDir(), 1000); err == nil {
		t.Error("a folder is read")
	}
}
