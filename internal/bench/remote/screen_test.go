package remote

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"weir/internal/bench/iperf"
	"weir/internal/bench/sample"
	"weir/internal/stats"
	"weir/internal/testenv"
)

// look reports what a reader of the page would miss: tables that are broader than the page,
// texts of charts that are cut or lie on one another, and lines of the chart of round trips
// that are drawn alike.
const look = `<script>
addEventListener("load", () => {
	const charts = [...document.querySelectorAll("svg.chart")].filter(s => s.getBoundingClientRect().width > 100);
	const texts = s => [...s.querySelectorAll("text")].map(t => [t.textContent, t.getBoundingClientRect()]);
	const trips = charts.find(s => s.textContent.includes("round-trip time"));
	const lines = [...trips.querySelectorAll("path.curve")].map(p => getComputedStyle(p)).map(c => c.stroke + c.strokeDasharray + c.strokeWidth);
	document.title = JSON.stringify({
		broad: [...document.querySelectorAll(".scroll")].filter(s => s.offsetParent && s.scrollWidth > s.clientWidth).map(s => s.innerText.slice(0, 40)),
		cut: charts.flatMap(s => texts(s).filter(([t, a]) => t.includes("…") || a.right > s.getBoundingClientRect().right + 1).map(([t]) => t)),
		crowded: charts.flatMap(s => texts(s).flatMap(([t, a], i) => texts(s).slice(i + 1).filter(([, b]) =>
			Math.min(a.right, b.right) - Math.max(a.left, b.left) > 2 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 4).map(([u]) => t + " on " + u))),
		lines: lines.length, styles: new Set(lines).size });
});
</script>`

// TestFitsScreen opens the report of all default cases of TCP, and of UDP at two rates, in a
// window of 1,200 pixels.
func TestFitsScreen(t *testing.T) {
	chromium := testenv.NeedBrowser(t)
	m := aMeasurement(t)
	m.entries = nil
	full := []sample.Point{{At: time.Second, Took: time.Second, Cores: []sample.Core{{ID: 0, Busy: 1}}}}
	o := Defaults()
	o.Protocols, o.Rates = []string{TCP, UDP}, []Rate{10e6, 100e6}
	for i, c := range o.Cases() {
		for n := range 2 - min(i, 1) { // the first case twice
			f := &findings{Case: c, control: n == 1}
			for range 3 {
				d := &direction{Result: iperf.Result{Packets: 123_456, Lost: 1234, Retransmits: 12_345, Rate: 9.87654e9, Received: 1e9, Seconds: 1}}
				r := &result{granted: c.request(m.server.Addr(), time.Second), own: full, theirs: full, process: 0.1, remote: 0.2,
					rtts: stats.Sample{0.01234 + float64(i), 12.34 + float64(i), 123.4}}
				if c.Direction != Up {
					r.down = d
				}
				if c.Direction != Down {
					r.up = d
				}
				f.results = append(f.results, r)
			}
			m.entries = append(m.entries, f)
		}
	}
	var page bytes.Buffer
	if err := m.document().WriteHTML(&page); err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(page.String(), "style-src 'unsafe-inline'", "style-src 'unsafe-inline'; script-src 'unsafe-inline'", 1)
	dir := t.TempDir()
	file := filepath.Join(dir, "page.html")
	if err := os.WriteFile(file, []byte(strings.Replace(text, "</head>", look+"</head>", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	dom := testenv.Browse(t, chromium, filepath.Join(dir, "profile"), file, "--window-size=1200,900", "--dump-dom")
	title := regexp.MustCompile(`<title>(\{.*?\})</title>`).FindSubmatch(dom)
	if title == nil {
		t.Fatalf("the page did not load:\n%.2000s", dom)
	}
	// Each line is drawn in the chart and beside its name.
	if want := `{"broad":[],"cut":[],"crowded":[],"lines":26,"styles":13}`; string(title[1]) != want {
		t.Errorf("the browser saw %s, want %s", title[1], want)
	}
}
