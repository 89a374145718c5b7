package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"weir/internal/fw/bpfload"
	"weir/internal/host/netif"
	"weir/internal/missing"
)

// Env holds what a command may use besides its arguments.
type Env struct {
	Stdin  io.Reader
	Stdout io.Writer // data
	Stderr io.Writer // messages and errors
	Netns  string    // --netns as given; commands run inside it already
}

var errNoNamespace = errors.New("--netns is empty: a name of ip netns, or a path")

// enter joins the network namespace that --netns names. An empty name is an error: a
// script with an unset variable does not mean the machine's own namespace.
func (e *Env) enter() error {
	if e.Netns == "" {
		return &UsageError{errNoNamespace}
	}
	path, err := netif.NamespacePath(e.Netns)
	if err != nil {
		return &UsageError{err}
	}
	switch err := netif.Enter(path); {
	case errors.Is(err, fs.ErrPermission):
		return &missing.Error{Err: err}
	case errors.Is(err, unix.EINVAL):
		return &UsageError{fmt.Errorf("%s is no network namespace", path)}
	default:
		return err
	}
}

func needRoot() error {
	if os.Geteuid() != 0 {
		return errNotRoot
	}
	return nil
}

// needBPF is needRoot for commands that load BPF programs, themselves or through `weir
// run`.
func needBPF() error {
	if err := needRoot(); err != nil {
		return err
	}
	return bpfload.Need()
}

// print prints v as JSON, or its text.
func (e *Env) print(asJSON bool, v any, text func(io.Writer) error) error {
	if asJSON {
		return e.printJSON(v)
	}
	return text(e.Stdout)
}

// printJSON prints v for people and programs, over several lines.
func (e *Env) printJSON(v any) error {
	encoder := e.encoder()
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}

// printFollowed prints v as JSON. If the command goes on to print, each value is a line.
func (e *Env) printFollowed(v any, follow bool) error {
	if follow {
		return e.encoder().Encode(v)
	}
	return e.printJSON(v)
}

// encoder writes JSON. It keeps < and > readable, because rules contain many.
func (e *Env) encoder() *json.Encoder {
	encoder := json.NewEncoder(e.Stdout)
	encoder.SetEscapeHTML(false)
	return encoder
}
