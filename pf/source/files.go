package source

import (
	"errors"
	"io"
	"maps"
	"os"
	"slices"
)

// Disk opens files of this machine.
type Disk struct{}

// Open reads a file or a device such as /dev/null.
func (Disk) Open(name string, limit int) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, unwrapPath(err)
	}
	if mode := info.Mode(); !mode.IsRegular() && mode&os.ModeDevice == 0 {
		return nil, errors.New("it is not a regular file")
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, unwrapPath(err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, int64(limit)+1))
	if err != nil {
		return nil, unwrapPath(err)
	}
	return text, nil
}

// unwrapPath removes the file's name from an error. Messages print it anyway.
func unwrapPath(err error) error {
	var of *os.PathError
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}

// Files are the files that a configuration names, under the names that Path returns.
type Files map[string]File

// File is the text of a file, or the reason why it cannot be read.
type File struct {
	Text  string `json:"text,omitempty"`
	Error string `json:"error,omitempty"`
}

// Open returns a recorded file.
func (f Files) Open(name string, _ int) ([]byte, error) {
	file, ok := f[name]
	switch {
	case !ok:
		return nil, errors.New("it was not sent with the rules")
	case file.Error != "":
		return nil, errors.New(file.Error)
	}
	return []byte(file.Text), nil
}

// Recorder opens files and records their contents.
type Recorder struct {
	From  Opener
	Files Files
}

// Open reads a file. The second time it returns the same contents.
func (r *Recorder) Open(name string, limit int) ([]byte, error) {
	if _, known := r.Files[name]; !known {
		text, err := r.From.Open(name, limit)
		file := File{Text: string(text)}
		if err != nil {
			file = File{Error: err.Error()}
		}
		if r.Files == nil {
			r.Files = make(Files)
		}
		r.Files[name] = file
	}
	return r.Files.Open(name, limit)
}

// Beside is everything that belongs to a configuration except its first file.
type Beside struct {
	Files   Files   `json:"files,omitempty"`
	Macros  []Macro `json:"macros,omitempty"`
	Without Without `json:"without,omitzero"`
	Anchors Anchors `json:"anchors,omitempty"`
}

// Equal reports whether b and other are the same.
func (b *Beside) Equal(other *Beside) bool {
	return maps.Equal(b.Files, other.Files) && slices.Equal(b.Macros, other.Macros) && b.Without == other.Without &&
		b.Anchors.Equal(other.Anchors)
}
