package cli

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/bench/report"
	"weir/internal/missing"
	"weir/internal/stats"
)

// TestBenchmark checks that every benchmark says what it is, how long it takes and why it
// ended, and that its exit status says whether the result is valid.
func TestBenchmark(t *testing.T) {
	control := stats.NewControl()
	control.Refuse("it is a test")
	refused := &report.Document{Kind: "test", Title: "a test", Control: &control}
	late := &report.Document{Kind: "test", Title: "a test", Verdicts: []string{"it is fast"}}
	sound := &report.Document{Kind: "test", Title: "a test"}
	for _, test := range []struct {
		name         string
		check, run   error
		document     *report.Document
		html, want   string
		status       int
		says, prints string
	}{
		{name: "options", check: errors.New("--runs 0: want 1"), want: "bench test: --runs 0: want 1", status: exitUsage},
		{name: "nowhere to write", html: "/nonexistent/report.html", want: "the report could not be written", status: exitUsage},
		{name: "interrupted", run: context.Canceled, want: "bench test: interrupted", status: exitRefused, says: "this takes about 1m30s"},
		{name: "interrupted late", run: context.Canceled, document: late, want: "bench test: interrupted", status: exitRefused,
			prints: "No verdict: the run ended before everything was measured: it was interrupted."},
		{name: "it fails late", run: errors.New("no wire"), document: late, want: "bench test: no wire", status: exitRefused, prints: "measured: bench test: no wire."},
		{name: "it fails", run: errors.New("no wire"), want: "bench test: no wire", status: exitRefused},
		{name: "this machine lacks it", run: missing.Errorf("no iperf3"), want: "bench test: no iperf3", status: exitUsage},
		{name: "the control fails", document: refused, want: ErrSilent.Error(), status: exitRefused, prints: "it is a test"},
		{name: "sound", document: sound, status: exitDone, says: "this takes about 1m30s", prints: "a test"},
	} {
		var stdout, stderr bytes.Buffer
		ran := false
		err := (&benchmark{name: "test", check: func() error { return test.check }, rootless: true,
			estimate: func() time.Duration { return 90*time.Second + time.Millisecond },
			run: func(context.Context) (*report.Document, error) {
				ran = true
				return test.document, test.run
			}}).do(t.Context(), &Env{Stdout: &stdout, Stderr: &stderr}, &reportFlags{html: test.html})
		if status(err) != test.status || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %v with status %d, want %q with %d", test.name, err, status(err), test.want, test.status)
		}
		if wants := test.check == nil && test.html == ""; ran != wants {
			t.Errorf("%s: measured %v, want %v", test.name, ran, wants)
		}
		if !strings.Contains(stderr.String(), test.says) || !strings.Contains(stdout.String(), test.prints) {
			t.Errorf("%s: said %q and printed %q, want %q and %q", test.name, stderr.String(), stdout.String(), test.says, test.prints)
		}
	}
}

// TestBenchmarkOutlives checks that a closing terminal ends a benchmark as Ctrl-C does,
// so that it cleans up. The signal's default action would end this test.
func TestBenchmarkOutlives(t *testing.T) {
	var stdout, stderr bytes.Buffer
	err := (&benchmark{name: "test", check: func() error { return nil }, rootless: true,
		run: func(ctx context.Context) (*report.Document, error) {
			if err := unix.Kill(os.Getpid(), unix.SIGHUP); err != nil {
				return nil, err
			}
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-time.After(10 * time.Second):
				return nil, errors.New("it was not told")
			}
		}}).do(t.Context(), &Env{Stdout: &stdout, Stderr: &stderr}, &reportFlags{})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want an interruption", err)
	}
}
