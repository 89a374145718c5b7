package traffic

import (
	"testing"

	"weir/internal/bench/testbed"
)

// A million flows have to be a million tuples, with many target hosts.
func TestFlowsDiffer(t *testing.T) {
	type far struct {
		target uint32
		port   uint16
	}
	const n = 1 << 20
	seen := make(map[far]bool, n)
	targets := make(map[uint32]int)
	for i := range uint32(n) {
		f := flowOf(i)
		if f.source >= testbed.SourceHosts || f.target >= targetHosts || f.targetPort < firstPort || f.sourcePort < firstPort {
			t.Fatalf("flow %d is out of bounds: %+v", i, f)
		}
		seen[far{f.target, f.targetPort}] = true
		targets[f.target]++
	}
	if len(seen) != n {
		t.Errorf("%d flows have %d far ends", n, len(seen))
	}
	for target, flows := range targets {
		if flows > n/1024 {
			t.Errorf("%d flows lead to host %d: a translator would run out of ports", flows, target)
		}
	}
}

func TestFewFlowsAreSpread(t *testing.T) {
	targets := make(map[uint32]bool)
	sources := make(map[uint32]bool)
	for i := range uint32(1000) {
		targets[flowOf(i).target], sources[flowOf(i).source] = true, true
	}
	if len(targets) != 1000 || len(sources) < testbed.SourceHosts*3/4 {
		t.Errorf("1000 flows have %d targets and %d sources, want 1000 and most of %d", len(targets), len(sources), testbed.SourceHosts)
	}
}

func TestStrideVisitsAll(t *testing.T) {
	for _, n := range []uint32{1, 2, 3, 4, 5, 7, 500, 1000, 32768, 65536, 999983, 1000000} {
		step := Stride(n)
		seen := make([]bool, n)
		at := uint32(0)
		for range n {
			if seen[at] {
				t.Fatalf("%d flows in steps of %d: flow %d comes twice", n, step, at)
			}
			seen[at] = true
			at += step
			if at >= n { // as in generate.bpf.c
				at -= n
			}
		}
		if n > 100 && (step < n/4 || step > n-n/4) {
			t.Errorf("%d flows in steps of %d: neighbours in number follow too soon", n, step)
		}
	}
}

// TestGather checks flow.h's inverse: the far end's number is the flow's.
func TestGather(t *testing.T) {
	const gather = 0xb382c9
	for _, n := range []uint32{0, 1, 999, 65535, 1 << 20, FlowMask} {
		f := flowOf(n)
		scattered := f.target | uint32(f.targetPort-firstPort)<<targetBits
		if got := scattered * gather & FlowMask; got != n {
			t.Errorf("flow %d is taken for %d", n, got)
		}
	}
}

// flow distinguishes a connection from the others: the numbers of its hosts within their
// networks, and its ports.
type flow struct {
	source, target         uint32
	sourcePort, targetPort uint16
}

// flowOf returns the flow of a number below 1 << FlowBits. Target and target port alone
// contain the number.
func flowOf(number uint32) flow {
	scattered := number * flowScatter & FlowMask
	hash := scattered * uint32(flowHash)
	return flow{
		source:     hash >> 26,
		target:     scattered & (targetHosts - 1),
		sourcePort: uint16(firstPort + hash>>8&sourcePortMask),
		targetPort: uint16(firstPort + scattered>>targetBits),
	}
}

// flowInOrder returns the flow of a number if flows are in order.
func flowInOrder(number uint32) flow {
	return flow{
		target:     number / portsInOrder,
		sourcePort: uint16(firstPort + number&sourcePortMask),
		targetPort: uint16(firstPort + number%portsInOrder),
	}
}
