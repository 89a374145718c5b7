package expect_test

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"weir/internal/expect"
	"weir/pf/resolve"
)

var update = flag.Bool("update", false, "write the reports that come out to the files of testdata")

// TestGolden judges the expectations of the files in testdata, and compares the
// report, or the faults, with what they say.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := report(t, section(archive, "rules"), section(archive, "host"), section(archive, "expect"))
			if *update {
				rewrite(t, file, archive, got)
				return
			}
			if diff := cmp.Diff(section(archive, "report"), got); diff != "" {
				t.Errorf("report (-want +got):\n%s", diff)
			}
		})
	}
}

func report(t *testing.T, rules, description, expectations string) string {
	t.Helper()
	r, err := run(t, rules, description, expectations)
	var faults expect.Faults
	if errors.As(err, &faults) {
		return err.Error() + "\n"
	}
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := r.Fprint(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func run(t *testing.T, rules, description, expectations string) (*expect.Report, error) {
	t.Helper()
	host := &resolve.Host{}
	if err := json.Unmarshal([]byte(description), host); err != nil {
		t.Fatal(err)
	}
	set, list := resolve.Load("rules", []byte(rules), host)
	if set == nil {
		t.Fatalf("the rules are refused: %v", list.Err())
	}
	all, err := expect.Read("expect", []byte(expectations))
	if err != nil {
		return nil, err
	}
	return expect.NewJudge(set, host, expect.Described(host)).Run("expect", all)
}

func section(a *txtar.Archive, name string) string {
	for _, f := range a.Files {
		if f.Name == name {
			return string(f.Data)
		}
	}
	return ""
}

func rewrite(t *testing.T, file string, a *txtar.Archive, got string) {
	t.Helper()
	for i := range a.Files {
		if a.Files[i].Name == "report" {
			a.Files = append(a.Files[:i], a.Files[i+1:]...)
			break
		}
	}
	a.Files = append(a.Files, txtar.File{Name: "report", Data: []byte(got)})
	if err := os.WriteFile(file, txtar.Format(a), 0o644); err != nil {
		t.Fatal(err)
	}
}
