package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"weir/internal/host/proc"
)

const (
	// Files in the benchmark's folder.
	rulesFile = "gateway.conf"
	pidFile   = "weir.pid"
	// weirStart is how long the daemon may take until it forwards; on a machine
	// with other work the kernel checks its programs for many seconds.
	weirStart = time.Minute
	// weirStop is how long it may take to end after weir stop.
	weirStop = 10 * time.Second
	// quietFor is how long the daemon has to have been quiet to be done with its
	// start.
	quietFor = 200 * time.Millisecond
)

// startWeir runs this program as the firewall's daemon. At the TCX hook frames
// enter by GRO, as they do for the kernel's paths.
func startWeir(ctx context.Context, s *setting, w *way) (func() error, error) {
	var undo undoList
	if w.path.hook == "tcx" {
		if err := enterGRO(w, &undo); err != nil {
			return nil, errors.Join(err, undo.run())
		}
	}
	stop, err := startDaemon(ctx, s, w)
	if err != nil {
		return nil, errors.Join(err, undo.run())
	}
	undo.add(stop)
	return undo.run, nil
}

func startDaemon(ctx context.Context, s *setting, w *way) (stop func() error, err error) {
	file := filepath.Join(s.dir, rulesFile)
	if err := os.WriteFile(file, []byte(weirRules(w.c)), 0o600); err != nil {
		return nil, fmt.Errorf("write the rules: %w", err)
	}
	// Not bound to ctx: it is stopped in its own way, which cleans up.
	args := []string{"run", "-f", file, "--netns", w.net.firewall(), "--hook", w.path.hook}
	if s.options != nil && s.options.Prefetch != "" {
		args = append(args, "--prefetch", s.options.Prefetch)
	}
	cmd := exec.Command(s.program, args...)
	var messages bytes.Buffer
	cmd.Stdout, cmd.Stderr = &messages, &messages
	d := &daemon{setting: s, netns: w.net.firewall(), ended: make(chan error, 1), messages: &messages}
	if err := d.start(cmd); err != nil {
		return nil, fmt.Errorf("start weir: %w", err)
	}
	err = d.waitUntilLoaded(ctx)
	if err == nil {
		err = d.waitUntilQuiet(ctx)
	}
	if err != nil {
		ended := d.over // then what it said is in the error
		err = errors.Join(err, d.stop())
		if said := strings.TrimSpace(messages.String()); !ended && said != "" {
			err = fmt.Errorf("%w; it said: %s", err, said)
		}
		return nil, err
	}
	return d.stop, nil
}

// daemon is a running weir.
type daemon struct {
	setting  *setting
	netns    string
	process  *os.Process
	ended    chan error
	over     bool
	messages *bytes.Buffer // may be read once it has ended
}

// start starts the daemon and notes its number, so that the next run can end it
// if this one is killed.
func (d *daemon) start(cmd *exec.Cmd) error {
	if err := cmd.Start(); err != nil {
		return err
	}
	d.process = cmd.Process
	go func() { d.ended <- cmd.Wait() }()
	note := []byte(strconv.Itoa(cmd.Process.Pid))
	if err := os.WriteFile(filepath.Join(d.setting.dir, pidFile), note, 0o600); err != nil {
		return errors.Join(err, cmd.Process.Kill())
	}
	return nil
}

func (d *daemon) waitUntilLoaded(ctx context.Context) error {
	deadline := time.After(weirStart)
	for {
		if exec.CommandContext(ctx, d.setting.program, "info", "--netns", d.netns).Run() == nil {
			return nil
		}
		select {
		case err := <-d.ended:
			d.over = true
			return fmt.Errorf("weir run ended: %w: %s", orEnded(err), strings.TrimSpace(d.messages.String()))
		case <-deadline:
			return fmt.Errorf("weir run did not load its rules within %v", weirStart)
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// waitUntilQuiet waits until the daemon has nothing more to do. When its rules are
// loaded it goes on for a second or so on the cores that are measured: a short run
// of real programs beside that saw a half of the connections that the next had.
func (d *daemon) waitUntilQuiet(ctx context.Context) error {
	deadline := time.Now().Add(weirStart)
	for before := -1.0; ; {
		now, err := processTime(d.process.Pid)
		if err != nil {
			return err
		}
		if before >= 0 && now-before <= 1.0/proc.TicksPerSecond {
			return nil
		}
		if before = now; time.Now().After(deadline) {
			return fmt.Errorf("weir run was still busy %v after it had loaded its rules", weirStart)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(quietFor):
		}
	}
}

// stop ends the daemon with weir stop; one that does not end is killed, which
// is an error.
func (d *daemon) stop() error {
	if d.over {
		return nil
	}
	out, err := exec.Command(d.setting.program, "stop", "--netns", d.netns).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("weir stop: %w: %s", err, strings.TrimSpace(string(out)))
	}
	select {
	case <-d.ended:
		d.over = true
		return err
	case <-time.After(weirStop):
	}
	if kill := d.process.Kill(); kill == nil {
		<-d.ended
	}
	d.over = true
	return errors.Join(err, fmt.Errorf("weir run did not end within %v of weir stop, and was killed", weirStop))
}

func orEnded(err error) error {
	if err == nil {
		return errors.New("exit status 0")
	}
	return err
}

// stopLeftover ends the weir of a killed benchmark and takes down what it left
// in its namespace.
func stopLeftover(s *setting, netns string) error {
	if err := endLeftover(s.dir); err != nil {
		return err
	}
	if err := endStrays(s.options.name); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join("/run/netns", netns)); err != nil {
		return nil
	}
	if exec.Command(s.program, "info", "--netns", netns).Run() != nil {
		return nil // nothing is loaded there
	}
	out, err := exec.Command(s.program, "stop", "--netns", netns).CombinedOutput()
	if err != nil {
		return fmt.Errorf("stop the weir of an earlier run: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

// endLeftover kills the daemon that is noted in dir, if the process of that
// number is still the one that reads its rules there.
func endLeftover(dir string) error {
	b, err := os.ReadFile(filepath.Join(dir, pidFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("find the weir of an earlier run: %w", err)
	}
	pid, err := strconv.Atoi(string(b))
	if err != nil {
		return fmt.Errorf("find the weir of an earlier run: %w", err)
	}
	for deadline := time.Now().Add(weirStop); isDaemon(pid, dir); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			return fmt.Errorf("the weir of an earlier run, process %d, does not end", pid)
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("end the weir of an earlier run: %w", err)
		}
	}
	return nil
}

func isDaemon(pid int, dir string) bool {
	arguments, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return err == nil && bytes.Contains(arguments, []byte(filepath.Join(dir, rulesFile)))
}
