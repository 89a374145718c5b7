package testbed

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestOnlyOneRuns(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "bench")
	unlock, err := lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lock(dir); !errors.Is(err, errRunning) || !strings.HasSuffix(err.Error(), fmt.Sprintf("process %d", os.Getpid())) {
		t.Errorf("a second lock: %v, want %v and this process", err, errRunning)
	}
	if err := unlock(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is left: %v", err)
	}
	if unlock, err = lock(dir); err != nil {
		t.Fatalf("after the first has ended: %v", err)
	}
	if err := unlock(); err != nil {
		t.Error(err)
	}
}
