package source

import (
	"fmt"
	"io"
	"os"
)

// MaxText is the limit of a configuration's first file, in bytes. A line for each of a
// million addresses takes a quarter of it.
const MaxText = 64 << 20

// ReadFile reads a configuration's first file. It fails if the file is longer than
// MaxText.
func ReadFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := Read(f)
	if err != nil {
		return nil, &os.PathError{Op: "read", Path: name, Err: unwrapPath(err)}
	}
	return text, nil
}

// Read reads a configuration's first file from a stream, as ReadFile does.
func Read(from io.Reader) ([]byte, error) {
	return readUpTo(from, MaxText)
}

func readUpTo(from io.Reader, limit int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(from, limit+1))
	switch {
	case err != nil:
		return nil, err
	case int64(len(text)) > limit:
		return nil, fmt.Errorf("it is longer than %d MiB", limit>>20)
	}
	return text, nil
}
