package fingerprint

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// A Fault is what is wrong with a part of the text.
type Fault struct {
	First, End int // bytes of the text
	Message    string
}

// maxName is the most characters of each name of a system.
const maxName = 31

// maxOptions is the most options of a fingerprint.
const maxOptions = 20

// Read reads a file: one fingerprint a line,
//
//	window:TTL:DF:size:options:class:version:subtype:description
func Read(text []byte) (List, []Fault) {
	list, faults := List{}, []Fault(nil)
	at := 0
	for line := range strings.Lines(string(text)) {
		first := at + len(line) - len(strings.TrimLeft(line, " \t"))
		at += len(line)
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		f, s, err := readLine(line)
		if err == nil && len(list) >= Most {
			err = fmt.Errorf("there are more than %d fingerprints", Most)
		}
		if err != nil {
			faults = append(faults, Fault{first, first + len(line), err.Error()})
			continue
		}
		for _, s := range s.expand() {
			list = list.add(f, s)
		}
	}
	return list, faults
}

func readLine(line string) (f Fingerprint, s System, err error) {
	fields := strings.SplitN(line, ":", 9)
	if len(fields) < 8 {
		return f, s, errors.New("a fingerprint has eight fields and a description: window:TTL:DF:size:options:class:version:subtype:description")
	}
	for i := range fields {
		fields[i] = strings.TrimSpace(fields[i])
	}
	if f.Window, err = readNumber("the window", fields[0], "*%ST", 65535); err != nil {
		return f, s, err
	}
	ttl, err := readNumber("the TTL", fields[1], "", 255)
	if err != nil {
		return f, s, err
	}
	df, err := readNumber("DF", fields[2], "", 1)
	if err != nil {
		return f, s, err
	}
	if f.Size, err = readNumber("the size", fields[3], "*%", 8192); err != nil {
		return f, s, err
	}
	f.TTL, f.DF = uint8(ttl.N), df.N == 1
	if err := f.readOptions(fields[4]); err != nil {
		return f, s, err
	}
	s = System{strings.TrimLeft(fields[5], "@*"), fields[6], fields[7]} // the marks say how sure the file is
	return f, s, s.check()
}

func (s *System) check() error {
	if s.Class == "" {
		return errors.New("the class of the system is missing")
	}
	for _, name := range []string{s.Class, s.Version, s.Subtype} {
		if len(name) > maxName {
			return fmt.Errorf("a name of a system has at most %d characters", maxName)
		}
	}
	return nil
}

// readNumber reads a number. marks are the marks of other kinds that may be in front of it.
func readNumber(what, text, marks string, most uint16) (Number, error) {
	n := Number{}
	if text != "" && strings.Contains(marks, text[:1]) {
		n.Kind = map[byte]Kind{'*': Any, '%': Multiple, 'S': TimesMSS, 'T': TimesMTU}[text[0]]
		text = text[1:]
	}
	if n.Kind == Any && text == "" {
		return n, nil
	}
	value, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n.Kind == Any || uint16(value) > most || n.Kind == Multiple && value == 0 {
		return n, fmt.Errorf("%s is no number up to %d", what, most)
	}
	n.N = uint16(value)
	return n, nil
}

func (f *Fingerprint) readOptions(text string) (err error) {
	if text == "." {
		return nil
	}
	for _, option := range strings.Split(text, ",") {
		option = strings.TrimSpace(option)
		if option == "" || len(f.Options) == maxOptions {
			return fmt.Errorf("the options are . or up to %d of N, M, W, S and T, with commas", maxOptions)
		}
		letter, rest := option[:1], option[1:]
		switch {
		case letter == "M":
			f.MSS, err = readNumber("the MSS", rest, "*%", 65535)
		case letter == "W":
			f.Scale, err = readNumber("the window scale", rest, "*%", 255)
		case option == "T0":
			f.ZeroTime = true
		case option != "N" && option != "S" && option != "T":
			err = fmt.Errorf("there is no option %s", option)
		}
		if err != nil {
			return err
		}
		f.Options += letter
	}
	return nil
}

// mostVersions is how many systems a range of versions may be.
const mostVersions = 100

// expand returns the system, and those that a range in its version or subtype means: 2.4-2.6
// or 3-5. None if its class is nothing.
func (s System) expand() []System {
	if strings.EqualFold(s.Class, "nothing") {
		return nil
	}
	all := []System{s}
	for _, v := range versions(s.Version) {
		all = append(all, System{s.Class, v, s.Subtype})
	}
	for _, v := range versions(s.Subtype) {
		all = append(all, System{s.Class, s.Version, v})
	}
	return all
}

// versions returns those of a range with one major version, or of plain numbers.
func versions(text string) (all []string) {
	from, to, ok := strings.Cut(text, "-")
	if !ok {
		return nil
	}
	major := ""
	if i := strings.IndexByte(from, '.'); i >= 0 {
		major, from = from[:i+1], from[i+1:]
		if to, ok = strings.CutPrefix(to, major); !ok {
			return nil
		}
	}
	first, err := strconv.ParseUint(from, 10, 8)
	last, err2 := strconv.ParseUint(to, 10, 8)
	if errors.Join(err, err2) != nil || last > first+mostVersions {
		return nil
	}
	for n := first; n <= last; n++ {
		all = append(all, fmt.Sprintf("%s%d", major, n))
	}
	return all
}
