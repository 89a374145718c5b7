package memory

import (
	"strings"
	"testing"

	"weir/internal/stats"
)

// The table, the verdict and the chart write a figure alike, whatever it is.
func TestFigures(t *testing.T) {
	r := Report{Rows: []Row{{MiB: 1, States: 4096, NS: stats.Sample{0.04, 0.04}}, {MiB: 8, States: 32768, NS: stats.Sample{99.96, 101}},
		{MiB: 640, States: 2621440, NS: stats.Sample{1234.5, 1234.5, 99.96}}}, Control: stats.NewControl()}
	d := r.Document()
	if err := d.CheckFigures(); err != nil {
		t.Error(err)
	}
	if want := "takes 0.0400 ns in 1 MiB and 1,230 ns in 640 MiB."; !strings.Contains(d.Verdicts[0], want) {
		t.Errorf("%q, want %q", d.Verdicts[0], want)
	}
}
