package bpfload

import (
	"bufio"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"weir/internal/host/netif"
)

// describeXDP describes the XDP program on an interface and who holds it. It returns ""
// if there is none.
func describeXDP(ifindex int) string {
	links, err := netif.Links()
	if err != nil {
		return ""
	}
	i := slices.IndexFunc(links, func(l netif.Link) bool { return l.Index == ifindex })
	if i < 0 || links[i].XDP == 0 {
		return ""
	}
	return DescribeProgram(links[i].XDP)
}

// DescribeProgram describes a program by its name and id, the paths where it or a link to
// it is pinned, and the processes that have it open. It leaves out what it cannot find
// out. It is called within a Place.
func DescribeProgram(id uint32) string {
	text := fmt.Sprintf("program %d", id)
	if name := programName(id); name != "" {
		text = fmt.Sprintf("%s (id %d)", name, id)
	}
	if pins := programPins(id); len(pins) > 0 {
		text += ", pinned at " + strings.Join(pins, ", ")
	}
	if holders := programHolders(id); len(holders) > 0 {
		text += ", held by " + strings.Join(holders, ", ")
	}
	return text
}

func programName(id uint32) string {
	p, err := ebpf.NewProgramFromID(ebpf.ProgramID(id))
	if err != nil {
		return ""
	}
	defer p.Close()
	info, err := p.Info()
	if err != nil {
		return ""
	}
	return info.Name
}

// programHolders returns "NAME[PID]" for each process with a descriptor of the program or
// of a link to it.
func programHolders(id uint32) []string {
	files, err := filepath.Glob("/proc/[0-9]*/fdinfo/*")
	if err != nil {
		return nil
	}
	var holders []string
	for _, file := range files {
		if !holdsProgram(file, id) {
			continue
		}
		pid := strings.Split(file, "/")[2]
		name, err := os.ReadFile("/proc/" + pid + "/comm")
		if err != nil {
			continue
		}
		holder := fmt.Sprintf("%s[%s]", strings.TrimSpace(string(name)), pid)
		if !slices.Contains(holders, holder) {
			holders = append(holders, holder)
		}
	}
	return holders
}

// holdsProgram reads a descriptor's "prog_id:" line, which programs and links have.
func holdsProgram(fdinfo string, id uint32) bool {
	f, err := os.Open(fdinfo)
	if err != nil {
		return false
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		key, value, _ := strings.Cut(lines.Text(), ":")
		if key == "prog_id" {
			return strings.TrimSpace(value) == strconv.FormatUint(uint64(id), 10)
		}
	}
	return false
}

// maxPins is how many pinned objects are examined. A machine with more has other ways to
// tell whose a program is.
const maxPins = 10000

// programPins returns the paths in bpf file systems where the program or a link to it is
// pinned.
func programPins(id uint32) []string {
	mounts, err := os.ReadFile("/proc/thread-self/mounts")
	if err != nil {
		return nil
	}
	var pins []string
	left := maxPins
	for line := range strings.Lines(string(mounts)) {
		f := strings.Fields(line) // device, mount point, type (fstab(5))
		if len(f) < 3 || f[2] != "bpf" {
			continue
		}
		filepath.WalkDir(f[1], func(path string, d fs.DirEntry, err error) error { //nolint:errcheck // what cannot be read is left out
			switch {
			case err != nil || left == 0:
				return fs.SkipDir
			case d.IsDir():
				return nil
			}
			left--
			if pinnedProgram(path) == id && !slices.Contains(pins, path) {
				pins = append(pins, path)
			}
			return nil
		})
	}
	return pins
}

// pinnedProgram returns the id of the program that is pinned at path, or that a link
// pinned there holds. It returns 0 if there is neither.
func pinnedProgram(path string) uint32 {
	if l, err := link.LoadPinnedLink(path, nil); err == nil {
		defer l.Close()
		if info, err := l.Info(); err == nil {
			return uint32(info.Program)
		}
		return 0
	}
	p, err := ebpf.LoadPinnedProgram(path, nil)
	if err != nil {
		return 0
	}
	defer p.Close()
	info, err := p.Info()
	if err != nil {
		return 0
	}
	id, _ := info.ID()
	return uint32(id)
}
