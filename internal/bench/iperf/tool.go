package iperf

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strings"

	"weir/internal/missing"
)

// Version is the version of an iperf3.
type Version struct{ Major, Minor int }

func (v Version) String() string { return fmt.Sprintf("%d.%d", v.Major, v.Minor) }

// Threads reports whether each stream has its own thread, as since 3.16. Earlier versions
// use one core for each process.
func (v Version) Threads() bool { return v.Major > 3 || v.Major == 3 && v.Minor >= 16 }

// versionLine matches the version in "iperf 3.12 (cJSON 1.7.15)" and "3.10.1+".
var versionLine = regexp.MustCompile(`[0-9]+\.[0-9]+`)

// ParseVersion reads the version that iperf3 prints.
func ParseVersion(text string) (Version, error) {
	var v Version
	if _, err := fmt.Sscanf(versionLine.FindString(text), "%d.%d", &v.Major, &v.Minor); err != nil {
		return v, fmt.Errorf("no version of iperf3 in %q: %w", text, err)
	}
	return v, nil
}

// Tool is the iperf3 of this machine.
type Tool struct {
	Path    string
	Version Version
}

// Find finds iperf3. If it is missing or older than 3.9, the error is a [missing.Error].
func Find(ctx context.Context) (*Tool, error) {
	path, err := exec.LookPath("iperf3")
	if err != nil {
		return nil, missing.Errorf("the program iperf3 is not installed (package iperf3)")
	}
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return nil, fmt.Errorf("ask %s for its version: %w", path, err)
	}
	line, _, _ := strings.Cut(string(out), "\n")
	v, err := ParseVersion(line)
	if err != nil {
		return nil, err
	}
	if v.Major < 3 || v.Major == 3 && v.Minor < 9 {
		return nil, missing.Errorf("%s is version %s; 3.9 or newer is needed", path, v)
	}
	return &Tool{path, v}, nil
}

// mostStreams is the limit of iperf3's -P.
const mostStreams = 128

// processes returns the number of streams for each process, on a machine with that many
// cores.
func (v Version) processes(streams, cores int) []int {
	n := (streams + mostStreams - 1) / mostStreams
	if !v.Threads() {
		n = max(n, min(streams, cores))
	}
	n = max(n, 1)
	parts := make([]int, n)
	for i := range parts {
		parts[i] = streams*(i+1)/n - streams*i/n
	}
	return parts
}
