package report

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"weir/internal/testenv"
)

// probe is put into the page, to say what a reader would see of it: the charts
// that have a size, texts beyond the edge of the window, and any error.
const probe = `<script>
const errors = [];
addEventListener("error", e => errors.push(e.message));
addEventListener("securitypolicyviolation", e => errors.push("blocked " + e.blockedURI));
addEventListener("load", () => {
	const seen = [...document.querySelectorAll("svg.chart")].filter(s => s.getBoundingClientRect().width > 100 && s.getBoundingClientRect().height > 40);
	const cut = seen.flatMap(s => [...s.querySelectorAll("text")].filter(t => {
		const b = t.getBoundingClientRect(), c = s.getBoundingClientRect();
		return b.left < c.left - 4 || b.right > c.right + 12;
	}).map(t => t.textContent));
	document.title = JSON.stringify({ figures: document.querySelectorAll("figure").length, charts: seen.length,
		shapes: Math.min(...seen.map(s => s.querySelectorAll("path,rect,circle").length)), scrolls: document.documentElement.scrollWidth > innerWidth,
		cut, errors });
});
</script>`

// TestInChromium opens the page as a reader would: on a desk and on a phone.
func TestInChromium(t *testing.T) {
	chromium := testenv.NeedBrowser(t)
	page := string(written(t, example().WriteHTML))
	// The page's own policy allows no script, the probe's neither.
	page = strings.Replace(page, "style-src 'unsafe-inline'", "style-src 'unsafe-inline'; script-src 'unsafe-inline'", 1)
	page = strings.Replace(page, "</head>", probe+"</head>", 1)
	dir := t.TempDir()
	file := filepath.Join(dir, "page.html")
	if err := os.WriteFile(file, []byte(page), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, window := range []string{"1200,900", "500,900"} {
		t.Run(window, func(t *testing.T) {
			got := open(t, chromium, filepath.Join(dir, "profile"), window, file)
			want := `{"figures":7,"charts":7,"shapes":`
			if !strings.HasPrefix(got, want) || !strings.HasSuffix(got, `,"scrolls":false,"cut":[],"errors":[]}`) || strings.Contains(got, `"shapes":0`) {
				t.Errorf("the browser saw %s", got)
			}
		})
	}
}

// open gives the title that the probe set, and fails at what the browser
// complains of.
func open(t *testing.T, chromium, profile, window, file string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, chromium, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--user-data-dir="+profile, "--window-size="+window,
		"--enable-logging=stderr", "--dump-dom", "file://"+file)
	var complaints strings.Builder
	cmd.Stderr = &complaints
	dom, err := cmd.Output()
	if err != nil {
		t.Fatalf("chromium: %v\n%s", err, complaints.String())
	}
	if found := regexp.MustCompile(`(?m)^.*CONSOLE.*$`).FindAllString(complaints.String(), -1); found != nil {
		t.Errorf("on the console: %q", found)
	}
	title := regexp.MustCompile(`<title>(\{.*?\})</title>`).FindSubmatch(dom)
	if title == nil {
		t.Fatalf("the page did not load:\n%.2000s", dom)
	}
	return string(title[1])
}
