package dataplane

import (
	"fmt"

	"weir/internal/fw/bpfload"
)

// An Attachment is an interface that weir filters on. Each has TCX programs, first at its
// ingress and last at its egress.
type Attachment struct {
	Ifindex int
	Name    string // for errors only
	XDP     bool   // also an XDP program, in the driver
}

// ErrForeign is in an AttachError if the interface has an XDP program that is not weir's.
// The error names the program, its id and its holders.
var ErrForeign = bpfload.ErrForeign

// DescribeProgram returns a BPF program's name, its pins and the processes that have it
// open.
func DescribeProgram(id uint32) string {
	var text string
	err := bpfload.At("").Do(func() error {
		text = bpfload.DescribeProgram(id)
		return nil
	})
	if err != nil {
		return fmt.Sprintf("program %d", id)
	}
	return text
}

// ErrNative is in an AttachError, as a RefusalError, if the driver refuses the XDP
// program: it has no native XDP, the MTU exceeds its buffers, or it has too few queues.
// The caller may attach without XDP.
var ErrNative = bpfload.ErrNative

// A RefusalError holds the driver's message.
type RefusalError = bpfload.RefusalError

// An AttachError says which interface a program could not be attached to.
type AttachError struct {
	Attachment Attachment
	Err        error
}

func (e *AttachError) Error() string { return fmt.Sprintf("%s: %v", e.Attachment.Name, e.Err) }

// Unwrap returns the cause.
func (e *AttachError) Unwrap() error { return e.Err }
