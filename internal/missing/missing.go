package missing

import "fmt"

// Error says what is missing.
type Error struct{ Err error }

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// Errorf returns an [Error] with a text.
func Errorf(format string, args ...any) error { return &Error{fmt.Errorf(format, args...)} }
