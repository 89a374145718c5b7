package cli

import (
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/fw/pktrecord"
	"weir/internal/testenv"
)

func TestCaptureUsage(t *testing.T) {
	testenv.NeedRoot(t)
	for _, test := range []struct {
		args   []string
		want   string
		status int
	}{
		{[]string{"capture"}, `name an interface, or "any"`, 2},
		{[]string{"capture", "any", "-s", "0"}, "-s 0: want 1 to 9216 bytes", 2},
		{[]string{"capture", "any", "-s", "9217"}, "-s 9217", 2},
		{[]string{"capture", "any", "--json", "-w", "x"}, "use --json or -w, not both", 2},
		{[]string{"capture", "any"}, "no daemon runs in this network namespace", 1},
	} {
		stdout, stderr, status := run(t, test.args...)
		if status != test.status || stdout != "" || !strings.Contains(stderr, test.want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("weir %s: status %d, stdout %q, stderr %q; want status %d and one sentence with %q",
				strings.Join(test.args, " "), status, stdout, stderr, test.status, test.want)
		}
	}
}

// If a file cannot be written, the error names it.
func TestPacketFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "missing", "f.pcapng")
	form := packetForm{file: path}
	if _, err := form.printer(nil, &pktrecord.Form{Snap: 60, Interfaces: []string{"lo"}}); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("the error is %v", err)
	}
}
