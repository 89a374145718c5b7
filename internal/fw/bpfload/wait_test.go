package bpfload

import (
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"

	"weir/internal/testenv"
)

// longRun returns a program that takes some time, and the array in which it says 1 when it begins and 2 at
// its end.
func longRun(t *testing.T) (*Program, *Map) {
	t.Helper()
	const turns = 1 << 21
	m, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	begins := func(name string, in asm.Instruction) asm.Instruction {
		number := &btf.FuncProto{Return: &btf.Int{Name: "int", Size: 4, Encoding: btf.Signed}}
		return btf.WithFuncMetadata(in.WithSymbol(name), &btf.Func{Name: name, Type: number, Linkage: btf.StaticFunc})
	}
	turn := asm.Instruction{OpCode: asm.LoadImmOp(asm.DWord), Dst: asm.R2, Src: asm.PseudoFunc, Constant: -1}.WithReference("turn")
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SchedCLS, License: "GPL", Instructions: asm.Instructions{
		begins("long_run", asm.LoadMapValue(asm.R6, m.FD(), 0)),
		asm.StoreImm(asm.R6, 0, 1, asm.Word),
		asm.Mov.Imm(asm.R1, turns),
		turn,
		asm.Mov.Imm(asm.R3, 0),
		asm.Mov.Imm(asm.R4, 0),
		asm.FnLoop.Call(),
		asm.StoreImm(asm.R6, 0, 2, asm.Word),
		asm.Mov.Imm(asm.R0, 0),
		asm.Return(),
		begins("turn", asm.FnKtimeGetNs.Call()),
		asm.Mov.Imm(asm.R0, 0),
		asm.Return(),
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p, m
}

// What runs when the wait begins has ended when it is over.
func TestWaitForRuns(t *testing.T) {
	testenv.NeedRoot(t)
	p, m := longRun(t)
	said := func() (word uint32) {
		if err := m.Lookup(uint32(0), &word); err != nil {
			t.Error(err)
		}
		return word
	}
	waited := 0
	for range 20 {
		if err := m.Put(uint32(0), uint32(0)); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() {
			_, err := p.Run(&ebpf.RunOptions{Data: make([]byte, 64)})
			ended <- err
		}()
		for began := time.Now(); said() == 0 && time.Since(began) < 10*time.Second; {
			time.Sleep(50 * time.Microsecond)
		}
		runs := said() == 1
		if err := WaitForRuns(); err != nil {
			t.Fatal(err)
		}
		if now := said(); runs && now != 2 {
			t.Fatalf("the wait is over, and the program says %d", now)
		}
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		if runs {
			waited++
		}
		if waited == 3 {
			return
		}
	}
	t.Errorf("only %d programs had not ended when the wait began", waited)
}
