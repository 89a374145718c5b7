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

// examination is what doctor says of a machine while a benchmark loads it.
type examination struct {
	router string // the namespace that is looked at; "": the process's own
	name   string // what the report calls it
	said   chan string
}

// begin looks once, in a process of its own: a namespace is a process's. It waits
// for delay first, until TCP has found its rate, and gives up when ctx ends.
func (x *examination) begin(ctx context.Context, delay, span time.Duration) {
	x.said = make(chan string, 1)
	go func() {
		select {
		case <-ctx.Done():
			x.said <- "the benchmark ended before it could look"
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
		return fmt.Sprintf("it could not look: %v", errors.Join(errors.New(strings.TrimSpace(complaint.String())), err))
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

// join adds what it says under the benchmark's first figures. It waits for it.
func (x *examination) join(d *report.Document) {
	if x.said == nil {
		return // no run began
	}
	says := report.Section{Title: "What limits " + x.name + ", as weir doctor saw it during the first run", Text: []string{<-x.said}}
	d.Sections = slices.Insert(d.Sections, min(1, len(d.Sections)), says)
}
