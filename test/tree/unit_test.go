package tree

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"weir/internal/testenv"
)

// The unit of tunnels restarts at once, needs no daemon to live, and leaves the tunnels when it ends.
func TestTunnelUnit(t *testing.T) {
	unit, err := os.ReadFile(filepath.Join(testenv.Root(t), "packaging", "systemd", "weir-vpn.service"))
	if err != nil {
		t.Fatal(err)
	}
	for _, must := range []string{
		`(?m)^ExecStart=@PREFIX@/bin/weir vpn run$`, `(?m)^Type=notify$`, `(?m)^Restart=always$`, `(?m)^RestartSec=100ms$`,
		`(?m)^CapabilityBoundingSet=CAP_NET_ADMIN CAP_NET_BIND_SERVICE CAP_NET_RAW$`, `(?m)^NoNewPrivileges=yes$`, `(?m)^StateDirectory=weir/vpn$`,
	} {
		if !regexp.MustCompile(must).Match(unit) {
			t.Errorf("the unit has nothing like %s", must)
		}
	}
	if found := regexp.MustCompile(`(?m)^(ExecStop|ExecStopPost|Requires|BindsTo|PartOf)=.*$`).FindAll(unit, -1); len(found) > 0 {
		t.Errorf("the unit has %q", found)
	}
}

// The systemd unit starts weir whatever its file says, and neither a stop of
// the service nor a sandbox takes the dataplane away.
func TestUnit(t *testing.T) {
	unit, err := os.ReadFile(filepath.Join(testenv.Root(t), "packaging", "systemd", "weir.service"))
	if err != nil {
		t.Fatal(err)
	}
	for _, must := range []string{
		`(?m)^ExecStart=@PREFIX@/bin/weir run --or-block$`, `(?m)^ExecReload=@PREFIX@/bin/weir load /etc/weir/weir\.conf$`,
		`(?m)^Type=notify$`, `(?m)^Before=network-pre\.target `, `(?m)^Wants=network-pre\.target$`, `(?m)^DefaultDependencies=no$`,
	} {
		if !regexp.MustCompile(must).Match(unit) {
			t.Errorf("the unit has nothing like %s", must)
		}
	}
	mustNot := `(?m)^(ExecStop|ExecStopPost|RuntimeDirectory|Private\w+|Protect\w+|ReadOnlyPaths|ReadWritePaths|InaccessiblePaths|BindPaths|TemporaryFileSystem|RootDirectory|MountFlags|DynamicUser|NetworkNamespacePath)=.*$`
	if found := regexp.MustCompile(mustNot).FindAll(unit, -1); len(found) > 0 {
		t.Errorf("the unit has %q", found)
	}
}
