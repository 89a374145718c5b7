package wgfile

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"weir/internal/vpn/key"
	"weir/pf/ast"
	"weir/pf/printer"
)

// A KeyFile is a file to be written, because statements name files of keys.
type KeyFile struct {
	Path string
	Key  key.Secret
}

// Statements returns the statements of a tunnel, and the files of keys in a folder that they name.
func (f *File) Statements(name, folder string) (stmts []ast.Stmt, files []KeyFile) {
	keep := func(file, ending string, k key.Secret) *ast.Word {
		base := strings.TrimRight(folder, "/") + "/" + file
		path := base + ending
		for n := 2; slices.ContainsFunc(files, func(f KeyFile) bool { return f.Path == path }); n++ {
			path = fmt.Sprintf("%s-%d%s", base, n, ending)
		}
		files = append(files, KeyFile{path, k})
		return &ast.Word{Text: path}
	}
	w := &ast.WireGuard{Name: ast.Word{Text: name}, NoRoute: f.NoRoute && len(f.added) == 0}
	named := func(path string) *ast.Word { return &ast.Word{Text: strings.ReplaceAll(path, "%i", name)} } // as wg-quick does
	if w.Key = named(f.KeyFile); f.KeyFile == "" {
		w.Key = keep(name, ".key", f.Private)
	}
	w.Port, w.MTU = count(f.Port), count(f.MTU)
	for _, a := range f.Addresses {
		w.Addresses = append(w.Addresses, ast.Network{Prefix: a})
	}
	stmts = append(stmts, w)
	taken := map[string]bool{}
	for i := range f.Peers {
		p := &f.Peers[i]
		s := &ast.Peer{Name: ast.Word{Text: nameOf(p.Name, i, taken)}, On: w.Name, Key: &ast.Word{Text: p.Key.String()}, Keepalive: count(p.Keepalive), NoRoute: p.NoRoute}
		if path := f.psk[p.Key.String()]; path != "" {
			s.PSK = named(path)
		} else if !p.Preshared.IsZero() {
			s.PSK = keep(name+"-"+unsafe.ReplaceAllString(s.Name.Text, "_"), ".psk", p.Preshared)
		}
		if p.Host != "" {
			s.Ways = []ast.Way{{Host: ast.Word{Text: p.Host}, Port: count(p.Port)}}
		}
		for _, a := range p.Allowed {
			s.Allowed = append(s.Allowed, ast.Network{Prefix: a})
		}
		stmts = append(stmts, s)
	}
	return stmts, files
}

// unsafe is what a name has that the name of a file should not.
var unsafe = regexp.MustCompile(`[^A-Za-z0-9._-]`)

// nameOf returns a name that no other peer has: as the file says, or a number.
func nameOf(name string, i int, taken map[string]bool) string {
	if name == "" || taken[name] || strings.ContainsAny(name, "\"\\\n") {
		name = fmt.Sprintf("peer%d", i+1)
	}
	for taken[name] {
		name += "x"
	}
	taken[name] = true
	return name
}

func count(n uint16) *ast.Count {
	if n == 0 {
		return nil
	}
	return &ast.Count{N: uint32(n)}
}

// Fprint prints statements as weir.conf has them.
func Fprint(w io.Writer, stmts []ast.Stmt) error { return printer.Fprint(w, &ast.File{Stmts: stmts}) }
