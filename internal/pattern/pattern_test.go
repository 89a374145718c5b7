package pattern_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"weir/internal/pattern"
	"weir/internal/testenv"
)

// A pattern is compiled when it is used, not when it is made.
func TestLate(t *testing.T) {
	wrong := pattern.New("(")
	defer func() {
		if recover() == nil {
			t.Error("a wrong pattern matches")
		}
	}()
	wrong.MatchString("")
}

// TestPatterns compiles the pattern of each call of New outside of tests. The compiler does not, and
// a start of the program no longer does.
func TestPatterns(t *testing.T) {
	root := testenv.Root(t)
	n := 0
	err := filepath.WalkDir(filepath.Join(root, "internal"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		n += compileAll(t, path)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if n < 100 {
		t.Errorf("only %d patterns were found", n)
	}
}

// compileAll compiles the patterns of the package in a folder and returns how many there are.
func compileAll(t *testing.T, folder string) (n int) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	set, constants := token.NewFileSet(), make(map[string]ast.Expr)
	var made []*ast.CallExpr
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, path, text, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(node ast.Node) bool {
			switch node := node.(type) {
			case *ast.ValueSpec:
				for i, name := range node.Names {
					if i < len(node.Values) {
						constants[name.Name] = node.Values[i]
					}
				}
			case *ast.CallExpr:
				if f, ok := node.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "New" {
					if of, ok := f.X.(*ast.Ident); ok && of.Name == "pattern" && len(node.Args) == 1 {
						made = append(made, node)
					}
				}
			}
			return true
		})
	}
	for _, call := range made {
		text, ok := value(call.Args[0], constants)
		if !ok {
			t.Errorf("%s: the pattern is no constant", set.Position(call.Pos()))
		} else if _, err := regexp.Compile(text); err != nil {
			t.Errorf("%s: %v", set.Position(call.Pos()), err)
		}
	}
	return len(made)
}

// value returns the text of an expression of literals and constants of the package.
func value(e ast.Expr, constants map[string]ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil
	case *ast.BinaryExpr:
		left, ok := value(e.X, constants)
		right, also := value(e.Y, constants)
		return left + right, ok && also && e.Op == token.ADD
	case *ast.Ident:
		if of := constants[e.Name]; of != nil {
			return value(of, constants)
		}
	}
	return "", false
}
