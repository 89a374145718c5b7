package forward

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"weir/internal/bench/report"
	"weir/internal/bench/traffic"
)

// sampleRate is how often perf samples per second. It is odd so that it does not run in
// step with the kernel's clock.
const sampleRate = "1999"

// profiler samples a core while a path has steady traffic.
type profiler struct {
	file string
	cmd  *exec.Cmd
	said strings.Builder
	// order and answer are the pipes to perf. perf ends if they close.
	order, answer *os.File
	found         []report.Stack
}

// profile measures the last path of a case once more, with perf on its first core. No
// figure contains the cost of perf.
func (b *benchmark) profile(ctx context.Context, c traffic.Case, e *samples) error {
	const what = "flame graph"
	if _, err := exec.LookPath("perf"); err != nil {
		b.skip(what, &c, "perf is not installed (linux-perf, or linux-tools of this kernel)")
		return nil
	}
	b.progress.Step("flame graph: %s, %s", e.path.Name, c)
	p := &profiler{file: filepath.Join(b.bed.Folder, "perf.data")}
	b.profiler = p
	_, err := b.runPath(ctx, c, e.path, e.entry, max(b.options.Seconds.Seconds(), 1), nil)
	b.profiler = nil
	if err != nil {
		return fmt.Errorf("%s: %s: %w", what, e.path.Name, err)
	}
	if len(p.found) == 0 {
		b.skip(what, &c, "perf saw nothing: "+strings.TrimSpace(p.said.String()))
		return nil
	}
	b.report.Profile = &Profile{Path: e.path.Name, Case: c, Stacks: p.found}
	return nil
}

// perfStarts limits how long perf may take to start.
const perfStarts = 20 * time.Second

// start starts to sample a core. perf starts disabled and answers when it is enabled, so
// nothing is missed however long it takes to start.
func (p *profiler) start(core int) (err error) {
	if err := p.launch(core); err != nil {
		return errors.Join(fmt.Errorf("start perf: %w", err), p.release())
	}
	if _, err := p.order.WriteString("enable\n"); err != nil {
		return p.abandon("tell perf to look", err)
	}
	if err := p.answer.SetReadDeadline(time.Now().Add(perfStarts)); err != nil {
		return p.abandon("wait for perf", err)
	}
	if _, err := p.answer.Read(make([]byte, 8)); err != nil {
		return p.abandon("wait for perf", err)
	}
	return nil
}

// launch starts perf with one end of each pipe.
func (p *profiler) launch(core int) error {
	orders, order, err := os.Pipe()
	if err != nil {
		return err
	}
	defer orders.Close()
	p.order = order
	answer, answers, err := os.Pipe()
	if err != nil {
		return err
	}
	defer answers.Close()
	p.answer = answer
	p.cmd = exec.Command("perf", "record", "-q", "-o", p.file, "-C", strconv.Itoa(core), "-e", "cpu-clock", "-F", sampleRate, "-g", "--kernel-callchains",
		"-D", "-1", "--control", "fd:3,4")
	p.cmd.Stderr, p.cmd.ExtraFiles = &p.said, []*os.File{orders, answers}
	return p.cmd.Start()
}

// release closes the pipes and removes perf's file.
func (p *profiler) release() error {
	var errs []error
	for _, end := range []*os.File{p.order, p.answer} {
		if end != nil {
			errs = append(errs, end.Close())
		}
	}
	if err := os.Remove(p.file); !errors.Is(err, fs.ErrNotExist) {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// abandon kills a perf that does not do what it was told.
func (p *profiler) abandon(what string, err error) error {
	all := errors.Join(fmt.Errorf("%s: %w", what, err), p.cmd.Process.Kill())
	_ = p.cmd.Wait() // reports only that it was killed
	return errors.Join(all, p.release())
}

// stop ends perf and reads its samples.
func (p *profiler) stop() (err error) {
	if err := p.cmd.Process.Signal(syscall.SIGINT); err != nil {
		return p.abandon("stop perf", err)
	}
	defer func() { err = errors.Join(err, p.release()) }()
	var ended *exec.ExitError // the status after the signal
	err = p.cmd.Wait()
	if err != nil && !errors.As(err, &ended) {
		return fmt.Errorf("stop perf: %w", err)
	}
	script := exec.Command("perf", "script", "-i", p.file, "-F", "comm,pid,ip,sym")
	script.Stderr = &p.said
	text, err := script.Output()
	if err != nil {
		return fmt.Errorf("read what perf saw: %w: %s", err, strings.TrimSpace(p.said.String()))
	}
	p.found = fold(string(text), os.Getpid())
	return nil
}

// unknown is perf's name for a function without a name.
const unknown = "[unknown]"

// others stands for other programs on the core.
const others = "other programs"

// fold counts equal stacks in the output of perf script. There each sample is a line with
// the program's name and number, followed by its functions, indented, the innermost
// first. A function that perf cannot name counts as part of its caller. Samples that
// belong neither to the process own nor to kernel threads have nothing to do with the
// path. They are counted together.
func fold(text string, own int) []report.Stack {
	counts := map[string]int{}
	var frames []string // functions of a sample; nil: no sample
	program, foreign := "", false
	end := func() {
		switch {
		case frames == nil:
		case foreign:
			counts[others]++
		default:
			slices.Reverse(frames)
			counts[strings.Join(append([]string{program}, frames...), "\n")]++
		}
		frames = nil
	}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		switch {
		case len(fields) == 0:
			end()
		case line[0] != ' ' && line[0] != '\t':
			end()
			last := len(fields) - 1
			program = strings.Join(fields[:last], " ")
			foreign = fields[last] != strconv.Itoa(own) && !kernelThread.MatchString(program)
		default:
			frames = slices.Grow(frames, 1) // makes it not nil
			if name := strings.Join(fields[1:], " "); name != "" && name != unknown {
				frames = append(frames, function(name))
			}
		}
	}
	end()
	var stacks []report.Stack
	for _, key := range slices.Sorted(maps.Keys(counts)) {
		stacks = append(stacks, report.Stack{Frames: strings.Split(key, "\n"), Count: counts[key]})
	}
	return stacks
}

// kernelThread matches kernel threads that forward, and the idle one.
var kernelThread = regexp.MustCompile(`^(ksoftirqd/|napi/|swapper)`)

// bpfProgram matches the kernel's name for a BPF program. It contains a hash of the
// instructions, which does not help a reader.
var bpfProgram = regexp.MustCompile(`^bpf_prog_[0-9a-f]{16}_(.+)$`)

func function(symbol string) string {
	if m := bpfProgram.FindStringSubmatch(symbol); m != nil {
		return "bpf: " + m[1]
	}
	return symbol
}
