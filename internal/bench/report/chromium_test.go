package report

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"weir/internal/testenv"
)

// probe is a script added to the page. It reports what a reader would see: the charts
// that have a size, texts beyond the edge of the window, errors, sections with nothing
// below their headline, and the background colour.
const probe = `<script>
const errors = [];
addEventListener("error", e => errors.push(e.message));
addEventListener("securitypolicyviolation", e => errors.push("blocked " + e.blockedURI));
addEventListener("load", () => {
	const seen = [...document.querySelectorAll("svg.chart")].filter(s => s.getBoundingClientRect().width > 100 && s.getBoundingClientRect().height > 40);
	const cut = seen.flatMap(s => [...s.querySelectorAll("text")].filter(t => {
		const b = t.getBoundingClientRect(), c = s.getBoundingClientRect();
		return b.left < c.left - 1 || b.right > c.right + 1;
	}).map(t => t.textContent));
	const crowded = seen.flatMap(s => {
		const texts = [...s.querySelectorAll("text")].map(t => [t.textContent, t.getBoundingClientRect()]);
		return texts.flatMap(([t, a], i) => texts.slice(i + 1).filter(([, b]) =>
			Math.min(a.right, b.right) - Math.max(a.left, b.left) > 2 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 4).map(([u]) => t + " on " + u));
	});
	document.title = JSON.stringify({ figures: document.querySelectorAll("figure").length, charts: seen.length,
		shapes: Math.min(...seen.map(s => s.querySelectorAll("path,rect,circle").length)), scrolls: document.documentElement.scrollWidth > innerWidth,
		cut, crowded, errors, hidden: [...document.querySelectorAll("section")].filter(s => s.innerText.trim() == (s.querySelector("h2")?.innerText ?? "")).length,
		ground: getComputedStyle(document.body).backgroundColor });
});
</script>`

// sheet is the width of A4 paper between its margins, in CSS pixels.
const sheet = "680"

// TestInChromium opens the page as a reader would: on a desktop, on a phone and in print
// layout, in light and in dark.
func TestInChromium(t *testing.T) {
	t.Parallel()
	chromium := testenv.NeedBrowser(t)
	page := string(written(t, broad().WriteHTML))
	// The page's policy allows no script, so the probe needs an exception.
	page = strings.Replace(page, "style-src 'unsafe-inline'", "style-src 'unsafe-inline'; script-src 'unsafe-inline'", 1)
	page = strings.Replace(page, "</head>", probe+"</head>", 1)
	dir := t.TempDir()
	file, paper := filepath.Join(dir, "page.html"), filepath.Join(dir, "paper.html")
	onPaper := strings.ReplaceAll(strings.ReplaceAll(page, "@media screen", "@media speech"), "@media print", "@media all")
	for name, text := range map[string]string{file: page, paper: onPaper} {
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ file, window string }{{file, "1200,900"}, {file, "500,900"}, {paper, sheet + ",900"}} {
		for _, scheme := range schemes {
			t.Run(c.window+" "+scheme.name, func(t *testing.T) {
				t.Parallel()
				got := open(t, chromium, profileFolder(t, dir), c.file, "--window-size="+c.window, scheme.flag)
				want := `{"figures":7,"charts":7,"shapes":`
				if !strings.HasPrefix(got, want) || !strings.Contains(got, `,"scrolls":false,"cut":[],"crowded":[],"errors":[],"hidden"`) || strings.Contains(got, `"shapes":0`) {
					t.Errorf("the browser saw %s", got)
				}
				dark := scheme.name == "dark" && c.file == file
				if ground := map[bool]string{false: "rgb(255, 255, 255)", true: "rgb(18, 23, 30)"}[dark]; !strings.HasSuffix(got, `,"ground":"`+ground+`"}`) {
					t.Errorf("the browser saw %s, want the ground %s", got, ground)
				}
				if c.file == paper && !strings.Contains(got, `"hidden":0`) {
					t.Errorf("what stands in the page is not on paper: %s", got)
				}
			})
		}
	}
}

// schemes are the colour schemes that a reader may choose.
var schemes = []struct{ name, flag string }{{"light", "--blink-settings=preferredColorScheme=1"}, {"dark", "--blink-settings=preferredColorScheme=0"}}

// broad is the example plus a table with as many columns as reports have, whose longest
// name is that of our bars.
func broad() *Document {
	d := example()
	for _, g := range d.Sections[0].Charts[0].Bars.Groups {
		g.Bars[len(g.Bars)-1].Name = "our counters"
	}
	t := Table{Title: "A broad one", Columns: []Column{{Name: "path", Words: true}}, Rows: [][]string{{"weir-nat"}}}
	for range 6 {
		t.Columns = append(t.Columns, Column{Name: "p99.9 at half throughput", Unit: "µs"})
		t.Rows[0] = append(t.Rows[0], "1,234 (1,111–1,357)")
	}
	t.Columns = append(t.Columns, Column{Name: "limit", Words: true})
	t.Rows[0] = append(t.Rows[0], "number that was asked for")
	d.Sections[0].Tables = append(d.Sections[0].Tables, t)
	return d
}

// moments matches what differs between two PDFs of the same page.
var moments = regexp.MustCompile(`/(CreationDate|ModDate) \([^)]*\)|/ID \[[^]]*\]`)

// TestPrinted prints the page to PDF. Paper is always light, whatever scheme the reader
// chose for the screen.
func TestPrinted(t *testing.T) {
	chromium := testenv.NeedBrowser(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "page.html")
	if err := os.WriteFile(file, written(t, broad().WriteHTML), 0o666); err != nil {
		t.Fatal(err)
	}
	var printed [][]byte
	for _, scheme := range schemes {
		pdf := filepath.Join(dir, scheme.name+".pdf")
		testenv.Browse(t, chromium, filepath.Join(dir, "profile"), file, scheme.flag, "--no-pdf-header-footer", "--print-to-pdf="+pdf)
		b, err := os.ReadFile(pdf)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.HasPrefix(b, []byte("%PDF-")) {
			t.Fatalf("%s: no PDF: %.20q", scheme.name, b)
		}
		printed = append(printed, moments.ReplaceAll(b, nil))
	}
	if !bytes.Equal(printed[0], printed[1]) {
		t.Error("on paper, dark differs from light")
	}
}

// profileFolder makes a folder for one browser below dir. Its helpers may still write there
// when it has ended, so dir is removed only after all browsers.
func profileFolder(t *testing.T, dir string) string {
	t.Helper()
	folder, err := os.MkdirTemp(dir, "profile")
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

// open returns the title that the probe set. It fails if the browser complains.
func open(t *testing.T, chromium, profile, file string, flags ...string) string {
	t.Helper()
	dom := testenv.Browse(t, chromium, profile, file, append(flags, "--dump-dom")...)
	title := regexp.MustCompile(`<title>(\{.*?\})</title>`).FindSubmatch(dom)
	if title == nil {
		t.Fatalf("the page did not load:\n%.2000s", dom)
	}
	return string(title[1])
}
