package cli

import (
	"errors"
	"fmt"

	"weir/internal/fw/bpfload"
)

// Exit statuses of every command.
const (
	exitDone    = 0 // done
	exitRefused = 1 // refused, or a check failed
	exitUsage   = 2 // wrong usage, or a capability is missing
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

// MissingError is an error that names a capability the machine or the user lacks.
type MissingError struct{ Err error }

func (e *MissingError) Error() string { return e.Err.Error() }
func (e *MissingError) Unwrap() error { return e.Err }

// MissingCapability makes the exit status 2.
func (e *MissingError) MissingCapability() bool { return true }

var errNotRoot = &MissingError{errors.New("must be run as root: it loads BPF programs and changes the network")}

// missing is implemented by errors that name a capability the machine lacks:
// no root, no BPF, too old a kernel.
type missing interface{ MissingCapability() bool }

// status returns the exit status for a command's error.
func status(err error) int {
	var usage *UsageError
	var lacks missing
	var own *StatusError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &own):
		return own.Status
	case errors.As(err, &usage), errors.Is(err, bpfload.ErrMounts):
		return exitUsage
	case errors.As(err, &lacks) && lacks.MissingCapability():
		return exitUsage
	}
	return exitRefused
}
