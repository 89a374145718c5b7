package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"weir/internal/bench/report"
	"weir/internal/host/doctor"
)

// examination holds doctor's findings about a machine under a benchmark's load.
type examination struct {
	router string // the namespace to examine; "": the process's own
	name   string // its name in the report
	said   chan string
}

// begin examines the machine once, in a process of its own, because a namespace belongs
// to a process. It first waits for delay, until TCP has found its rate. It stops when ctx
// ends.
func (x *examination) begin(ctx context.Context, delay, span time.Duration) {
	x.said = make(chan string, 1)
	go func() {
		select {
		case <-ctx.Done():
			x.said <- "the benchmark ended before doctor could look"
		case <-time.After(delay):
			x.said <- x.look(ctx, min(max(span, leastInterval), 10*time.Second))
		}
	}()
}

func (x *examination) look(ctx context.Context, span time.Duration) string {
	args := []string{"doctor", "--collect", "-", "--interval", span.String()}
	if x.router != "" {
		args = append([]string{"--netns", x.router}, args...)
	}
	cmd := exec.CommandContext(ctx, "/proc/self/exe", args...)
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return fmt.Sprintf("doctor could not look: %v", errors.Join(errors.New(strings.TrimSpace(complaint.String())), err))
	}
	s, err := doctor.Read(bytes.NewReader(out))
	if err != nil {
		return err.Error()
	}
	r, err := doctor.Examine(s, nil)
	if err != nil {
		return err.Error()
	}
	return r.Verdict.Sentence + "."
}

// join waits for the examination and adds its findings under the benchmark's first
// figures.
func (x *examination) join(d *report.Document) {
	if x.said == nil {
		return // no run began
	}
	says := report.Section{Title: "What limits " + x.name + ", as weir doctor saw it during the first run", Text: []string{<-x.said}}
	d.Sections = slices.Insert(d.Sections, min(1, len(d.Sections)), says)
}
