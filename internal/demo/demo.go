package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"weir/examples"
	"weir/internal/lab"
	"weir/internal/missing"
)

// DefaultName is the prefix of the namespaces' names. It differs from that of weir lab,
// so the user's lab is safe.
const DefaultName = "weir-demo"

// programs are what the demo runs, each with its package.
var programs = [...]struct{ name, from string }{
	{"ping", "iputils-ping"}, {"iperf3", "iperf3"}, {"curl", "curl"},
}

// Options of the demonstration.
type Options struct {
	Name   string // prefix of the namespaces' names; "" for [DefaultName]
	Stdout io.Writer
	Weir   string // the binary to run; "": this process's
}

// Run shows weir under both hooks. An error says which check failed.
func Run(ctx context.Context, o Options) error {
	for _, p := range programs {
		if _, err := exec.LookPath(p.name); err != nil {
			return missing.Errorf("the demo uses the program %s: install %s", p.name, p.from)
		}
	}
	if o.Name == "" {
		o.Name = DefaultName
	}
	if o.Weir == "" {
		o.Weir = "/proc/self/exe"
	}
	for _, hook := range []string{"tcx", "xdp"} {
		if err := show(ctx, o, hook); err != nil {
			return fmt.Errorf("under %s: %w", hook, err)
		}
	}
	return nil
}

// show builds the lab for one hook, runs the checks and removes the lab.
func show(ctx context.Context, o Options, hook string) (err error) {
	// An earlier demo may have been killed.
	if _, err := lab.Remove(o.Name, lab.Topology{}); err != nil {
		return err
	}
	options := lab.Options{Name: o.Name}
	if hook == "xdp" {
		options.Offloads = lab.OffloadsOff
	}
	g := &gateway{Options: o, hook: hook}
	defer func() {
		if ctx.Err() != nil || err != nil && interrupted(ctx) { // the interrupt caused whatever failed
			err = errors.New("interrupted")
		}
		err = errors.Join(err, g.down())
	}()
	if g.lab, err = lab.Up(ctx, options); err != nil {
		return err
	}
	if err := g.up(ctx); err != nil {
		return err
	}
	return g.checks(ctx)
}

// interrupted reports whether Ctrl-C caused a failure. Ctrl-C also ends the programs that
// the demo runs. Their end may be seen before this process gets the signal.
func interrupted(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return true
	case <-time.After(100 * time.Millisecond):
		return false
	}
}

// gateway is weir between the two networks of the lab.
type gateway struct {
	Options
	hook   string
	lab    *lab.Lab
	folder string
	daemon *exec.Cmd
	ended  chan struct{} // closed when the daemon has ended
}

// up starts weir run and waits until it is ready.
func (g *gateway) up(ctx context.Context) error {
	fmt.Fprintf(g.Stdout, "\n%s: lan --- fw --- wan, offloads %s, rules examples/gateway.conf\n", g.hook, offloads(g.hook))
	folder, err := os.MkdirTemp("", "weir-demo-")
	if err != nil {
		return fmt.Errorf("make a folder for the rules: %w", err)
	}
	g.folder = folder
	rules := filepath.Join(folder, "gateway.conf")
	if err := os.WriteFile(rules, []byte(examples.GatewayConf), 0o600); err != nil {
		return fmt.Errorf("write the rules: %w", err)
	}
	log, err := os.Create(filepath.Join(folder, "log"))
	if err != nil {
		return fmt.Errorf("make the log: %w", err)
	}
	defer log.Close()
	g.daemon = g.weir(context.WithoutCancel(ctx), "run", "-f", rules, "--hook", g.hook)
	g.daemon.Stdout, g.daemon.Stderr = log, log
	if err := g.daemon.Start(); err != nil {
		return fmt.Errorf("start weir run: %w", err)
	}
	g.ended = make(chan struct{})
	go func() {
		defer close(g.ended)
		g.daemon.Wait() //nolint:errcheck // whoever waits for it knows why it ends
	}()
	return g.ready(ctx, log.Name())
}

func offloads(hook string) string {
	if hook == "xdp" {
		return "off, as on a wire"
	}
	return "on"
}

// readyPatience is how long weir run may take to put its rules in force.
const readyPatience = 30 * time.Second

// ready waits until weir info says that rules are loaded.
func (g *gateway) ready(ctx context.Context, log string) error {
	ctx, cancel := context.WithTimeout(ctx, readyPatience)
	defer cancel()
	for g.weir(ctx, "info").Run() != nil {
		select {
		case <-g.ended:
			return fmt.Errorf("weir run ended: %s", read(log))
		case <-ctx.Done():
			return fmt.Errorf("weir run did not become ready: %w\n%s", ctx.Err(), read(log))
		case <-time.After(50 * time.Millisecond):
		}
	}
	return nil
}

// read returns the text of a file, or what can be read of it.
func read(file string) string {
	text, _ := os.ReadFile(file) //nolint:errcheck // see above
	return strings.TrimSpace(string(text))
}

// weir returns a command of weir in the gateway's namespace.
func (g *gateway) weir(ctx context.Context, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, g.Weir, append([]string{"--netns", g.lab.Namespace(lab.FW)}, args...)...)
}

// nothingToStop is the message of weir stop if an interrupted start has undone itself.
const nothingToStop = "nothing to stop"

// end asks the daemon to end, again and again until it does: a daemon that has just
// started may miss the first signal, and weir stop may not find it yet.
func (g *gateway) end() {
	for {
		_ = g.daemon.Process.Signal(unix.SIGTERM) // it may have ended by itself
		select {
		case <-g.ended:
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// down ends weir and removes everything that the demo made, even after an interrupt.
func (g *gateway) down() error {
	var errs []error
	if g.ended != nil {
		g.end()
		if out, err := g.weir(context.Background(), "stop").CombinedOutput(); err != nil && !bytes.Contains(out, []byte(nothingToStop)) {
			errs = append(errs, fmt.Errorf("weir stop: %w: %s", err, out))
		}
	}
	_, err := lab.Remove(g.Name, lab.Topology{})
	errs = append(errs, err)
	if g.folder != "" {
		errs = append(errs, os.RemoveAll(g.folder))
	}
	return errors.Join(errs...)
}
