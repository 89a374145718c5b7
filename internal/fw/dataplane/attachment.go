package dataplane

import (
	"fmt"

	"weir/internal/fw/bpfload"
)

// An Attachment is an interface that packets are judged on. Every one has TCX
// programs at its ingress (first of all) and its egress (last of all).
type Attachment struct {
	Ifindex int
	Name    string // for errors only
	XDP     bool   // also an XDP program, in the driver
}

// ErrForeign is in an AttachError (with the program's name, id and holders)
// where the interface has an XDP program that is not weir's.
var ErrForeign = bpfload.ErrForeign

// DescribeProgram names a BPF program, where it is pinned and who has it open.
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

// ErrNative is in an AttachError, as a RefusalError, where the driver refuses the
// XDP program: no native XDP, an MTU beyond its buffers, too few queues. The caller
// may attach without XDP.
var ErrNative = bpfload.ErrNative

// A RefusalError has what the driver says.
type RefusalError = bpfload.RefusalError

// An AttachError says which interface a program could not be attached to.
type AttachError struct {
	Attachment Attachment
	Err        error
}

func (e *AttachError) Error() string { return fmt.Sprintf("%s: %v", e.Attachment.Name, e.Err) }

// Unwrap returns what happened.
func (e *AttachError) Unwrap() error { return e.Err }
