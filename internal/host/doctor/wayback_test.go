package doctor

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestWayBack runs the command that sets how a link negotiates, with an ethtool that only
// writes down what it is told and a sleep that ends at once: what was before comes back,
// unless the shell's first half is stopped.
func TestWayBack(t *testing.T) {
	n := &nic{Interface: &Interface{Name: "eth9", Mbit: 100, MaxMbit: 1000, Duplex: "full", Offers: &Offers{}}}
	for kept, want := range map[bool]string{false: "-s eth9 autoneg on\n-s eth9 autoneg off speed 100 duplex full\n", true: "-s eth9 autoneg on\n"} {
		dir := t.TempDir()
		said := filepath.Join(dir, "said")
		for name, script := range map[string]string{
			"ethtool": "#!/bin/sh\necho \"$@\" >>" + said + "\n",
			"sleep":   "#!/bin/sh\ni=0\nwhile test ! -e " + dir + "/late && test $i -lt 100; do /bin/sleep 0.02; i=$((i + 1)); done\n",
		} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		script := n.setLink("autoneg on", "").Command
		if kept {
			script += "; kill $!"
		}
		command := exec.Command("sh", "-c", script+"; touch "+dir+"/late; wait")
		command.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
		command.WaitDelay = 5 * time.Second
		if out, err := command.CombinedOutput(); err != nil && !kept {
			t.Fatalf("%v: %s", err, out)
		}
		if text, err := os.ReadFile(said); err != nil || string(text) != want {
			t.Errorf("kept %t: %q, %v", kept, text, err)
		}
	}
	n.Offers = &Offers{Autoneg: true, Mbit: 100}
	if m := n.setLink("autoneg on", "x"); !strings.Contains(m.Command, "ethtool -s eth9 autoneg on advertise 0xf'") || !strings.Contains(m.Text, "kill $!") {
		t.Errorf("%+v", m)
	}
}
