package lab_test

import (
	"os/exec"
	"slices"
	"testing"

	"weir/internal/lab"
	"weir/internal/testenv"
)

func TestProcesses(t *testing.T) {
	testenv.NeedRoot(t)
	const name = "weir-test-proc"
	if found, err := lab.Processes(name, lab.Topology{}); err != nil || len(found) > 0 {
		t.Fatalf("without a lab: %v, %v", found, err)
	}
	l, err := lab.Up(t.Context(), lab.Options{Name: name, Queues: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	cmd := exec.CommandContext(t.Context(), "sleep", "60")
	if err := l.Start(lab.WAN, cmd); err != nil {
		t.Fatal(err)
	}
	found, err := lab.Processes(name, lab.Topology{})
	if err != nil || !slices.Equal(found, []int{cmd.Process.Pid}) {
		t.Errorf("processes %v, %v; want %d alone", found, err, cmd.Process.Pid)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it reports the kill
	if found, err := lab.Processes(name, lab.Topology{}); err != nil || len(found) > 0 {
		t.Errorf("after it has ended: %v, %v", found, err)
	}
}
