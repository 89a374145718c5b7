package bpfload

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

// Code is a piece of a loaded program's machine code.
type Code struct {
	Start, End uint64   // addresses; End is after the last byte
	Program    string   // at most 15 characters, as the kernel keeps it
	Maps       []uint32 // ids of the maps that the program uses
	File       string   // source file without its folder; "": the program has no line information
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
	maps := mapIDs(info)
	starts, _ := info.JitedKsymAddrs()
	lengths, _ := info.JitedFuncLens()
	var code []Code
	for i, start := range starts {
		if i < len(lengths) {
			code = append(code, Code{Start: uint64(start), End: uint64(start) + uint64(lengths[i]), Program: info.Name, Maps: maps})
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
			part = Code{Start: at, Program: info.Name, Maps: maps, File: path.Base(lines[i].Line.FileName()), Line: int(lines[i].Line.LineNumber())}
		}
		if part.Program == "" {
			part = whole
		}
		part.End = whole.End
		fine = append(fine, part)
	}
	return fine, nil
}

// TCXProgram returns the id of the first TCX program at the ingress of a device of this
// network namespace; 0 if it has none.
func TCXProgram(ifindex int) (uint32, error) {
	attached, err := link.QueryPrograms(link.QueryOptions{Target: ifindex, Attach: ebpf.AttachTCXIngress})
	if err != nil {
		return 0, fmt.Errorf("ask for the TCX programs of interface %d: %w", ifindex, err)
	}
	if len(attached.Programs) == 0 {
		return 0, nil
	}
	return uint32(attached.Programs[0].ID), nil
}

// ProgramMaps returns the ids of the maps that a loaded program uses.
func ProgramMaps(program uint32) ([]uint32, error) {
	p, err := ebpf.NewProgramFromID(ebpf.ProgramID(program))
	if err != nil {
		return nil, fmt.Errorf("open program %d: %w", program, err)
	}
	defer p.Close()
	return programMaps(p)
}

func programMaps(p *Program) ([]uint32, error) {
	info, err := p.Info()
	if err != nil {
		return nil, fmt.Errorf("ask about a program: %w", err)
	}
	maps := mapIDs(info)
	if maps == nil {
		return nil, errors.New("this kernel does not tell which maps a program uses")
	}
	return maps, nil
}

// mapIDs returns nil if the kernel does not tell which maps a program uses.
func mapIDs(info *ebpf.ProgramInfo) []uint32 {
	used, ok := info.MapIDs()
	if !ok {
		return nil
	}
	ids := make([]uint32, len(used))
	for i, id := range used {
		ids[i] = uint32(id)
	}
	return ids
}
