package undolog

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"weir/internal/killpoint"
)

// File is the journal of one command.
type File struct {
	Path string
	Of   string // the command as people type it
}

// Read reads the journal into j. If there is none, j stays as it is.
func (f File) Read(j any) error {
	text, err := os.ReadFile(f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read what %s has set: %w", f.Of, err)
	}
	if err := json.Unmarshal(text, j); err != nil {
		return fmt.Errorf("read what %s has set: %s: %w", f.Of, f.Path, err)
	}
	return nil
}

// Write replaces the journal.
func (f File) Write(j any) error {
	text, err := json.MarshalIndent(j, "", "  ")
	if err != nil {
		return err
	}
	if err = killpoint.MkdirAll(filepath.Dir(f.Path)); err == nil {
		err = killpoint.Replace(f.Path, append(text, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("keep what %s sets: %w", f.Of, err)
	}
	return nil
}

// Remove removes the journal, the remains of an interrupted write, and the directory if
// it is empty.
func (f File) Remove() error {
	if err := killpoint.RemoveReplaced(f.Path); err != nil {
		return err
	}
	return RemoveFolder(filepath.Dir(f.Path))
}

// RemoveFolder removes a directory if it is empty.
func RemoveFolder(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTEMPTY) {
		return err
	}
	return nil
}
