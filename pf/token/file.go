package token

import (
	"bytes"
	"sort"
)

// FileSet holds all sources of a configuration: its files and the uses of its macros. It
// is not safe for concurrent use while sources are added.
type FileSet struct {
	sources []source // by ascending base
	next    Pos
}

// source is a range of positions: a file's, or those of one use of a macro.
type source struct {
	base Pos
	size int
	file *File // nil for an expansion
	use  Span  // for an expansion: where the macro was used
	from []Origin
}

// Origin is where a part of a macro's text comes from. The part starts at offset At and
// ends at the next origin. It comes from Pos and the bytes after it.
type Origin struct {
	At  int
	Pos Pos
}

// File is one file and its text.
type File struct {
	Name     string
	Src      []byte
	Included Span // include statement that read it; invalid for the first

	base  Pos
	lines []int // offset of the first byte of each line
}

// NewFileSet makes an empty set.
func NewFileSet() *FileSet { return &FileSet{next: 1} }

// AddFile adds a file. A file has one position more than bytes: its end.
func (s *FileSet) AddFile(name string, src []byte) *File {
	f := &File{Name: name, Src: src, base: s.add(source{size: len(src)}), lines: []int{0}}
	s.sources[len(s.sources)-1].file = f
	for i, c := range src {
		if c == '\n' {
			f.lines = append(f.lines, i+1)
		}
	}
	return f
}

// Expand adds the use of a macro. It returns the position of the macro's text, of size
// bytes, within the use. from has the origins by ascending offsets from 0. It is not
// copied.
func (s *FileSet) Expand(use Span, from []Origin, size int) Pos {
	return s.add(source{size: size, use: use, from: from})
}

func (s *FileSet) add(src source) Pos {
	src.base = s.next
	s.next += Pos(src.size) + 1
	s.sources = append(s.sources, src)
	return src.base
}

// find returns the source that contains p, or nil.
func (s *FileSet) find(p Pos) *source {
	if s == nil || p < 1 || p >= s.next {
		return nil
	}
	i := sort.Search(len(s.sources), func(i int) bool { return s.sources[i].base > p })
	return &s.sources[i-1]
}

// InMacro reports whether p is in text from a macro.
func (s *FileSet) InMacro(p Pos) bool {
	src := s.find(p)
	return src != nil && src.file == nil
}

// Use returns the part of a file to show for sp. If sp touches text from a macro, this is
// the outermost use of that macro.
func (s *FileSet) Use(sp Span) Span {
	for src := s.find(sp.Pos); src != nil && src.file == nil; src = s.find(sp.Pos) {
		sp.Pos = src.use.Pos
	}
	for src := s.find(sp.End); src != nil && src.file == nil; src = s.find(sp.End) {
		sp.End = src.use.End
	}
	return sp
}

// Spelling returns the part of a file in which the text of sp is written. It differs from
// Use if sp comes from a macro.
func (s *FileSet) Spelling(sp Span) Span {
	for src := s.find(sp.Pos); src != nil && src.file == nil; src = s.find(sp.Pos) {
		last := min(max(sp.End-1, sp.Pos), src.base+Pos(src.size))
		sp = Span{src.origin(sp.Pos), src.origin(last) + 1}
	}
	return sp
}

// origin returns where the text at p, which is in src, comes from.
func (src *source) origin(p Pos) Pos {
	off := int(p - src.base)
	i := sort.Search(len(src.from), func(i int) bool { return src.from[i].At > off })
	if i == 0 {
		return src.use.Pos
	}
	return src.from[i-1].Pos + Pos(off-src.from[i-1].At)
}

// File returns the file to show for p, or nil if p is unknown.
func (s *FileSet) File(p Pos) *File {
	if src := s.find(s.Use(Span{p, p}).Pos); src != nil {
		return src.file
	}
	return nil
}

// Position returns file, line and column of p. If p comes from a macro, they are those of
// its outermost use.
func (s *FileSet) Position(p Pos) Position {
	p = s.Use(Span{p, p}).Pos
	src := s.find(p)
	if src == nil {
		return Position{}
	}
	return src.file.Position(p)
}

// Pos returns the position of the byte at offset.
func (f *File) Pos(offset int) Pos { return f.base + Pos(offset) }

// Offset is the inverse of Pos.
func (f *File) Offset(p Pos) int { return int(p - f.base) }

// Position returns line and column of a position in f.
func (f *File) Position(p Pos) Position {
	offset := f.Offset(p)
	line := sort.SearchInts(f.lines, offset+1)
	return Position{File: f.Name, Line: line, Column: offset - f.lines[line-1] + 1}
}

// LineStart returns the position of the first byte of a line, which is counted from 1.
func (f *File) LineStart(n int) Pos { return f.Pos(f.lines[n-1]) }

// Line returns the text of a line, counted from 1, without its end.
func (f *File) Line(n int) []byte {
	if n < 1 || n > len(f.lines) {
		return nil
	}
	line := f.Src[f.lines[n-1]:]
	if end := bytes.IndexByte(line, '\n'); end >= 0 {
		line = line[:end]
	}
	return bytes.TrimSuffix(line, []byte("\r"))
}

// Text returns the text of a span of a file. It is empty if sp is in a macro's use.
func (s *FileSet) Text(sp Span) string {
	src := s.find(sp.Pos)
	if src == nil || src.file == nil || sp.End < sp.Pos || sp.End > src.base+Pos(src.size) {
		return ""
	}
	return string(src.file.Src[sp.Pos-src.base : sp.End-src.base])
}
