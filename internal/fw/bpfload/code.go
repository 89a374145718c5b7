package bpfload

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/cilium/ebpf"
)

// Code is a piece of a loaded program's machine code.
type Code struct {
	Start, End uint64 // addresses; End is after the last byte
	Program    string // at most 15 characters, as the kernel keeps it
	File       string // source file without its folder; "": the program has no line information
	Line       int
}

// LoadedCode returns the machine code of all loaded programs and the source lines it was
// made from. It leaves out programs that the kernel does not show, or that end meanwhile.
func LoadedCode() ([]Code, error) {
	var all []Code
	for id := ebpf.ProgramID(0); ; {
		next, err := ebpf.ProgramGetNextID(id)
		if errors.Is(err, fs.ErrNotExist) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("list the loaded programs: %w", err)
		}
		id = next
		p, err := ebpf.NewProgramFromID(id)
		if err != nil {
			continue // the program has ended
		}
		code, err := codeOf(p)
		p.Close()
		if errors.Is(err, fs.ErrNotExist) {
			continue // the program has ended, and its BTF with it
		}
		if err != nil {
			return nil, fmt.Errorf("read the machine code's place of program %d: %w", id, err)
		}
		all = append(all, code...)
	}
}

func codeOf(p *Program) ([]Code, error) {
	info, err := p.Info()
	if err != nil {
		return nil, err
	}
	starts, _ := info.JitedKsymAddrs()
	lengths, _ := info.JitedFuncLens()
	var code []Code
	for i, start := range starts {
		if i < len(lengths) {
			code = append(code, Code{Start: uint64(start), End: uint64(start) + uint64(lengths[i]), Program: info.Name})
		}
	}
	addresses, _ := info.JitedLineInfos()
	lines, err := info.LineInfos()
	switch {
	case errors.Is(err, ebpf.ErrNotSupported), errors.Is(err, ebpf.ErrRestrictedKernel), len(addresses) == 0:
		return code, nil // built without line information, or not shown
	case err != nil:
		return nil, err
	case len(lines) != len(addresses):
		return nil, fmt.Errorf("%d source lines for %d places in the machine code", len(lines), len(addresses))
	}
	var fine []Code
	for _, whole := range code {
		part := Code{}
		for i, at := range addresses { // sorted by address within a function
			if at < whole.Start || at >= whole.End {
				continue
			}
			if part.Program != "" {
				part.End = at
				fine = append(fine, part)
			}
			part = Code{Start: at, Program: info.Name, File: path.Base(lines[i].Line.FileName()), Line: int(lines[i].Line.LineNumber())}
		}
		if part.Program == "" {
			part = whole
		}
		part.End = whole.End
		fine = append(fine, part)
	}
	return fine, nil
}
