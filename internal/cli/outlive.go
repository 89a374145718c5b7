package cli

import (
	"context"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// outlivePipe keeps the process alive after its output's reader has gone, until the
// returned function is called. The process must undo its changes first.
func outlivePipe() (stop func()) {
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, unix.SIGPIPE)
	return func() { signal.Stop(broken) }
}

// outlive is for commands that build something, report progress, and must take it down
// again. Until the returned function is called, a closing terminal ends ctx as Ctrl-C
// does, and a pipe that nobody reads does not end the process. Under nohup a closing
// terminal changes nothing.
func outlive(ctx context.Context) (context.Context, func()) {
	heard := outlivePipe()
	if signal.Ignored(unix.SIGHUP) {
		return ctx, heard
	}
	ctx, stop := signal.NotifyContext(ctx, unix.SIGHUP)
	return ctx, func() { stop(); heard() }
}
