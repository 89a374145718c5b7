package paths

import (
	"regexp"
	"testing"

	"weir/internal/bench/testbed"
	"weir/internal/lab"
	"weir/internal/testenv"
)

// TestDetour: what goes to a detour's address and comes from it has passed its device.
func TestDetour(t *testing.T) {
	testenv.NeedRoot(t)
	testenv.NeedProgram(t, "nft")
	b, err := testbed.Open(t.Context(), testbed.Options{Name: "weir-test-detour"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		testenv.NothingLeft(t, "weir-test-detour")
	}()
	stop, err := StartForSockets(t.Context(), b, Kernel, SocketOptions{Detour: true})
	if err != nil {
		t.Fatal(err)
	}
	_, err = b.Lab.Run(t.Context(), lab.WAN, "nft", `table ip seen {
	chain in { type filter hook input priority 0; iifname "isp0" counter; }
	chain out { type filter hook output priority 0; oifname "isp0" counter; }
}`)
	if err != nil {
		t.Fatal(err)
	}
	if err := exchange(b.Lab, lab.FW, lab.WAN, DetourServer().String()); err != nil {
		t.Error(err)
	}
	out, err := b.Lab.Run(t.Context(), lab.WAN, "nft", "list", "ruleset")
	for _, hook := range []string{"iifname", "oifname"} {
		if !regexp.MustCompile(hook + ` "isp0" counter packets ([3-9]|\d\d)`).Match(out) {
			t.Errorf("nothing by %s (%v):\n%s", hook, err, out)
		}
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}
