package tree_test

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"weir/internal/testenv"
)

// refused are imports that the order allows but that are still wrong. Both patterns are
// matched against "file import". An import is refused if the first one matches and the
// second one does not.
var refused = []struct{ imports, except, why string }{
	{`^pf/\S+ (weir/internal|github.com/(cilium|vishvananda)|golang.org/x/sys|syscall)`, `internal/testenv$`, "the language knows no kernel and nothing of weir but pf"},
	{` github.com/cilium/ebpf`, `^internal/fw/bpfload/|_bpfel.go `, "only internal/fw/bpfload and generated code import cilium/ebpf"},
	{` github.com/(mdlayher/netlink|jsimonetti/rtnetlink)`, `^$`, "vishvananda/netlink is the only netlink package"},
	{` github.com/stretchr/testify`, `^$`, "tests compare with go-cmp"},
	{`^internal/host/doctor/[^/]+\.go (weir/internal|github.com/(vishvananda|safchain)|golang.org/x/sys)`, `_test.go |/(cpulist|irqname|units|textout|stats|pattern|tune/arith)$`, "checks read nothing but their snapshot"},
	{`^internal/(host/netif|fw/dataplane)/\S+ weir/pf/`, `_test.go `, "netif and the dataplane know no language"},
	{`^internal/bench/(iperf|probe)/\S+ weir/internal/(bench|lab)`, `_test.go `, "programs and probes know no lab: a function says where they run"},
	{`^internal/pppoe/(ppp|discovery)/\S+ (golang.org/x/|weir/internal/(pppoe/wire|lab|fw|host))`, `_test.go `, "the protocols of PPPoE know no sockets"},
	{`^internal/vpn/wide/\S+ (golang.org/x/|weir/internal/vpn/(device|datapath|tunnel))`, `_test.go `, "wide knows no sockets, and no engine"},
	{`^internal/vpn/failover/\S+ (golang.org/x/|weir/)`, `_test.go `, "failover knows no sockets, and nothing of weir"},
	{`^internal/host/tune/\S+ weir/internal/(bench|lab|fw/dataplane)`, `_test.go `, "tune sets the host, not the dataplane"},
	{`^internal/host/tune/(db|arith)/\S+ weir/`, `_test.go `, "tune's settings and their arithmetic import nothing of weir"},
	{`^internal/(host/(cpulist|filelock|irqname|proc)|fw/reason|pattern|units|textout|missing|selfsigned|stats|killpoint|testenv)/\S+ weir/`, `_test.go `, "a leaf imports nothing of weir"},
}

// TestImportOrder compares every import with the list in docs/architecture.md, Shape: a
// package imports only packages below it. Tests may import anything.
func TestImportOrder(t *testing.T) {
	root := testenv.Root(t)
	order := importOrder(t, root)
	walk(t, root, ".go", func(path string, text []byte) {
		file, folder := relative(t, root, path), relative(t, root, filepath.Dir(path))
		for _, name := range imports(t, path, text) {
			checkRefused(t, file+" "+name)
			if imported, ours := strings.CutPrefix(name, "weir/"); ours && !strings.HasSuffix(file, "_test.go") {
				checkOrder(t, order, folder, imported)
			}
		}
		if inOrder(folder) && !slices.Contains(order, folder) {
			t.Errorf("%s has no place in docs/architecture.md, Shape", folder)
		}
	})
	for _, folder := range order {
		if files, _ := filepath.Glob(filepath.Join(root, folder, "*.go")); len(files) == 0 {
			t.Errorf("docs/architecture.md, Shape, names %s, which is no package", folder)
		}
	}
}

// inOrder reports whether a folder's packages must be in the list.
func inOrder(folder string) bool {
	return strings.HasPrefix(folder, "internal/") || strings.HasPrefix(folder, "pf/")
}

func checkRefused(t *testing.T, imported string) {
	t.Helper()
	for _, rule := range refused {
		if regexp.MustCompile(rule.imports).MatchString(imported) && !regexp.MustCompile(rule.except).MatchString(imported) {
			t.Errorf("%s: %s", imported, rule.why)
		}
	}
}

func checkOrder(t *testing.T, order []string, folder, imported string) {
	t.Helper()
	from, to := slices.Index(order, folder), slices.Index(order, imported)
	if from >= 0 && to <= from {
		t.Errorf("%s imports %s, which does not stand below it in docs/architecture.md, Shape", folder, imported)
	}
}

// importOrder reads the packages in Shape's list, from top to bottom.
func importOrder(t *testing.T, root string) (order []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, shape, _ := strings.Cut(string(text), "\n## Shape\n")
	shape, _, _ = strings.Cut(shape, "\n## ")
	order = regexp.MustCompile(`(?m)^(cmd|internal|pf)/\S+|^examples\b`).FindAllString(shape, -1)
	if len(order) < 20 {
		t.Fatalf("docs/architecture.md, Shape, lists only %q", order)
	}
	return order
}

func imports(t *testing.T, path string, text []byte) (names []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range file.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	return names
}
