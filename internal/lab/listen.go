package lab

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"
)

// listenPause is how often AwaitListener looks.
const listenPause = 20 * time.Millisecond

// AwaitListener waits until a program in a host listens on a TCP port or has a UDP socket
// there, or until ctx ends. It reads the kernel's tables, because a test connection would
// disturb the program.
func (l *Lab) AwaitListener(ctx context.Context, host string, port uint16) error {
	for {
		found, err := l.listens(host, port)
		if found || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for port %d of %s: %w", port, l.Namespace(host), ctx.Err())
		case <-time.After(listenPause):
		}
	}
}

func (l *Lab) listens(host string, port uint16) (bool, error) {
	found := false
	err := l.Do(host, func() error {
		for _, table := range []string{"tcp", "tcp6", "udp", "udp6"} {
			text, err := os.ReadFile("/proc/thread-self/net/" + table)
			if err != nil {
				return fmt.Errorf("list the sockets of %s: %w", l.Namespace(host), err)
			}
			found = found || tableListens(string(text), table[:3], port)
		}
		return nil
	})
	return found, err
}

// tableListens reads a table of proc(5). Local address, remote address and state are in
// columns 2 to 4. State 0A is listening; 07 is an unconnected socket.
func tableListens(text, proto string, port uint16) bool {
	suffix := fmt.Sprintf(":%04X", port)
	want := map[string]string{"tcp": "0A", "udp": "07"}[proto]
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) > 3 && strings.HasSuffix(f[1], suffix) && f[3] == want {
			return true
		}
	}
	return false
}
