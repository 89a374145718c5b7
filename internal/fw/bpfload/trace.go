package bpfload

import (
	"fmt"

	"github.com/cilium/ebpf/link"
)

// AttachTrace attaches a program to the tracepoint that its section names, until the link
// is closed.
func AttachTrace(p *Program) (*Link, error) {
	l, err := link.AttachTracing(link.TracingOptions{Program: p})
	if err != nil {
		return nil, fmt.Errorf("attach to a tracepoint: %w", err)
	}
	return &Link{link: l}, nil
}
