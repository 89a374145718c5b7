package bpfload

import (
	"encoding/binary"
	"slices"

	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
)

// settings is the section of an object's constants.
const settings = ".rodata"

// trim returns a program without the instructions that it can never reach with its constants, and
// without the functions that are called from there alone. values are the contents of the section settings,
// which never change once the program is loaded.
//
// The kernel removes these instructions as well (opt_remove_dead_code), but piece by piece: for each piece
// it moves all that follows, and corrects all jumps. A kernel that is not preemptible lets nothing else
// onto the core meanwhile, and while it then inserts others, into the room that is now free. If nothing was
// removed, it gets that room by vmalloc, which lets others have the core. docs/measuring.md, Loads, has
// how long a core is held.
func trim(insns asm.Instructions, values []byte) asm.Instructions {
	t := trimmer{insns: insns, values: values}
	if !t.index() {
		return insns
	}
	t.reach(0, new(registers))
	for len(t.work) > 0 {
		i := t.work[len(t.work)-1]
		t.work = t.work[:len(t.work)-1]
		t.step(i)
	}
	if t.broken {
		return insns // the kernel says what is wrong
	}
	return t.rebuild()
}

// A trimmer follows all ways through a program. What it knows of registers at an instruction holds on
// all ways that lead there.
type trimmer struct {
	insns     asm.Instructions
	values    []byte
	at        []int          // where each instruction begins, in units of 8 bytes
	number    []int          // the reverse
	functions map[string]int // number of the first instruction
	known     []*registers   // before each instruction; nil: it is not reached
	spare     []registers    // for known
	jumps     []bool         // whether a jump is taken
	passes    []bool         // whether the way leads on to the next instruction
	work      []int
	broken    bool // a way leads out of the program
}

// registers are r0 to r10.
type registers [11]known

// known is what is known of a register: nothing, a number, or that it points to a constant.
type known struct {
	kind uint8
	n    uint64
}

const (
	unknown = iota
	isNumber
	isSetting
)

// index returns false for programs that it does not understand.
func (t *trimmer) index() bool {
	t.at, t.number, t.functions = make([]int, len(t.insns)), make([]int, 0, 2*len(t.insns)), map[string]int{}
	for i := range t.insns {
		ins := &t.insns[i]
		if ins.OpCode.Class().IsJump() && ins.Reference() != "" && !ins.IsFunctionCall() && !ins.IsKfuncCall() {
			return false // a jump to a symbol, which only assemblers write
		}
		if ins.OpCode.Class() == asm.LdClass && !ins.OpCode.IsDWordLoad() {
			return false // of classic BPF
		}
		if s := ins.Symbol(); s != "" {
			t.functions[s] = i
		}
		t.at[i] = len(t.number)
		t.number = append(t.number, i)
		if ins.OpCode.IsDWordLoad() { // two units
			t.number = append(t.number, i)
		}
	}
	t.known, t.jumps, t.passes = make([]*registers, len(t.insns)), make([]bool, len(t.insns)), make([]bool, len(t.insns))
	return len(t.insns) > 0
}

// reach notes that a way leads to an instruction.
func (t *trimmer) reach(i int, with *registers) {
	if i < 0 || i >= len(t.insns) {
		t.broken = true
		return
	}
	before := t.known[i]
	if before == nil {
		if len(t.spare) == 0 {
			t.spare = make([]registers, 512)
		}
		t.known[i], t.spare = &t.spare[0], t.spare[1:]
		*t.known[i] = *with
		t.work = append(t.work, i)
		return
	}
	changed := false
	for r := range before {
		if before[r].kind != unknown && before[r] != with[r] {
			before[r], changed = known{}, true
		}
	}
	if changed {
		t.work = append(t.work, i)
	}
}

// step follows one instruction.
func (t *trimmer) step(i int) {
	ins, now := &t.insns[i], *t.known[i]
	class := ins.OpCode.Class()
	switch {
	case class.IsJump():
		t.branch(i, &now)
		return
	case class == asm.StXClass && ins.OpCode.Mode() == asm.AtomicMode:
		now[ins.Src], now[asm.R0] = known{}, known{} // some return the former value in one of them
		if ins.Dst != asm.R10 {
			now[ins.Dst] = known{} // some load
		}
	case class.IsStore():
	case ins.IsLoadOfFunctionPointer():
		t.enter(ins.Reference())
		now[ins.Dst] = known{}
	default:
		now[ins.Dst] = t.result(ins, &now)
	}
	t.passes[i] = true
	t.reach(i+1, &now)
}

// enter reaches a function. Nothing is known of its arguments.
func (t *trimmer) enter(function string) {
	if first, ok := t.functions[function]; ok {
		t.reach(first, new(registers))
	}
}

// branch follows a jump, a call or the end of a function.
func (t *trimmer) branch(i int, now *registers) {
	ins := &t.insns[i]
	switch op := ins.OpCode.JumpOp(); op {
	case asm.Exit:
		return
	case asm.Call:
		if ins.IsFunctionCall() {
			t.enter(ins.Reference())
		}
		clear(now[asm.R0 : asm.R5+1])
		t.passes[i] = true
	case asm.Ja:
		t.jumps[i] = true
	default:
		taken, sure := decide(ins, now)
		t.jumps[i] = t.jumps[i] || taken || !sure
		t.passes[i] = t.passes[i] || !taken || !sure
	}
	if t.jumps[i] {
		t.reach(t.target(i), now)
	}
	if t.passes[i] {
		t.reach(i+1, now)
	}
}

// target returns where a jump leads, or -1.
func (t *trimmer) target(i int) int {
	ins := &t.insns[i]
	distance := int(ins.Offset)
	if ins.OpCode.Class() == asm.Jump32Class && ins.OpCode.JumpOp() == asm.Ja {
		distance = int(int32(ins.Constant))
	}
	if to := t.at[i] + 1 + distance; to >= 0 && to < len(t.number) {
		return t.number[to]
	}
	return -1
}

// result returns what an instruction that is no jump and no store leaves in its register.
func (t *trimmer) result(ins *asm.Instruction, now *registers) known {
	if btf.CORERelocationMetadata(ins) != nil {
		return known{} // the loader writes another number
	}
	switch class := ins.OpCode.Class(); {
	case ins.OpCode.IsDWordLoad():
		if ins.Src == asm.PseudoMapValue && ins.Reference() == settings {
			return known{isSetting, uint64(ins.Constant) >> 32}
		}
		if ins.Src == asm.R0 && ins.Reference() == "" {
			return known{isNumber, uint64(ins.Constant)}
		}
	case class == asm.LdXClass && ins.OpCode.Mode() == asm.MemMode:
		return t.setting(now[ins.Src], int64(ins.Offset), ins.OpCode.Size().Sizeof())
	case class.IsALU():
		return compute(ins, now)
	}
	return known{}
}

// setting returns a setting's value.
func (t *trimmer) setting(pointer known, offset int64, size int) known {
	first := int64(pointer.n) + offset
	if pointer.kind != isSetting || first < 0 || first+int64(size) > int64(len(t.values)) {
		return known{}
	}
	var value [8]byte
	copy(value[:], t.values[first:first+int64(size)])
	return known{isNumber, binary.LittleEndian.Uint64(value[:])}
}

// operand returns what an instruction computes or compares with.
func operand(ins *asm.Instruction, now *registers) known {
	if ins.OpCode.Source() == asm.RegSource {
		return now[ins.Src]
	}
	return known{isNumber, uint64(int64(int32(ins.Constant)))}
}

// compute returns the result of arithmetic, of the kinds that conditions on settings need.
func compute(ins *asm.Instruction, now *registers) known {
	a, b := now[ins.Dst], operand(ins, now)
	wide := ins.OpCode.Class() == asm.ALU64Class
	op := ins.OpCode.ALUOp()
	switch {
	case ins.OpCode.Source() == asm.InvalidSource || ins.Offset != 0: // swaps of bytes, casts
		return known{}
	case op == asm.Mov && wide:
		return b
	case op == asm.Add && wide && a.kind == isSetting && b.kind == isNumber:
		return known{isSetting, a.n + b.n}
	case op == asm.Mov && b.kind == isNumber:
		return known{isNumber, uint64(uint32(b.n))}
	case a.kind != isNumber || b.kind != isNumber:
		return known{}
	}
	var n uint64
	switch op {
	case asm.Add:
		n = a.n + b.n
	case asm.And:
		n = a.n & b.n
	case asm.Or:
		n = a.n | b.n
	default:
		return known{}
	}
	if !wide {
		n = uint64(uint32(n))
	}
	return known{isNumber, n}
}

// decide returns whether a conditional jump is taken. It is sure if both sides are known.
func decide(ins *asm.Instruction, now *registers) (taken, sure bool) {
	x, y := now[ins.Dst], operand(ins, now)
	if x.kind != isNumber || y.kind != isNumber {
		return false, false
	}
	a, b := x.n, y.n
	if ins.OpCode.Class() == asm.Jump32Class {
		a, b = uint64(uint32(a)), uint64(uint32(b))
	}
	switch ins.OpCode.JumpOp() {
	case asm.JEq:
		return a == b, true
	case asm.JNE:
		return a != b, true
	case asm.JGT:
		return a > b, true
	case asm.JGE:
		return a >= b, true
	case asm.JLT:
		return a < b, true
	case asm.JLE:
		return a <= b, true
	case asm.JSet:
		return a&b != 0, true
	}
	return false, false
}

// rebuild returns the instructions that are reached. A jump whose way is known becomes one without
// condition, or goes if it leads to the next instruction.
func (t *trimmer) rebuild() asm.Instructions {
	keep, next := make([]bool, len(t.insns)), make([]int, len(t.insns)+1) // next: the first from here on that stays
	next[len(t.insns)] = len(t.insns)
	for i := range slices.Backward(t.insns) {
		keep[i] = t.known[i] != nil && (t.jumps[i] || !t.isCondition(i))
		if t.jumps[i] && !t.passes[i] {
			to := t.target(i)
			keep[i] = to <= i || next[to] != next[i+1]
		}
		keep[i] = keep[i] || t.known[i] != nil && t.insns[i].Symbol() != ""
		if next[i] = next[i+1]; keep[i] {
			next[i] = i
		}
	}
	now, at := make([]int, len(t.insns)), 0 // where each one that stays begins now
	for i := range t.insns {
		if now[i] = at; keep[i] {
			at += int(t.insns[i].Size() / asm.InstructionSize)
		}
	}
	left := make(asm.Instructions, 0, len(t.insns))
	for i, ins := range t.insns {
		if !keep[i] {
			continue
		}
		if t.isCondition(i) && !(t.jumps[i] && t.passes[i]) {
			ins.OpCode, ins.Dst, ins.Src, ins.Constant = asm.OpCode(asm.JumpClass).SetJumpOp(asm.Ja), 0, 0, 0
		}
		switch {
		case t.jumps[i] && ins.OpCode.Class() == asm.Jump32Class && ins.OpCode.JumpOp() == asm.Ja:
			ins.Constant = int64(now[t.target(i)] - now[i] - 1)
		case t.jumps[i]:
			ins.Offset = int16(now[t.target(i)] - now[i] - 1)
		case t.isCondition(i): // it is the first of a function, and never taken
			ins.Offset = 0
		}
		left = append(left, ins)
	}
	return left
}

// isCondition reports whether an instruction is a jump with a condition.
func (t *trimmer) isCondition(i int) bool {
	op := t.insns[i].OpCode.JumpOp()
	return op != asm.InvalidJumpOp && op != asm.Ja && op != asm.Call && op != asm.Exit
}
