package testbed

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// The daemon of a killed run is ended. Another process with its PID is not.
func TestEndLeftover(t *testing.T) {
	dir := t.TempDir()
	if err := endLeftover(dir); err != nil {
		t.Fatalf("without a note: %v", err)
	}
	for _, c := range []struct {
		argument string
		ends     bool
	}{{filepath.Join(dir, RulesFile), true}, {"/etc/weir/gateway.conf", false}} {
		cmd := exec.Command("sh", "-c", "sleep 30; :", c.argument)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		if err := os.WriteFile(filepath.Join(dir, PidFile), []byte(strconv.Itoa(cmd.Process.Pid)), 0o600); err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond) // until the process has its own arguments
		if err := endLeftover(dir); err != nil {
			t.Fatal(err)
		}
		select {
		case <-ended:
			if !c.ends {
				t.Error("a process that is not the daemon was ended")
			}
		case <-time.After(300 * time.Millisecond):
			if c.ends {
				t.Error("the daemon was not ended")
			}
			if err := cmd.Process.Kill(); err != nil {
				t.Error(err)
			}
			<-ended
		}
	}
}
