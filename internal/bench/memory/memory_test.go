package memory

import (
	"context"
	"strings"
	"testing"

	"weir/internal/testenv"
)

// A touch of 256 MiB, which no core's own cache holds, takes longer than one of 1 MiB,
// and neither is free. Other load only makes touches slower, so the fastest runs are
// compared.
func TestMemory(t *testing.T) {
	testenv.NeedRoot(t)
	report, err := Run(context.Background(), Options{Sizes: []int{1, 256}, Runs: 3})
	if err != nil {
		t.Fatal(err)
	}
	near, far := report.Rows[0], report.Rows[1]
	if near.NS.Min() < 1 || far.NS.Min() < 1.2*near.NS.Min() {
		t.Errorf("%.1f ns in 1 MiB, %.1f ns in 256 MiB", near.NS.Min(), far.NS.Min())
	}
	if near.States != 4096 || len(far.NS) != 3 {
		t.Errorf("%+v", report.Rows)
	}
	var text strings.Builder
	control := "Control: 256 MiB, measured twice"
	if !report.Control.OK { // the machine is busy
		control = "No verdict: 256 MiB"
	}
	if err := report.Document().WriteText(&text, 80); err != nil || !strings.Contains(text.String(), control) {
		t.Errorf("%v\n%s", err, text.String())
	}
	if _, err := Run(context.Background(), Options{Sizes: []int{0}, Runs: 1}); err == nil {
		t.Error("an array of nothing was measured")
	}
}
