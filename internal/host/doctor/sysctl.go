package doctor

import (
	"fmt"
	"strconv"
	"strings"

	"weir/internal/pattern"
)

// sysctlLine matches a line of sysctl -a: Linux's with " = ", FreeBSD's with ": ". The
// first word of the name must be one that these kernels have.
var sysctlLine = pattern.New(`^((?:abi|compat|crypto|debug|dev|fs|hw|kern|kernel|kstat|machdep|net|p1003_1b|security|sunrpc|sysctl|user|vfs|vm)(?:\.[^\s=:]+)+)( = | =$|: |:$)(.*)$`)

// wholeOutput is the number of names above which a text is a whole output, not a
// selection of lines. Only a whole output may have lines that continue a value.
const wholeOutput = 100

// readSysctls reads the output of sysctl -a, or a selection of its lines.
func readSysctls(text string) (*Snapshot, error) {
	s := &Snapshot{Sysctls: map[string]string{}}
	var separator, stray string
	for number, line := range lines(text) {
		found := sysctlLine.FindStringSubmatch(line)
		switch {
		case found == nil && strings.HasPrefix(line, "sysctl: "): // complaints about single names
			continue
		case found == nil && separator == "":
			return nil, errOther
		case found == nil:
			if stray == "" {
				stray = fmt.Sprintf("line %d: %q", number, line)
			}
			continue
		case separator != "" && separator != strings.TrimSpace(found[2]):
			return nil, fmt.Errorf("line %d: %q ends with %q, others with %q", number, found[1], strings.TrimSpace(found[2]), separator)
		}
		separator = strings.TrimSpace(found[2])
		s.Sysctls[found[1]] = strings.TrimSpace(found[3])
	}
	switch {
	case separator == "":
		return nil, errOther
	case stray != "" && (separator == "=" || len(s.Sysctls) < wholeOutput):
		return nil, fmt.Errorf("%s is no setting", stray)
	case separator == "=":
		s.Host.System = "Linux"
	default:
		s.Host.System = "FreeBSD"
	}
	s.Host.Kernel = s.Sysctls[map[string]string{"Linux": "kernel.osrelease", "FreeBSD": "kern.osrelease"}[s.Host.System]]
	s.countedBySysctl()
	return s, nil
}

// countedBySysctl moves counters out of the settings.
func (s *Snapshot) countedBySysctl() {
	if n, err := strconv.Atoi(s.Sysctls["net.netfilter.nf_conntrack_count"]); err == nil {
		s.After = &Counters{Conntrack: &Conntrack{Count: n}}
	}
}

// lines iterates over a text's non-blank lines with their numbers, without line endings.
func lines(text string) func(func(int, string) bool) {
	return func(yield func(int, string) bool) {
		number := 0
		for line := range strings.Lines(text) {
			number++
			if line = strings.TrimRight(line, " \t\r\n"); strings.TrimSpace(line) != "" && !yield(number, line) {
				return
			}
		}
	}
}
