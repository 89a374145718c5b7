package bpfload

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"weir/internal/testenv"
)

// setting loads one of the constants into a register.
func setting(to asm.Register, offset int64) asm.Instructions {
	load := asm.LoadMapValue(to, 0, uint32(offset)).WithReference(settings)
	return asm.Instructions{load, asm.LoadMem(to, to, 0, asm.Byte)}
}

// skip is a jump over some units of 8 bytes.
func skip(op asm.JumpOp, r asm.Register, value int32, units int16) asm.Instruction {
	ins := op.Imm(r, value, "")
	ins.Offset = units
	return ins
}

func join(parts ...any) (all asm.Instructions) {
	for _, p := range parts {
		switch p := p.(type) {
		case asm.Instruction:
			all = append(all, p)
		case asm.Instructions:
			all = append(all, p...)
		}
	}
	return all
}

func call(function string) asm.Instruction {
	return asm.Instruction{OpCode: asm.OpCode(asm.JumpClass).SetJumpOp(asm.Call), Src: asm.PseudoCall, Constant: -1}.WithReference(function)
}

func always(units int16) asm.Instruction {
	return asm.Instruction{OpCode: asm.OpCode(asm.JumpClass).SetJumpOp(asm.Ja), Offset: units}
}

// What a program cannot reach with its constants goes, and what stays does the same.
func TestTrim(t *testing.T) {
	values := []byte{0, 1, 7}
	number := func(n int32) asm.Instruction { return asm.Mov.Imm(asm.R0, n) }
	for _, test := range []struct {
		name string
		in   asm.Instructions
		want []string
	}{
		{"off", join(setting(asm.R1, 0), skip(asm.JEq, asm.R1, 0, 2), call("rare"), number(1), number(2), asm.Return(), asm.Mov.Imm(asm.R0, 3).WithSymbol("rare"), asm.Return()), []string{
			"load", "ldx", "mov 2", "exit",
		}},
		{"on", join(setting(asm.R1, 1), skip(asm.JEq, asm.R1, 0, 2), call("rare"), number(1), number(2), asm.Return(), asm.Mov.Imm(asm.R0, 3).WithSymbol("rare"), asm.Return()), []string{
			"load", "ldx", "call rare", "mov 1", "mov 2", "exit", "rare: mov 3", "exit",
		}},
		{"a jump over the rest", join(setting(asm.R1, 2), skip(asm.JNE, asm.R1, 7, 1), always(1), number(1), number(2), asm.Return()), []string{
			"load", "ldx", "mov 2", "exit",
		}},
		{"undecided", join(setting(asm.R1, 0), skip(asm.JEq, asm.R2, 0, 1), number(1), number(2), asm.Return()), []string{
			"load", "ldx", "jump 1", "mov 1", "mov 2", "exit",
		}},
		{"a jump that gets shorter", join(skip(asm.JEq, asm.R2, 0, 6), setting(asm.R1, 0), skip(asm.JEq, asm.R1, 0, 1), number(1), number(2), number(3), asm.Return()), []string{
			"jump 4", "load", "ldx", "mov 2", "mov 3", "exit",
		}},
		{"two ways with other numbers", join(asm.Mov.Imm(asm.R1, 0), skip(asm.JEq, asm.R2, 0, 1), asm.Mov.Imm(asm.R1, 1), skip(asm.JEq, asm.R1, 0, 1), number(1), number(2), asm.Return()), []string{
			"mov 0", "jump 1", "mov 1", "jump 1", "mov 1", "mov 2", "exit",
		}},
		{"two ways with one number", join(asm.Mov.Imm(asm.R1, 0), skip(asm.JEq, asm.R2, 0, 1), asm.Mov.Imm(asm.R1, 0), skip(asm.JEq, asm.R1, 0, 1), number(1), number(2), asm.Return()), []string{
			"mov 0", "jump 1", "mov 0", "mov 2", "exit",
		}},
		{"a loop", join(asm.Mov.Imm(asm.R1, 0), asm.Add.Imm(asm.R1, 1), skip(asm.JNE, asm.R1, 9, -2), number(2), asm.Return()), []string{
			"mov 0", "add 1", "jump -2", "mov 2", "exit",
		}},
		{"a call forgets", join(asm.Mov.Imm(asm.R1, 0), asm.Mov.Imm(asm.R6, 0), asm.FnKtimeGetNs.Call(), skip(asm.JEq, asm.R1, 0, 1), number(1), skip(asm.JEq, asm.R6, 0, 1), number(2), number(3), asm.Return()), []string{
			"mov 0", "mov 0", "call", "jump 1", "mov 1", "mov 3", "exit",
		}},
		{"the way of a function begins with a jump", join(call("f"), asm.Return(), skip(asm.JEq, asm.R1, 0, 1).WithSymbol("f"), number(1), number(2), asm.Return()), []string{
			"call f", "exit", "f: jump 1", "mov 1", "mov 2", "exit",
		}},
		{"by bits", join(setting(asm.R1, 2), asm.And.Imm(asm.R1, 2), skip(asm.JSet, asm.R1, 3, 1), number(1), number(2), asm.Return()), []string{
			"load", "ldx", "and 2", "mov 2", "exit",
		}},
		{"outside of the constants", join(setting(asm.R1, 3), skip(asm.JEq, asm.R1, 0, 1), number(1), number(2), asm.Return()), []string{
			"load", "ldx", "jump 1", "mov 1", "mov 2", "exit",
		}},
		{"cut off", join(setting(asm.R1, 0), skip(asm.JEq, asm.R1, 0, 1), number(1)), []string{"load", "ldx", "jump 1", "mov 1"}},
		{"narrow numbers", join(asm.Mov.Imm(asm.R1, -1), skip32(asm.JEq, asm.R1, -1, 1), number(1), asm.Mov.Imm32(asm.R1, -1), skip(asm.JEq, asm.R1, -1, 1), number(2), number(3), asm.Return()), []string{
			"mov -1", "mov -1", "mov 2", "mov 3", "exit",
		}},
	} {
		if got := strings.Join(said(trim(test.in, values)), "\n"); got != strings.Join(test.want, "\n") {
			t.Errorf("%s:\n%s\nwant\n%s", test.name, got, strings.Join(test.want, "\n"))
		}
	}
}

func skip32(op asm.JumpOp, r asm.Register, value int32, units int16) asm.Instruction {
	ins := op.Imm32(r, value, "")
	ins.Offset = units
	return ins
}

// said describes instructions.
func said(insns asm.Instructions) (lines []string) {
	for _, ins := range insns {
		line := ""
		if s := ins.Symbol(); s != "" {
			line = s + ": "
		}
		switch {
		case ins.OpCode.IsDWordLoad():
			line += "load"
		case ins.OpCode.Class() == asm.LdXClass:
			line += "ldx"
		case ins.OpCode.Class().IsALU():
			line += fmt.Sprintf("%s %d", strings.ToLower(ins.OpCode.ALUOp().String()), ins.Constant)
		case ins.OpCode.JumpOp() == asm.Exit:
			line += "exit"
		case ins.OpCode.JumpOp() == asm.Call:
			line = strings.TrimSpace(line + "call " + ins.Reference())
		default:
			line += fmt.Sprintf("jump %d", ins.Offset)
		}
		lines = append(lines, line)
	}
	return lines
}

// The kernel is given what is left: the tag of a program is that of its instructions as they were loaded.
func TestLoadsTrimmed(t *testing.T) {
	testenv.NeedRoot(t)
	whole := join(setting(asm.R1, 0), skip(asm.JEq, asm.R1, 0, 1), asm.Mov.Imm(asm.R0, 1), asm.Mov.Imm(asm.R0, 2), asm.Return())
	for constant, length := range map[byte]int{0: 4, 1: 5} {
		spec := &Spec{
			Maps: map[string]*MapSpec{settings: {
				Name: settings, Type: ebpf.Array, KeySize: 4, ValueSize: 1, MaxEntries: 1, Flags: 0x80, // BPF_F_RDONLY_PROG
				Contents: []ebpf.MapKV{{Key: uint32(0), Value: []byte{constant}}},
			}},
			Programs:  map[string]*ProgramSpec{"p": {Name: "p", Type: ebpf.SocketFilter, Instructions: whole, License: "GPL"}},
			ByteOrder: binary.LittleEndian,
		}
		loaded, err := Load([]*Spec{spec}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer loaded.Close()
		info, err := loaded.Programs["p"].Info()
		if err != nil {
			t.Fatal(err)
		}
		left := trim(whole, []byte{constant})
		if same, err := left.HasTag(info.Tag, binary.LittleEndian); err != nil || !same || len(left) != length {
			t.Errorf("constant %d: the kernel was given other instructions than the %d that are left (%v)", constant, len(left), err)
		}
	}
}
