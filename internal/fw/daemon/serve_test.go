package daemon

import (
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The service manager is told that the daemon is ready even if nothing is loaded. A boot
// must not wait for rules that nobody wrote.
func TestReadyWithoutRules(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	t.Setenv("NOTIFY_SOCKET", path)
	var log strings.Builder
	b := &box{
		cfg:    &Config{File: DefaultFile, Management: 22, Log: slog.New(slog.NewTextHandler(&log, nil))},
		source: builtin(22),
	}
	b.logReady()
	if !strings.Contains(log.String(), "everything is blocked but lo and the management port") {
		t.Errorf("said\n%s", log.String())
	}
	if err := manager.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
		t.Fatal(err)
	}
	told := make([]byte, 64)
	n, err := manager.Read(told)
	if err != nil || string(told[:n]) != "READY=1" {
		t.Errorf("the service manager was told %q, %v", told[:n], err)
	}
}

type beats int

func (n *beats) Heartbeat() { *n++ }

// The heartbeat goes on while a load holds the box's lock.
func TestHeartbeatDuringLoad(t *testing.T) {
	var n beats
	b := &box{pulse: pulse{of: &n}}
	b.mu.Lock()
	b.beat()
	b.mu.Unlock()
	b.beat()
	b.pulse.follow(nil)
	b.beat()
	if n != 2 {
		t.Errorf("%d beats, want 2", n)
	}
}
