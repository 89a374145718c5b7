package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/stats"
	"weir/internal/testenv"
)

// golden compares with a file of testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	testenv.GoldenFile(t, filepath.Join("testdata", name), got)
}

// written returns the output of a writer for the example.
func written(t *testing.T, write func(io.Writer) error) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestGolden(t *testing.T) {
	d := example()
	for _, form := range []struct {
		name  string
		write func(io.Writer) error
	}{
		{"example.json", d.WriteJSON}, {"example.html", d.WriteHTML},
		{"example.md", func(w io.Writer) error { return d.WriteMarkdown(w, "") }},
		{"pictures.md", func(w io.Writer) error { return d.WriteMarkdown(w, "charts") }},
		{"example.txt", func(w io.Writer) error { return d.WriteText(w, 100) }},
		{"narrow.txt", func(w io.Writer) error { return d.WriteText(w, 40) }},
	} {
		t.Run(form.name, func(t *testing.T) { golden(t, form.name, written(t, form.write)) })
	}
}

func TestSVGs(t *testing.T) {
	dir := t.TempDir()
	files, err := example().WriteSVGs(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != 7 {
		t.Errorf("%d files, want one for each of 7 charts: %v", len(files), files)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		wellFormed(t, b)
		golden(t, filepath.Join("svg", filepath.Base(file)), b)
	}
}

// wellFormed reads a file as XML, which is stricter than browsers are.
func wellFormed(t *testing.T, b []byte) {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(b))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("not well-formed: %v", err)
		}
	}
}

// outside matches what a browser would fetch.
var outside = regexp.MustCompile(`(?i)(src|href|action|data)\s*=\s*["']?[^"'#>\s][^"'>\s]*|url\(|@import|<script|<link|<iframe|<object`)

// A page that is passed around has to work without a network, and must not tell anybody
// that it is read.
func TestHTMLNeedsNothingElse(t *testing.T) {
	page := string(written(t, example().WriteHTML))
	if found := outside.FindAllString(page, -1); found != nil {
		t.Errorf("the page refers to %q", found)
	}
	for _, target := range regexp.MustCompile(`href="#([^"]*)"|aria-labelledby="([^"]*)"`).FindAllStringSubmatch(page, -1) {
		if id := target[1] + target[2]; strings.Count(page, `id="`+id+`"`) != 1 {
			t.Errorf("%s: %d elements have this id", target[0], strings.Count(page, `id="`+id+`"`))
		}
	}
}

// void matches HTML elements without an end tag.
var void = regexp.MustCompile(`<(meta)([^>]*)>`)

// Each element is closed in the right order. Once its void elements are closed, the page
// is XML.
func TestHTMLWellFormed(t *testing.T) {
	page := written(t, example().WriteHTML)
	if !bytes.HasPrefix(page, []byte("<!doctype html>\n<html lang=\"en\">")) {
		t.Errorf("the page begins with %q", page[:40])
	}
	page = bytes.TrimPrefix(page, []byte("<!doctype html>"))
	style := regexp.MustCompile(`(?s)<style>.*?</style>`)
	wellFormed(t, void.ReplaceAll(style.ReplaceAll(page, nil), []byte("<$1$2/>")))
}

// Text of a document stays text.
func TestHTMLEscapes(t *testing.T) {
	d := example()
	evil := `<script>alert(1)</script>"'&`
	d.Title, d.Verdicts, d.Command = evil, []string{evil}, evil
	d.Sections[0].Charts[0].Title = evil
	d.Sections[0].Charts[0].Bars.Groups[0].Name = evil
	d.Sections[0].Charts[0].Bars.Groups[0].Bars[0].Name = evil
	d.Sections[3].Charts[1].Flame.Stacks[0].Frames[0] = evil
	page := string(written(t, d.WriteHTML))
	if strings.Contains(page, "<script") {
		t.Error("a script found its way into the page")
	}
	wellFormed(t, []byte(d.Sections[0].Charts[0].svg(evil, newColours())))
}

func TestJSONReadsBack(t *testing.T) {
	b := written(t, example().WriteJSON)
	d, err := Read(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(b), string(written(t, d.WriteJSON))); diff != "" {
		t.Errorf("written, read and written (-first +second):\n%s", diff)
	}
}

// Without a control that holds, no form of the report draws a conclusion.
func TestNoVerdict(t *testing.T) {
	d := example()
	d.Control.Refuse("weir-nat differs from itself by 9.0 %")
	for name, write := range map[string]func(io.Writer) error{
		"html": d.WriteHTML, "markdown": func(w io.Writer) error { return d.WriteMarkdown(w, "") },
		"text": func(w io.Writer) error { return d.WriteText(w, 100) },
	} {
		text := string(written(t, write))
		if strings.Contains(text, "6.1 times") || !strings.Contains(text, "No verdict: weir-nat differs from itself by 9.0 %") {
			t.Errorf("%s: a verdict, or no word about the control:\n%s", name, text)
		}
	}
	if text := d.Sections[0].Charts[0].svg(d.source(), newColours()); !strings.Contains(text, "the control failed") {
		t.Error("a chart that travels alone does not say that the control failed")
	}
}

func TestSketchIsMarked(t *testing.T) {
	d := example()
	d.Sketch = true
	for name, write := range map[string]func(io.Writer) error{
		"html": d.WriteHTML, "markdown": func(w io.Writer) error { return d.WriteMarkdown(w, "") },
		"text": func(w io.Writer) error { return d.WriteText(w, 100) },
	} {
		if !strings.Contains(string(written(t, write)), "Sketch:") {
			t.Errorf("%s does not say that it is a sketch", name)
		}
	}
}

func TestCheck(t *testing.T) {
	good := stats.Sample{1, 2}
	for _, c := range []struct {
		name  string
		spoil func(*Document)
		want  string
	}{
		{"no title", func(d *Document) { d.Title = "" }, "no kind or no title"},
		{"a name twice", func(d *Document) { d.Measurements[1].Name = d.Measurements[0].Name }, "there already"},
		{"better of what", func(d *Document) { d.Measurements[0].Better = "more" }, `better is "more"`},
		{"no runs", func(d *Document) { d.Measurements[0].Runs = nil }, "no runs"},
		{"short row", func(d *Document) { d.Sections[0].Tables[0].Rows[0] = []string{"x"} }, "row 1 has 1 cells for 3 columns"},
		{"no kind of chart", func(d *Document) { d.Sections[0].Charts[0].Bars = nil }, "and has 0"},
		{"bar without runs", func(d *Document) { d.Sections[0].Charts[0].Bars.Groups[0].Bars[0].Runs = nil }, `bar "generator"`},
		{"nothing on a logarithmic axis", func(d *Document) { d.Sections[1].Charts[0].Curves.Series[0].Points[0].X = -1 }, "is too small"},
		{"backwards", func(d *Document) {
			d.Sections[1].Charts[0].Curves.Series[0].Points = []Point{{2, good}, {1, good}}
		}, "not to the right"},
		{"time runs back", func(d *Document) { d.Sections[2].Charts[0].Times.Cores[0].Points[0].Seconds = 99 }, "order of time"},
		{"parts that overlap", func(d *Document) { d.Sections[2].Charts[1].Times.Parts[1].From = 1 }, "begins after the one before"},
		{"more than all", func(d *Document) { d.Sections[3].Charts[0].CDF.Series[0].Points[0].Share = 2 }, "distribution"},
		{"empty stack", func(d *Document) { d.Sections[3].Charts[1].Flame.Stacks[0].Frames = nil }, "stack 1 is empty"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := example()
			c.spoil(d)
			err := d.WriteHTML(io.Discard)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q in it", err, c.want)
			}
		})
	}
}
