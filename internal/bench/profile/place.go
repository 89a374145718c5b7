package profile

import (
	"bufio"
	"cmp"
	"embed"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"weir/internal/fw/bpfload"
	"weir/internal/missing"
)

// functionsFile lists where the functions of weir's sources begin. It is generated from
// bpf/ together with the programs.
//
//go:embed functions.txt
var functionsFile embed.FS

// function is the start of a function in a source file.
type function struct {
	line int
	name string
}

// Map maps addresses of the kernel to code.
type Map struct {
	code      []bpfload.Code        // sorted by address
	kernel    []symbol              // sorted by address
	functions map[string][]function // by file, sorted by line
}

type symbol struct {
	at   uint64
	name string
}

// foreign is the name of the programs of another weir, in another network namespace.
const foreign = "another weir"

// NewMap reads the kernel's symbols and the loaded programs. It is out of date once a
// program is loaded or unloaded. own is the id of a program of the weir that is measured,
// or 0. Programs of one weir share maps.
func NewMap(own uint32) (*Map, error) {
	m := &Map{}
	var err error
	if m.code, err = bpfload.LoadedCode(); err != nil {
		return nil, err
	}
	if err := m.markForeign(own); err != nil {
		return nil, err
	}
	slices.SortFunc(m.code, func(a, b bpfload.Code) int { return cmp.Compare(a.Start, b.Start) })
	if m.kernel, err = readSymbols("/proc/kallsyms"); err != nil {
		return nil, err
	}
	if m.functions, err = readFunctions(); err != nil {
		return nil, err
	}
	return m, nil
}

// markForeign renames the programs of other weirs.
func (m *Map) markForeign(own uint32) error {
	var maps []uint32
	if own != 0 {
		var err error
		if maps, err = bpfload.ProgramMaps(own); err != nil {
			return err
		}
	}
	for i := range m.code {
		c := &m.code[i]
		shares := slices.ContainsFunc(c.Maps, func(id uint32) bool { return slices.Contains(maps, id) })
		if strings.HasPrefix(c.Program, "weir_") && !shares {
			c.Program = foreign
		}
	}
	return nil
}

func readSymbols(name string) ([]symbol, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("read the kernel's symbols: %w", err)
	}
	defer f.Close()
	var all []symbol
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 3 || !strings.ContainsAny(fields[1], "tTwW") {
			continue
		}
		if at, err := strconv.ParseUint(fields[0], 16, 64); err == nil && at != 0 {
			all = append(all, symbol{at, fields[2]})
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read the kernel's symbols: %w", err)
	}
	if len(all) == 0 {
		return nil, missing.Errorf("%s shows no addresses: kernel.kptr_restrict hides them", name)
	}
	slices.SortStableFunc(all, func(a, b symbol) int { return cmp.Compare(a.at, b.at) })
	return all, nil
}

func readFunctions() (map[string][]function, error) {
	f, err := functionsFile.Open("functions.txt")
	if err != nil {
		return nil, fmt.Errorf("read the list of functions: %w", err)
	}
	defer f.Close()
	all := map[string][]function{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var file, name string
		var line int
		if _, err := fmt.Sscan(lines.Text(), &file, &line, &name); err != nil {
			return nil, fmt.Errorf("read the list of functions: %q: %w", lines.Text(), err)
		}
		all[file] = append(all[file], function{line, name})
	}
	return all, lines.Err()
}

// Place is the code at an address: a line of a program, or a function of the kernel.
type Place struct {
	Program  string // BPF program; "": the kernel itself
	File     string // the program's source
	Function string
}

// At returns the code at an address.
func (m *Map) At(address uint64) Place {
	i, exact := slices.BinarySearchFunc(m.code, address, func(c bpfload.Code, at uint64) int { return cmp.Compare(c.Start, at) })
	if !exact {
		i--
	}
	if i >= 0 && address < m.code[i].End {
		c := m.code[i]
		return Place{Program: c.Program, File: c.File, Function: m.function(c.File, c.Line)}
	}
	i, exact = slices.BinarySearchFunc(m.kernel, address, func(s symbol, at uint64) int { return cmp.Compare(s.at, at) })
	if !exact {
		i--
	}
	if i < 0 {
		return Place{}
	}
	return Place{Function: m.kernel[i].name}
}

// OtherWork stands for interrupts and other programs among the functions of a stack.
const OtherWork = "other work"

// Functions returns the functions of a stack, the outermost first. A BPF program counts as
// one function.
func (m *Map) Functions(stack Stack) (names []string) {
	if m.Stage(stack) == Others {
		return []string{OtherWork}
	}
	for _, address := range slices.Backward(stack) {
		switch p := m.At(address); {
		case p.Program != "":
			names = append(names, "bpf: "+p.Program)
		case p.Function != "":
			names = append(names, p.Function)
		}
	}
	return slices.Compact(names)
}

func (m *Map) function(file string, line int) string {
	name := ""
	for _, f := range m.functions[path.Base(file)] {
		if f.line > line {
			break
		}
		name = f.name
	}
	return name
}
