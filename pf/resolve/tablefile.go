package resolve

import (
	"net/netip"
	"strconv"
	"strings"

	"weir/pf/ast"
	"weir/pf/diag"
	"weir/pf/token"
)

// Entries reads addresses in the form of a table's file. name is used in messages. A name of
// an interface, a group, a host or self is replaced by its addresses now.
func Entries(name string, text []byte, host *Host) ([]TableEntry, diag.List) {
	files := token.NewFileSet()
	r := newResolver(&ast.File{Files: files}, host, Settings{})
	entries := r.fileEntries(files.AddFile(name, text))
	r.faults.Sort()
	return entries, *r.faults
}

// fileEntries returns the addresses in a table's file: words separated by blanks and line
// ends, with ! in front if they are excluded. A comment starts with # or ; and ends with
// the line. It reads the text once and copies nothing of it, because there may be
// millions of addresses.
func (r *resolver) fileEntries(file *token.File) []ast.TableEntry {
	text := string(file.Src)
	list := make([]ast.TableEntry, 0, strings.Count(text, "\n"))
	for at := 0; ; {
		word, from := nextWord(text, at)
		if word == "" || r.faults.Full() {
			return list
		}
		at = from + len(word)
		if e, ok := literalEntry(word); ok {
			list = append(list, e)
			continue
		}
		span := token.Span{Pos: file.Pos(from), End: file.Pos(at)}
		if h, ok := r.fileHost(word, span); ok {
			list = append(list, entries(r.resolve(&h, tableHost))...)
		}
	}
}

// nextWord returns the first word of text from at on, and its position. It is empty at
// the end.
func nextWord(text string, at int) (string, int) {
	for at < len(text) {
		switch c := text[at]; {
		case c == '#' || c == ';':
			end := strings.IndexByte(text[at:], '\n')
			if end < 0 {
				return "", len(text)
			}
			at += end
		case blank(c):
			at++
		default:
			end := at
			for end < len(text) && !blank(text[end]) {
				end++
			}
			return text[at:end], at
		}
	}
	return "", at
}

func blank(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

// literalEntry reads a numeric address or network.
func literalEntry(word string) (ast.TableEntry, bool) {
	word, not := strings.CutPrefix(word, "!")
	if p, err := netip.ParsePrefix(word); err == nil {
		return ast.TableEntry{Prefix: p.Masked(), Not: not}, !p.Addr().Is4In6()
	}
	a, err := netip.ParseAddr(word)
	if err != nil || a.Zone() != "" || a.Is4In6() {
		return ast.TableEntry{}, false
	}
	return ast.TableEntry{Prefix: netip.PrefixFrom(a, a.BitLen()), Not: not}, true
}

// fileHost reads a word that is not an address: a short network such as 10/8, an
// interface with its modifiers, or a host. It reports an error before it returns false.
func (r *resolver) fileHost(word string, span token.Span) (ast.Host, bool) {
	name, not := strings.CutPrefix(word, "!")
	h := ast.Host{Span: span, Kind: ast.HostName, Not: not, Bits: -1}
	if before, bits, ok := strings.Cut(name, "/"); ok {
		n, err := strconv.ParseUint(bits, 10, 8)
		if err != nil || n > 128 {
			r.faults.Errorf(span, "%q is not a prefix length", bits)
			return h, false
		}
		name, h.Bits = before, int(n)
	}
	if _, err := netip.ParseAddr(name); err != nil { // the :0 of an address is not a modifier
		name = modifiers(&h, name)
	}
	if h.Name = name; name == "" {
		r.faults.Errorf(span, "%q is not an address", word)
	}
	return h, name != ""
}

// modifiers removes the modifiers from an interface's name.
func modifiers(h *ast.Host, name string) string {
	for {
		i := strings.LastIndexByte(name, ':')
		if i < 0 {
			return name
		}
		switch name[i:] {
		case ":network":
			h.Network = true
		case ":0":
			h.NoAlias = true
		case ":broadcast":
			h.Broadcast = true
		case ":peer":
			h.Peer = true
		default:
			return name
		}
		name = name[:i]
	}
}
