package bpfload

import (
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// A Detour says where a program for TCX ingress sends IPv4 packets.
type Detour struct {
	Device int  // by its index
	In     bool // they come in there, and do not leave by it
	// Addresses are the Ethernet addresses that their frames get, of the receiver and of the sender; all zero: they keep theirs.
	Addresses [12]byte
}

// NewDetour makes a program for TCX ingress that sends IPv4 packets to another device, and passes all others.
func NewDetour(d Detour) (*Program, error) {
	const (
		protocol, inward = 16, 1 // offset in the context, and a flag of redirect
		ipv4             = 0x0008
		next             = -1
	)
	code := asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1).WithSymbol("detour"),
		asm.LoadMem(asm.R2, asm.R6, protocol, asm.Word),
		asm.JNE.Imm(asm.R2, ipv4, "pass"),
	}
	if d.Addresses != [12]byte{} {
		for i, b := range d.Addresses {
			code = append(code, asm.StoreImm(asm.RFP, int16(i-16), int64(b), asm.Byte))
		}
		code = append(code,
			asm.Mov.Reg(asm.R1, asm.R6), asm.Mov.Imm(asm.R2, 0), asm.Mov.Reg(asm.R3, asm.RFP), asm.Add.Imm(asm.R3, -16),
			asm.Mov.Imm(asm.R4, int32(len(d.Addresses))), asm.Mov.Imm(asm.R5, 0), asm.FnSkbStoreBytes.Call(),
		)
	}
	flags := int32(0)
	if d.In {
		flags = inward
	}
	code = append(code,
		asm.Mov.Imm(asm.R1, int32(d.Device)), asm.Mov.Imm(asm.R2, flags), asm.FnRedirect.Call(), asm.Return(),
		asm.Mov.Imm(asm.R0, next).WithSymbol("pass"), asm.Return(),
	)
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: "detour", Type: ebpf.SchedCLS, Instructions: code, License: "Dual BSD/GPL"})
	if err != nil {
		return nil, fmt.Errorf("load a program that sends to another device: %w", err)
	}
	return p, nil
}
