package bpfload

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/cilium/ebpf"

	"weir/internal/netif"
)

// describeXDP names the XDP program on an interface, and who holds it; "" if
// there is none.
func describeXDP(ifindex int) string {
	links, err := netif.Links()
	if err != nil {
		return ""
	}
	i := slices.IndexFunc(links, func(l netif.Link) bool { return l.Index == ifindex })
	if i < 0 || links[i].XDP == 0 {
		return ""
	}
	id := links[i].XDP
	text := fmt.Sprintf("program %d", id)
	if name := programName(id); name != "" {
		text = fmt.Sprintf("%s (id %d)", name, id)
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

// programHolders returns "NAME[PID]" of every process with a descriptor of the
// program or of a link to it.
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

// holdsProgram reads one descriptor's "prog_id:" line, which programs and links have.
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
