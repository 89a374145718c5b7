package cli

import (
	"context"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// outlivePipe keeps the process alive where nobody reads what it prints any more, until
// the function that it returns is called: what it has changed has to be put back.
func outlivePipe() (stop func()) {
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, unix.SIGPIPE)
	return func() { signal.Stop(broken) }
}

// outlive is for what builds something that has to be taken down again, and says on the
// way how it goes. It lets a terminal that closes end ctx, as Ctrl-C does, and the process
// outlive a pipe that nobody reads, until the function that it returns is called. Who was
// told to survive the terminal (nohup) does.
func outlive(ctx context.Context) (context.Context, func()) {
	heard := outlivePipe()
	if signal.Ignored(unix.SIGHUP) {
		return ctx, heard
	}
	ctx, stop := signal.NotifyContext(ctx, unix.SIGHUP)
	return ctx, func() { stop(); heard() }
}
