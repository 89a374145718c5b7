package rundir

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"weir/internal/killpoint"
	"weir/pf/resolve"
)

// Tables is the folder with the contents of tables that were changed at run time.
func (f Folder) Tables() string { return f.path("tables") }

// TablesOf is the folder of those contents under one generation of the dataplane. It has
// a TableRecord for each table.
func (f Folder) TablesOf(generation uint32) string {
	return filepath.Join(f.Tables(), strconv.FormatUint(uint64(generation), 10))
}

// A TableRecord is a file with the contents of a table: one change for each line, in
// order, of a table that was empty. "+" adds an entry, "!" adds one that excludes its
// prefix, "-" removes a prefix. "@" and a number of seconds since 1970 says when the
// changes after it were made. "*" in the first line means that no file defines the table;
// the path of the anchor that it belongs to follows.
type TableRecord struct {
	path  string
	lines int    // that the file has
	holds int    // entries when it was written
	now   uint32 // time of the last change
}

// A Table is what a record says.
type Table struct {
	Entries []resolve.TableEntry
	Times   *Times
	Made    bool   // at run time: no file defines it
	Anchor  string // then: the anchor that it belongs to
}

// tableSuffix ends the names of records.
const tableSuffix = ".table"

// mostSpare is how many changes a record may have beyond twice its entries before it is
// written again.
const mostSpare = 4096

// WriteTable replaces the record of a table.
func WriteTable(folder, name string, t *Table) (*TableRecord, error) {
	r := &TableRecord{path: recordOf(folder, name), lines: len(t.Entries), holds: len(t.Entries)}
	var text []byte
	if t.Made {
		text = fmt.Appendf(text, "*%s\n", t.Anchor)
	}
	times, groups := t.Times.byTime(t.Entries)
	for _, at := range times {
		text = changesOf(appendTime(text, at), groups[at], nil)
		r.now = at
	}
	if err := killpoint.Replace(r.path, text, 0o600); err != nil {
		return nil, fmt.Errorf("record the table %s: %w", name, err)
	}
	return r, nil
}

func recordOf(folder, name string) string {
	return filepath.Join(folder, url.PathEscape(name)+tableSuffix)
}

// Remove removes the record.
func (r *TableRecord) Remove() error { return killpoint.Remove(r.path) }

func appendTime(text []byte, at uint32) []byte {
	return append(strconv.AppendUint(append(text, '@'), uint64(at), 10), '\n')
}

// Full reports whether the record should be written again, because it has become long.
func (r *TableRecord) Full() bool { return r.lines > 2*r.holds+mostSpare }

// Add records changes of the table that were made now. After an error the record is as
// before.
func (r *TableRecord) Add(put []resolve.TableEntry, removed []netip.Prefix, now uint32) error {
	var text []byte
	if now != r.now {
		text = appendTime(text, now)
	}
	text = changesOf(text, put, removed)
	file, err := os.OpenFile(r.path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return fmt.Errorf("record a change of a table: %w", err)
	}
	defer file.Close()
	before, err := file.Stat()
	if err == nil {
		_, err = file.Write(text)
	}
	if err == nil {
		err = file.Sync()
	}
	if err != nil {
		return errors.Join(fmt.Errorf("record a change of a table: %w", err), file.Truncate(before.Size()))
	}
	killpoint.Done("add to %s", r.path)
	r.lines += len(put) + len(removed)
	r.now = now
	return nil
}

func changesOf(text []byte, put []resolve.TableEntry, removed []netip.Prefix) []byte {
	line := func(sign byte, p netip.Prefix) {
		text = append(p.AppendTo(append(text, sign)), '\n')
	}
	for _, p := range removed {
		line('-', p)
	}
	for _, e := range put {
		if e.Not {
			line('!', e.Prefix)
		} else {
			line('+', e.Prefix)
		}
	}
	return text
}

// ReadTables reads the contents of all tables that have a record in a folder. No folder is
// no error: then there are none. damaged is asked about a record that cannot be read: if it
// returns nil, that record is left out.
func ReadTables(folder string, damaged func(path string, err error) error) (map[string]*Table, error) {
	files, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the records of tables: %w", err)
	}
	all := make(map[string]*Table)
	for _, f := range files {
		name, finished := strings.CutSuffix(f.Name(), tableSuffix)
		if !finished {
			continue
		}
		path := filepath.Join(folder, f.Name())
		t, err := readTable(path)
		if unescaped, wrong := url.PathUnescape(name); wrong != nil {
			err = wrong
		} else {
			name = unescaped
		}
		if err == nil {
			all[name] = t
		} else if err := damaged(path, err); err != nil {
			return nil, fmt.Errorf("read the record of the table %s: %w", name, err)
		}
	}
	return all, nil
}

// SetAside renames a record that cannot be read, so that it is neither read again nor
// removed or written over. It returns the new path.
func SetAside(path string) (string, error) {
	aside := path + ".damaged"
	return aside, killpoint.Rename(path, aside)
}

// RemoveTables removes records from a folder, by the names of their tables. No folder is no
// error.
func RemoveTables(folder string, which func(name string) bool) error {
	files, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("list the records of tables: %w", err)
	}
	var errs []error
	for _, f := range files {
		name, isRecord := strings.CutSuffix(f.Name(), tableSuffix)
		name, err := url.PathUnescape(name)
		if isRecord && err == nil && which(name) {
			errs = append(errs, killpoint.Remove(filepath.Join(folder, f.Name())))
		}
	}
	return errors.Join(errs...)
}

// readTable reads a record. A last line without its end was not written completely, so
// nobody was told of the change. Changes without a time are of the file's last one.
func readTable(path string) (*Table, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	r := &recordReader{now: uint32(info.ModTime().Unix()), holds: make(map[netip.Prefix]held)}
	text = text[:bytes.LastIndexByte(text, '\n')+1]
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		if err := r.line(lines.Text()); err != nil {
			return nil, err
		}
	}
	return r.table(), nil
}

// A recordReader reads the lines of a record.
type recordReader struct {
	now   uint32
	holds map[netip.Prefix]held
	made  bool
	// anchor is the path after "*".
	anchor string
}

// held is an entry, without its prefix.
type held struct {
	since uint32
	not   bool
}

func (r *recordReader) line(line string) error {
	switch {
	case line == "":
		return errors.New("a line is empty")
	case line[0] == '*' && len(r.holds) == 0:
		r.made, r.anchor = true, line[1:]
		return nil
	case line[0] == '@':
		now, err := strconv.ParseUint(line[1:], 10, 32)
		r.now = uint32(now)
		return err
	case !strings.Contains("+!-", line[:1]):
		return fmt.Errorf("%q begins with no sign", line)
	}
	prefix, err := netip.ParsePrefix(line[1:])
	if err != nil {
		return err
	}
	if prefix = prefix.Masked(); line[0] == '-' {
		delete(r.holds, prefix)
	} else {
		r.holds[prefix] = held{r.now, line[0] == '!'}
	}
	return nil
}

func (r *recordReader) table() *Table {
	t := &Table{Entries: make([]resolve.TableEntry, 0, len(r.holds)), Times: NewTimes(r.now), Made: r.made, Anchor: r.anchor}
	count := make(map[uint32]int)
	for prefix, e := range r.holds {
		t.Entries = append(t.Entries, resolve.TableEntry{Prefix: prefix, Not: e.not})
		if count[e.since]++; count[e.since] > count[t.Times.most] {
			t.Times.most = e.since
		}
	}
	t.Times.own = make(map[netip.Prefix]uint32)
	for prefix, e := range r.holds {
		if e.since != t.Times.most {
			t.Times.own[prefix] = e.since
		}
	}
	return t
}
