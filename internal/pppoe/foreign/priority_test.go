package foreign_test

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"
	"time"

	"weir/internal/pppoe/discovery"
	"weir/internal/pppoe/wire"
	"weir/internal/testenv"
)

// TestPriority sends frames by a VLAN with and without a priority, and has tcpdump read the tag.
func TestPriority(t *testing.T) {
	testenv.NeedProgram(t, "tcpdump")
	l := link(t)
	if out, err := l.Run(t.Context(), "home", "ip", "link", "add", "link", "eth0", "name", "eth0.7", "type", "vlan", "id", "7"); err != nil {
		testenv.SkipOutside(t, "this kernel has no VLANs: %v %s", err, out)
	}
	if _, err := l.Run(t.Context(), "home", "ip", "link", "set", "eth0.7", "up"); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	dump := exec.Command("tcpdump", "-n", "-e", "-l", "-c", "2", "-i", "eth0", "vlan and ether broadcast")
	dump.Stdout = &said
	if err := l.Start("provider", dump); err != nil {
		t.Fatal(err)
	}
	time.Sleep(5 * time.Second) // an emulated machine is slow
	for _, with := range []bool{false, true} {
		err := l.Do("home", func() error {
			priority := 0
			if with {
				var err error
				if priority, err = wire.Priority("eth0.7", 6); err != nil {
					return err
				}
			}
			w, err := wire.Open("eth0.7", priority)
			if err != nil {
				return err
			}
			defer w.Close()
			f := discovery.Frame{To: discovery.Broadcast, From: w.MAC(), Ether: discovery.EtherDiscovery, Code: discovery.PADI}
			return w.Send(f.Append(nil))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan error, 1)
	go func() { done <- dump.Wait() }()
	select {
	case <-done:
	case <-time.After(patience):
		dump.Process.Kill() //nolint:errcheck // it may have ended
		<-done
	}
	lines := strings.Split(strings.TrimSpace(said.String()), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], "vlan 7, p 0") || !strings.Contains(lines[1], "vlan 7, p 6") {
		t.Errorf("tcpdump: %s", said.String())
	}
	if err := l.Do("home", func() error { _, err := wire.Priority("eth0", 6); return err }); err == nil {
		t.Error("a device without VLAN has a priority")
	}
}
