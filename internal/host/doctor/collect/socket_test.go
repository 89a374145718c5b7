package collect

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"weir/internal/host/doctor"
)

// TestParseSockets reads lines as the kernel prints them.
func TestParseSockets(t *testing.T) {
	const udp = "   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops             \n" +
		"  348: 00000000:0202 00000000:0000 07 00000000:00034000 00:00000000 00000000     0        0 20815 2 000000006e8e2fe5 4711      \n" +
		"  349: 00000000:0035 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 20816 2 000000006e8e2fe6 0         \n"
	const tcp = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode                                                     \n" +
		"   0: 00000000:1F90 00000000:0000 0A 00000000:00000081 00:00000000 00000000     0        0 30001 1 0000000000000000 100 0 0 10 0                     \n" +
		"   1: 0100007F:0016 0100007F:C350 01 00000000:00000005 00:00000000 00000000     0        0 30002 1 0000000000000000 20 4 30 10 -1                    \n"
	got, err := parseSockets(nil, "udp", udp)
	if err != nil {
		t.Fatal(err)
	}
	if got, err = parseSockets(got, "tcp", tcp); err != nil {
		t.Fatal(err)
	}
	want := []doctor.Socket{{Protocol: "udp", Port: 514, Inode: 20815, Drops: 4711}, {Protocol: "tcp", Port: 8080, Inode: 30001, Waiting: 129}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, err := parseSockets(nil, "udp", udp+"nonsense\n"); err == nil {
		t.Error("nonsense was read")
	}
}

// TestListening checks that a table of TCP is read up to its first socket that does not listen:
// on a busy server hundreds of thousands follow.
func TestListening(t *testing.T) {
	r := &reader{proc: t.TempDir(), snapshot: &doctor.Snapshot{Unreadable: map[string]string{}}}
	const head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
	const listens = "   0: 00000000:1F90 00000000:0000 0A 00000000:00000081 00:00000000 00000000     0        0 30001 1 0000000000000000 100 0 0 10 0\n"
	const connected = "   1: 0100007F:0016 0100007F:C350 01 00000000:00000005 00:00000000 00000000     0        0 30002 1 0000000000000000 20 4 30 10 -1\n"
	if err := os.MkdirAll(r.procFile("net"), 0o755); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]int{"": 0, head: 0, head + listens: 1, head + listens + connected + "not read\n": 1, head + connected + "not read\n": 0, head + listens + "nonsense\n": -1} {
		if err := os.WriteFile(r.procFile("net/tcp"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		clear(r.snapshot.Unreadable)
		var c doctor.Counters
		r.sockets(&c)
		if bad := r.snapshot.Unreadable["sockets"]; (bad != "") != (want < 0) || len(c.Sockets) != max(0, want) {
			t.Errorf("%q: %+v, %s", text, c.Sockets, bad)
		}
	}
}

// TestNFQueues reads lines as the kernel prints them.
func TestNFQueues(t *testing.T) {
	r := &reader{proc: t.TempDir(), snapshot: &doctor.Snapshot{Unreadable: map[string]string{}}}
	var c doctor.Counters
	if r.nfqueues(&c); c.NFQueues == nil || len(c.NFQueues) > 0 {
		t.Errorf("without the file: %v", c.NFQueues)
	}
	for name, text := range map[string]string{"net/netfilter/nfnetlink_queue": "    0   1234  4096 2 65535 1018019   17  5000000  1\n    3 4294963200 0 2 65535 0 0 9 1\n", "1234/comm": "ntopng\n"} {
		if err := os.MkdirAll(filepath.Dir(r.procFile(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(r.procFile(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r.nfqueues(&c)
	want := []doctor.NFQueue{{Number: 0, PortID: 1234, Program: "ntopng", Waiting: 4096, Given: 5000000, Dropped: 1018019, Unread: 17}, {Number: 3, PortID: 4294963200, Given: 9}}
	if diff := cmp.Diff(want, c.NFQueues); diff != "" || len(r.snapshot.Unreadable) > 0 {
		t.Errorf("%v\n%s", r.snapshot.Unreadable, diff)
	}
	if err := os.WriteFile(r.procFile("net/netfilter/nfnetlink_queue"), []byte("nonsense\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r.nfqueues(&c); r.snapshot.Unreadable["nfqueues"] == "" {
		t.Error("nonsense was read")
	}
}

// TestSockets fills a socket that nobody reads, and lets a connection wait that nobody
// accepts. Both are this test's own.
func TestSockets(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	receiver := dropDatagrams(t)
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	waiting, err := net.Dial("tcp4", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer waiting.Close()
	name, err := os.ReadFile("/proc/self/comm")
	if err != nil {
		t.Fatal(err)
	}
	folder, pid := t.TempDir(), os.Getpid() // /proc/net is that of the first thread, which another test may have moved
	for link, target := range map[string]string{"net": fmt.Sprintf("/proc/%d/task/%d/net", pid, unix.Gettid()), strconv.Itoa(pid): fmt.Sprintf("/proc/%d", pid)} {
		if err := os.Symlink(target, filepath.Join(folder, link)); err != nil {
			t.Fatal(err)
		}
	}
	r := &reader{proc: folder, snapshot: &doctor.Snapshot{Unreadable: map[string]string{}}}
	var c doctor.Counters
	r.sockets(&c)
	r.nameSockets(dropping(nil, c.Sockets))
	if again := dropping(c.Sockets, c.Sockets); slices.ContainsFunc(again, func(s *doctor.Socket) bool { return s.Protocol == "udp" }) {
		t.Errorf("dropping although nothing grew: %+v", again)
	}
	found := map[string]bool{}
	for _, s := range c.Sockets {
		own := s.Program == strings.TrimSpace(string(name))
		switch {
		case s.Port == receiver.LocalAddr().(*net.UDPAddr).Port && own && s.Drops > 100:
			found["udp"] = true
		case s.Port == listener.Addr().(*net.TCPAddr).Port && own && s.Waiting == 1:
			found["tcp"] = true
		}
	}
	if !found["udp"] || !found["tcp"] || len(r.snapshot.Unreadable) > 0 {
		t.Errorf("found %v of %+v; not readable: %v", found, c.Sockets, r.snapshot.Unreadable)
	}
}
