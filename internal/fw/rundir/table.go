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
// prefix, "-" removes a prefix.
type TableRecord struct {
	path  string
	lines int // that the file has
	holds int // entries when it was written
}

// tableSuffix ends the names of records.
const tableSuffix = ".table"

// mostSpare is how many changes a record may have beyond twice its entries before it is
// written again.
const mostSpare = 4096

// WriteTable replaces the record of a table's contents.
func WriteTable(folder, name string, entries []resolve.TableEntry) (*TableRecord, error) {
	r := &TableRecord{path: filepath.Join(folder, url.PathEscape(name)+tableSuffix), lines: len(entries), holds: len(entries)}
	if err := killpoint.Replace(r.path, changesOf(entries, nil), 0o600); err != nil {
		return nil, fmt.Errorf("record the table %s: %w", name, err)
	}
	return r, nil
}

// Full reports whether the record should be written again, because it has become long.
func (r *TableRecord) Full() bool { return r.lines > 2*r.holds+mostSpare }

// Add records changes of the table. After an error the record is as before.
func (r *TableRecord) Add(put []resolve.TableEntry, removed []netip.Prefix) error {
	file, err := os.OpenFile(r.path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return fmt.Errorf("record a change of a table: %w", err)
	}
	defer file.Close()
	before, err := file.Stat()
	if err == nil {
		_, err = file.Write(changesOf(put, removed))
	}
	if err == nil {
		err = file.Sync()
	}
	if err != nil {
		return errors.Join(fmt.Errorf("record a change of a table: %w", err), file.Truncate(before.Size()))
	}
	killpoint.Done("add to %s", r.path)
	r.lines += len(put) + len(removed)
	return nil
}

func changesOf(put []resolve.TableEntry, removed []netip.Prefix) []byte {
	var text []byte
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
// no error: then there are none.
func ReadTables(folder string) (map[string][]resolve.TableEntry, error) {
	files, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the records of tables: %w", err)
	}
	all := make(map[string][]resolve.TableEntry)
	for _, f := range files {
		name, finished := strings.CutSuffix(f.Name(), tableSuffix)
		if !finished {
			continue
		}
		if name, err = url.PathUnescape(name); err != nil {
			return nil, fmt.Errorf("list the records of tables: %w", err)
		}
		if all[name], err = readTable(filepath.Join(folder, f.Name())); err != nil {
			return nil, fmt.Errorf("read the record of the table %s: %w", name, err)
		}
	}
	return all, nil
}

// readTable reads a record. A last line without its end was not written completely, so
// nobody was told of the change.
func readTable(path string) ([]resolve.TableEntry, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	text = text[:bytes.LastIndexByte(text, '\n')+1]
	holds := make(map[netip.Prefix]bool)
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		line := lines.Text()
		if line == "" {
			return nil, errors.New("a line is empty")
		}
		prefix, err := netip.ParsePrefix(line[1:])
		if err != nil {
			return nil, err
		}
		switch line[0] {
		case '+', '!':
			holds[prefix.Masked()] = line[0] == '!'
		case '-':
			delete(holds, prefix.Masked())
		default:
			return nil, fmt.Errorf("%q begins with no sign", line)
		}
	}
	entries := make([]resolve.TableEntry, 0, len(holds))
	for prefix, not := range holds {
		entries = append(entries, resolve.TableEntry{Prefix: prefix, Not: not})
	}
	return entries, nil
}
