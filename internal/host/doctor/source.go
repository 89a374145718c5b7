package doctor

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// errOther is returned by the reader of one form for text in another form.
var errOther = errors.New("another form")

// sources lists the forms other than bundles, by the program that prints them.
var sources = []struct {
	name string
	read func(text string) (*Snapshot, error)
}{
	{"sysctl -a", readSysctls},
	{"pfctl -si", readPF},
	{"top -P, vmstat -i and netstat -m", readBSDTools},
	{"fw ctl affinity -l and cpmq get -v", readSplit},
	{"dmesg", readKernelLog},
}

// Read reads a snapshot from a bundle, compressed or not, or from the output of sysctl -a
// (Linux, FreeBSD), pfctl -si, FreeBSD's top -P, vmstat -i and netstat -m, Check Point's
// fw ctl affinity -l and cpmq get -v, or dmesg. The error wraps [ErrForeign] if the text is in none of these forms, or has a line that does
// not belong there.
func Read(r io.Reader) (*Snapshot, error) {
	text, err := readAll(r)
	if err != nil {
		return nil, err
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff")) // some editors and shells write a byte order mark; RFC 8259, 8.1, lets readers ignore it
	if bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("{")) {
		return parseBundle(text)
	}
	for _, form := range sources {
		s, err := form.read(string(text))
		if errors.Is(err, errOther) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%w as the output of %s: %w", ErrForeign, form.name, err)
		}
		s.Format, s.Version, s.Source = Format, Version, form.name+s.Source
		return s, nil
	}
	return nil, fmt.Errorf("%w: neither a bundle of weir doctor, nor the output of sysctl -a, of pfctl -si, of top -P, vmstat -i and netstat -m, of fw ctl affinity -l and cpmq get -v, or of dmesg with a message that doctor knows", ErrForeign)
}
