package bpfload

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"
)

// From linux/bpf.h.
const (
	fibLookupMark = 1 << 5 // BPF_FIB_LOOKUP_MARK
	fibLookupSize = 64     // struct bpf_fib_lookup
)

// RoutesByMark reports whether programs can look up the route of a packet with a mark,
// which they can since Linux 6.10. It looks one up from no interface. A kernel that knows
// the flag finds no such interface. An older kernel refuses the flag.
func RoutesByMark() (knows bool, err error) {
	query := asm.Instructions{asm.Mov.Reg(asm.R6, asm.R1), asm.Mov.Imm(asm.R0, 0)}
	for at := int16(-fibLookupSize); at < 0; at += 8 {
		query = append(query, asm.StoreMem(asm.RFP, at, asm.R0, asm.DWord))
	}
	query = append(query,
		asm.StoreImm(asm.RFP, -fibLookupSize, unix.AF_INET, asm.Byte),
		asm.Mov.Reg(asm.R1, asm.R6),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, -fibLookupSize),
		asm.Mov.Imm(asm.R3, fibLookupSize),
		asm.Mov.Imm(asm.R4, fibLookupMark),
		asm.FnFibLookup.Call(),
		asm.Return(),
	)
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "weir_fib_mark", Type: ebpf.SchedCLS, License: "Dual BSD/GPL", Instructions: query,
	})
	if err != nil {
		return false, fmt.Errorf("try whether routes are found by marks: %w", err)
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	answer, _, err := p.Test(make([]byte, fibLookupSize))
	if err != nil {
		return false, fmt.Errorf("try whether routes are found by marks: %w", err)
	}
	return unix.Errno(-int32(answer)) != unix.EINVAL, nil
}
