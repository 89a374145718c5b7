package lib

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"weir/internal/fw/reason"
	"weir/internal/fw/rundir"
	"weir/internal/fw/state"
	"weir/internal/fw/view"
)

// notRunningText is what weir stop says if there is nothing to stop.
const notRunningText = "weir is not running here"

func notRunning(out []byte) bool { return bytes.Contains(out, []byte(notRunningText)) }

// StartPatience is how long a start of weir may take on a busy machine, including the
// wait for another daemon.
const StartPatience = time.Minute

// Rules writes a rule file and returns its path.
func (b *Box) Rules(text string) string {
	b.Helper()
	f, err := os.CreateTemp(b.dir, "rules-*.conf")
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		b.Fatal(err)
	}
	return f.Name()
}

// WeirRun starts weir run in fw with these rules and waits until it is ready.
func (b *Box) WeirRun(rules string, args ...string) *Process {
	b.Helper()
	p := b.WeirStart(rules, args...)
	b.awaitReady(p)
	return p
}

func (b *Box) awaitReady(p *Process) {
	b.Helper()
	b.Until(StartPatience, "weir run is ready", func() bool {
		if !p.Running() {
			b.Fatalf("weir run ended:\n%s", p.Said())
		}
		return strings.Contains(p.Said(), "weir: ready")
	})
}

// WeirStart starts weir run and does not wait for it.
func (b *Box) WeirStart(rules string, args ...string) *Process {
	b.Helper()
	file := rules
	if strings.Contains(rules, "\n") {
		file = b.Rules(rules)
	}
	return b.WeirCommand(append([]string{"run", "--hook", b.Hook, "-f", file}, args...)...)
}

// prefetchVariable is the environment variable that turns prefetching on in the stories
// under XDP, with the value on.
const prefetchVariable = "WEIR_TEST_PREFETCH"

// WeirCommand starts a command of weir in fw and does not wait for it.
func (b *Box) WeirCommand(args ...string) *Process {
	b.Helper()
	return b.start(b.host(), b.command(args))
}

// command returns a command of weir in fw. Whoever starts it there spares weir a restart in that
// namespace. A story that sets how weir run prefetches overrides the variable.
func (b *Box) command(args []string) *exec.Cmd {
	all := []string{"--netns", b.namespace()}
	if way := os.Getenv(prefetchVariable); way != "" && b.Hook == "xdp" && args[0] == "run" {
		all, args = append(all, "run", "--prefetch", way), args[1:]
	}
	return exec.Command(string(b.weir), append(all, args...)...)
}

// WeirUnder is WeirCommand with one more environment variable.
func (b *Box) WeirUnder(variable string, args ...string) *Process {
	b.Helper()
	return b.WeirUnderAll([]string{variable}, args...)
}

// WeirUnderAll is WeirUnder with several of them.
func (b *Box) WeirUnderAll(variables []string, args ...string) *Process {
	b.Helper()
	cmd := b.command(args)
	cmd.Env = append(os.Environ(), variables...)
	return b.start(b.host(), cmd)
}

// AtTerminal is WeirCommand at a terminal, where somebody types.
func (b *Box) AtTerminal(typed io.Reader, args ...string) *Process {
	b.Helper()
	cmd := exec.Command("script", "-qfec", strings.Join(b.command(args).Args, " "), "/dev/null")
	cmd.Stdin = typed
	return b.start("", cmd)
}

// Weir runs a command of weir in fw, which must succeed, and returns its output.
func (b *Box) Weir(args ...string) string {
	b.Helper()
	out, status := b.WeirStatus(args...)
	if status != 0 {
		b.Fatalf("weir %s: exit status %d:\n%s", strings.Join(args, " "), status, out)
	}
	return out
}

// WeirStatus runs a command of weir in fw and returns its standard output and error, and
// its exit status.
func (b *Box) WeirStatus(args ...string) (string, int) {
	b.Helper()
	// It must also work after the test's end, when its context is done.
	ctx, cancel := context.WithTimeout(context.Background(), Scaled(programTime))
	defer cancel()
	cmd := exec.CommandContext(ctx, string(b.weir), append([]string{"--netns", b.namespace()}, args...)...)
	cmd.Dir = b.dir
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := b.Lab.Start(b.host(), cmd)
	if err == nil {
		err = cmd.Wait()
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		b.Fatalf("weir %s: %v", strings.Join(args, " "), err)
	}
	return out.String(), cmd.ProcessState.ExitCode()
}

// WeirJSON runs a command of weir in fw with --json, and returns what it prints.
func WeirJSON[T any](b *Box, args ...string) T {
	b.Helper()
	var v T
	if err := json.Unmarshal([]byte(b.Weir(append(args, "--json")...)), &v); err != nil {
		b.Fatalf("weir %s --json: %v", strings.Join(args, " "), err)
	}
	return v
}

// Rule returns the rule whose text contains a part; there must be one.
func (b *Box) Rule(part string) view.Rule {
	b.Helper()
	var found []view.Rule
	for _, r := range WeirJSON[[]view.Rule](b, "rules") {
		if strings.Contains(r.Text, part) {
			found = append(found, r)
		}
	}
	if len(found) != 1 {
		b.Fatalf("%d rules contain %q:\n%s", len(found), part, b.Weir("rules"))
	}
	return found[0]
}

// States returns the connections that a filter selects.
func (b *Box) States(filter ...string) []state.View {
	b.Helper()
	return WeirJSON[[]state.View](b, append([]string{"states"}, filter...)...)
}

// Info returns weir's condition.
func (b *Box) Info() view.Info {
	b.Helper()
	return WeirJSON[view.Info](b, "info")
}

// Packets returns how many packets had a reason at an interface.
func (b *Box) Packets(device string, why reason.Reason) uint64 {
	b.Helper()
	for _, n := range b.Info().Interfaces {
		if n.Name != device {
			continue
		}
		for _, c := range n.Reasons {
			if c.Reason == why {
				return c.Packets
			}
		}
	}
	return 0
}

// Dump writes weir's state to the log of a failed test.
func (b *Box) Dump() {
	for _, command := range [][]string{{"info"}, {"rules", "-v"}, {"states", "-v"}, {"interfaces"}} {
		out, _ := b.WeirStatus(command...)
		b.Logf("weir %s:\n%s", strings.Join(command, " "), out)
	}
}

// AwaitHook waits until weir has attached to an interface.
func (b *Box) AwaitHook(device string) {
	b.Helper()
	b.Until(10*time.Second, "weir is attached to "+device, func() bool {
		for _, n := range WeirJSON[view.Interfaces](b, "interfaces").Interfaces {
			if n.Name == device && n.Hook != "none" {
				return true
			}
		}
		return false
	})
}

// Hooks returns the interfaces of fw from weir interfaces, by name.
func (b *Box) Hooks() map[string]rundir.Interface {
	b.Helper()
	all := make(map[string]rundir.Interface)
	for _, n := range WeirJSON[view.Interfaces](b, "interfaces").Interfaces {
		all[n.Name] = n
	}
	return all
}

// Sources returns what weir sources prints.
func (b *Box) Sources() []view.Source {
	b.Helper()
	return WeirJSON[[]view.Source](b, "sources")
}
