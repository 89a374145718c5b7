package cli

import (
	"errors"
	"fmt"

	"weir/internal/fw/bpfload"
	"weir/internal/missing"
)

// Exit statuses of every command.
const (
	exitDone    = 0 // done
	exitRefused = 1 // refused, or a check failed
	exitUsage   = 2 // wrong usage, or a capability is missing

	exitUndecided = 3 // of weir bench compare: the reports decide nothing
)

// UsageError is an error in the command line.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }
func (e *UsageError) Unwrap() error { return e.Err }

// ErrSilent ends a command with status 1. The command has printed the reason.
var ErrSilent = errors.New("refused")

// StatusError ends a command with its own exit status. The command has already printed
// the reason.
type StatusError struct{ Status int }

func (e *StatusError) Error() string { return fmt.Sprintf("exit status %d", e.Status) }

var errNotRoot = missing.Errorf("must be run as root: it loads BPF programs and changes the network")

var errNotReader = missing.Errorf("must be run as root: only root may read weir's states, counters and records")

// status returns the exit status for a command's error.
func status(err error) int {
	var usage *UsageError
	var lacks *missing.Error
	var own *StatusError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &own):
		return own.Status
	case errors.As(err, &usage), errors.As(err, &lacks), errors.Is(err, bpfload.ErrMounts):
		return exitUsage
	}
	return exitRefused
}
