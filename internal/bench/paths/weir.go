package paths

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"weir/internal/bench/cpu"
	"weir/internal/bench/testbed"
	"weir/internal/bench/traffic"
	"weir/internal/host/proc"
)

const (
	// weirStart is how long the daemon may take until it forwards. On a busy machine
	// the kernel verifies its programs for many seconds.
	weirStart = time.Minute
	// quietFor is how long the daemon has to be idle before its start counts as
	// finished.
	quietFor = 200 * time.Millisecond
)

// startWeir runs this program as the firewall's daemon. With the TCX hook frames enter by
// GRO, as for the kernel's paths.
func startWeir(o WeirOptions) func(context.Context, *traffic.Setup) (func() error, error) {
	return func(ctx context.Context, w *traffic.Setup) (func() error, error) {
		var undo UndoList
		if o.Hook == "tcx" {
			if err := enterGRO(w, &undo); err != nil {
				return nil, errors.Join(err, undo.Run())
			}
		}
		stop, err := startDaemon(ctx, w, o)
		if err != nil {
			return nil, errors.Join(err, undo.Run())
		}
		undo.Add(stop)
		return undo.Run, nil
	}
}

func startDaemon(ctx context.Context, w *traffic.Setup, o WeirOptions) (stop func() error, err error) {
	return StartWeir(ctx, w.Testbed, o.spread()+before(weirRules(w.Case), weirFilter, o.further), o)
}

// spread returns the lines for set spread.
func (o *WeirOptions) spread() (text string) {
	if o.Spread == "" {
		return ""
	}
	for _, door := range []testbed.Place{testbed.NearDoor, testbed.FarDoor} {
		text += fmt.Sprintf("set spread %s %s\n", door.Device, o.Spread)
	}
	return text
}

// StartWeir runs weir with these rules as the firewall's daemon, and waits until it forwards.
func StartWeir(ctx context.Context, b *testbed.Testbed, rules string, o WeirOptions) (stop func() error, err error) {
	file := filepath.Join(b.Folder, testbed.RulesFile)
	if err := os.WriteFile(file, []byte(rules), 0o600); err != nil {
		return nil, fmt.Errorf("write the rules: %w", err)
	}
	// Not bound to ctx, because it is stopped in a way that cleans up.
	args := []string{"run", "-f", file, "--netns", b.Firewall(), "--hook", o.Hook}
	if o.Prefetch != "" {
		args = append(args, "--prefetch", o.Prefetch)
	}
	cmd := exec.Command(b.Program, args...)
	var messages bytes.Buffer
	cmd.Stdout, cmd.Stderr = &messages, &messages
	d := &daemon{testbed: b, netns: b.Firewall(), ended: make(chan error, 1), messages: &messages}
	if err := d.start(cmd); err != nil {
		return nil, fmt.Errorf("start weir: %w", err)
	}
	err = d.waitUntilLoaded(ctx)
	if err == nil {
		err = d.waitUntilQuiet(ctx)
	}
	if err != nil {
		ended := d.over // then the error has its output
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
	testbed  *testbed.Testbed
	netns    string
	process  *os.Process
	ended    chan error
	over     bool
	messages *bytes.Buffer // readable once it has ended
}

// start starts the daemon and notes its PID, so that the next run can end it if this one
// is killed.
func (d *daemon) start(cmd *exec.Cmd) error {
	if err := cmd.Start(); err != nil {
		return err
	}
	d.process = cmd.Process
	go func() { d.ended <- cmd.Wait() }()
	note := []byte(strconv.Itoa(cmd.Process.Pid))
	if err := os.WriteFile(filepath.Join(d.testbed.Folder, testbed.PidFile), note, 0o600); err != nil {
		return errors.Join(err, cmd.Process.Kill())
	}
	return nil
}

func (d *daemon) waitUntilLoaded(ctx context.Context) error {
	deadline := time.After(weirStart)
	for {
		if exec.CommandContext(ctx, d.testbed.Program, "info", "--netns", d.netns).Run() == nil {
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

// waitUntilQuiet waits until the daemon is idle. After its rules are loaded it works for
// about a second on the measured cores. A short run of real programs during that time had
// half of the connections of the next run.
func (d *daemon) waitUntilQuiet(ctx context.Context) error {
	deadline := time.Now().Add(weirStart)
	for before := -1.0; ; {
		now, err := cpu.ProcessTime(d.process.Pid)
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

// stop ends the daemon with weir stop. If it does not end, it is killed, which is an
// error.
func (d *daemon) stop() error {
	if d.over {
		return nil
	}
	out, err := exec.Command(d.testbed.Program, "stop", "--netns", d.netns).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("weir stop: %w: %s", err, strings.TrimSpace(string(out)))
	}
	select {
	case <-d.ended:
		d.over = true
		return err
	case <-time.After(testbed.WeirStop):
	}
	if kill := d.process.Kill(); kill == nil {
		<-d.ended
	}
	d.over = true
	return errors.Join(err, fmt.Errorf("weir run did not end within %v of weir stop, and was killed", testbed.WeirStop))
}

func orEnded(err error) error {
	if err == nil {
		return errors.New("exit status 0")
	}
	return err
}
