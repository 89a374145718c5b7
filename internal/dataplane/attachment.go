package dataplane

import "errors"

// An Attachment is an interface that packets are judged on. Every one has TCX
// programs at its ingress (first of all) and its egress (last of all).
type Attachment struct {
	Ifindex int
	Name    string // for errors and names of pins only
	XDP     bool   // also an XDP program, in the driver
}

// ErrForeign is returned (wrapped, with the program's name, id and owners) for
// an interface that has an XDP program which is not weir's.
var ErrForeign = errors.New("the interface has another XDP program")

// ErrNative is returned (wrapped) for an interface whose driver refuses the XDP
// program: no native XDP, an MTU beyond its buffers, too few queues. The caller
// may attach without XDP.
var ErrNative = errors.New("the driver refuses XDP")
