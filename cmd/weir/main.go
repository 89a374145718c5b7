// Command weir is a firewall and router; see internal/cli for its commands.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"weir/internal/cli"
)

func main() {
	os.Exit(run())
}

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	env := &cli.Env{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	return cli.Run(ctx, env, cli.Arguments(os.Args))
}
