package killpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// The functions of package os that change folders. Each change is a step. Pins are files
// for them.

// Mkdir is os.Mkdir for root alone.
func Mkdir(dir string) error {
	err := os.Mkdir(dir, 0o700)
	if err == nil {
		Done("make %s", dir)
	}
	return err
}

// MkdirAll is os.MkdirAll for root alone.
func MkdirAll(dir string) error {
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	Done("make %s", dir)
	return nil
}

// Rename is os.Rename.
func Rename(from, to string) error {
	err := os.Rename(from, to)
	if err == nil {
		Done("rename to %s", to)
	}
	return err
}

// Remove is os.Remove.
func Remove(path string) error {
	err := os.Remove(path)
	if err == nil {
		Done("remove %s", path)
	}
	return err
}

// RemoveAll is os.RemoveAll with one step for each file and folder.
func RemoveAll(path string) error {
	entries, err := os.ReadDir(path)
	if os.IsNotExist(err) {
		return nil
	}
	if err == nil {
		for _, e := range entries {
			if err := RemoveAll(filepath.Join(path, e.Name())); err != nil {
				return err
			}
		}
	}
	// A file cannot be read as a folder: it is removed directly.
	if err := Remove(path); err != nil && !os.IsNotExist(err) {
		return err
	}
	return nil
}

// Unfinished is the suffix of a file that Replace has not finished. Nobody reads such
// files.
const Unfinished = ".new"

// Replace writes a file in one step. Readers see the old text or the new one, even after
// a power failure.
func Replace(path string, text []byte, mode fs.FileMode) error {
	file, err := os.OpenFile(path+Unfinished, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	Done("write %s", path+Unfinished)
	if err := Rename(path+Unfinished, path); err != nil {
		return err
	}
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close()) // otherwise a power failure may lose the name
}

// RemoveReplaced removes a file that Replace has written, and an unfinished one, if they
// exist. A missing folder is no error.
func RemoveReplaced(path string) error {
	for _, name := range []string{path + Unfinished, path} {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTDIR) {
			return err
		}
	}
	Done("remove %s", path)
	return nil
}
