package bpfload

import (
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// Blank makes the XDP and TCX programs of an object pass every packet and do nothing
// else, so that tests of loading and attaching need not wait for the verifier. Maps and
// other programs stay as they are.
func Blank(spec *Spec) {
	const xdpPass, tcxNext = 2, -1
	for _, p := range spec.Programs {
		result := int32(tcxNext)
		switch p.Type {
		case ebpf.XDP:
			result = xdpPass
		case ebpf.SchedCLS:
		default:
			continue
		}
		p.Instructions = asm.Instructions{asm.Mov.Imm(asm.R0, result).WithSymbol(p.Name), asm.Return()}
	}
}

// NewPass makes an XDP program that passes every frame. A veth with one can be sent frames by XDP, although it joins none
// that come (GRO).
func NewPass() (*Program, error) {
	spec := Spec{Programs: map[string]*ebpf.ProgramSpec{"pass": {Name: "pass", Type: ebpf.XDP}}}
	Blank(&spec)
	p, err := ebpf.NewProgram(spec.Programs["pass"])
	if err != nil {
		return nil, fmt.Errorf("load a program that passes all: %w", err)
	}
	return p, nil
}
