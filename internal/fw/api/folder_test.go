package api

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// Starts and stops that meet: whoever holds the lock removes the folder, and
// others make it anew.
func TestLockWhileOthersRemove(t *testing.T) {
	f := Folder(filepath.Join(t.TempDir(), "run", "1"))
	var holders sync.WaitGroup
	held := 0 // under the lock
	for range 4 {
		holders.Go(func() {
			for range 200 {
				lock, err := f.Lock(30 * time.Second)
				if err != nil {
					t.Error(err)
					return
				}
				held++
				if _, err := os.Stat(f.Rules()); err != nil {
					t.Errorf("a locked folder is not whole: %v", err)
				}
				if err := f.Remove(); err != nil {
					t.Error(err)
				}
				lock.Close()
			}
		})
	}
	holders.Wait()
	if _, err := os.Stat(string(f)); err == nil {
		t.Error("the folder is left")
	}
	if held != 4*200 {
		t.Errorf("the lock was held %d times, want %d", held, 4*200)
	}
}
