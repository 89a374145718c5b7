package collect

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/host/doctor"
)

// TestStackCounters makes the kernel drop a datagram and refuse a connection, and checks that
// the counters that the checks read are there and grow.
func TestStackCounters(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	folder := t.TempDir()
	if err := os.Symlink(fmt.Sprintf("/proc/%d/task/%d/net", os.Getpid(), unix.Gettid()), filepath.Join(folder, "net")); err != nil {
		t.Fatal(err)
	}
	r := &reader{proc: folder, snapshot: &doctor.Snapshot{Unreadable: map[string]string{}}}
	var before, after doctor.Counters
	if err := r.snmp(&before); err != nil || len(r.snapshot.Unreadable) > 0 {
		t.Fatal(err, r.snapshot.Unreadable)
	}
	dropDatagrams(t)
	refuseConnections(t)
	if err := r.snmp(&after); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"Udp.RcvbufErrors", "TcpExt.ListenOverflows", "Tcp.OutSegs"} {
		if after.SNMP[name] <= before.SNMP[name] {
			t.Errorf("%s: %d, then %d", name, before.SNMP[name], after.SNMP[name])
		}
	}
	for _, name := range []string{"Ip.ReasmFails", "Ip.ReasmTimeout", "Ip.ReasmReqds", "Udp.InDatagrams", "Tcp.RetransSegs", "Tcp.PassiveOpens", "TcpExt.TCPReqQFullDrop",
		"TcpExt.TCPReqQFullDoCookies", "TcpExt.TCPMemoryPressures", "TcpExt.TCPAbortOnMemory", "TcpExt.IPReversePathFilter", "TcpExt.TCPTimeouts", "Ip6.ReasmFails", "Udp6.RcvbufErrors",
		"Udp.InCsumErrors", "Tcp.InCsumErrors", "Tcp.InSegs", "IpExt.InNoRoutes", "Ip.InHdrErrors", "Icmp.OutTimeExcds", "Ip6.InNoRoutes", "Ip6.OutNoRoutes", "Icmp6.OutTimeExcds"} {
		if _, known := after.SNMP[name]; !known {
			t.Errorf("this kernel does not count %s", name)
		}
	}
	if r.tcpSockets(&after); after.TCPSockets == nil || len(r.snapshot.Unreadable) > 0 {
		t.Errorf("sockstat: %+v, %v", after.TCPSockets, r.snapshot.Unreadable)
	}
}

// TestParseXFRM reads lines as the kernel prints them (xfrm_statistics_seq_show).
func TestParseXFRM(t *testing.T) {
	all := map[string]uint64{}
	if err := parseXFRM(all, "XfrmInError             \t0\nXfrmInStateSeqError     \t4711\n"); err != nil || len(all) != 2 || all["Xfrm.InStateSeqError"] != 4711 {
		t.Errorf("%v, %v", all, err)
	}
	for _, text := range []string{"XfrmInError\n", "InError 3\n", "XfrmInError x\n"} {
		if err := parseXFRM(all, text); err == nil {
			t.Errorf("%q was read", text)
		}
	}
}

// dropDatagrams fills a socket that nobody reads, and returns it.
func dropDatagrams(t *testing.T) *net.UDPConn {
	t.Helper()
	receiver, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { receiver.Close() })
	if err := receiver.SetReadBuffer(4096); err != nil {
		t.Fatal(err)
	}
	sender, err := net.DialUDP("udp4", nil, receiver.LocalAddr().(*net.UDPAddr))
	if err != nil {
		t.Fatal(err)
	}
	defer sender.Close()
	for range 200 {
		if _, err := sender.Write(make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
	}
	return receiver
}

// refuseConnections opens more connections to a socket than its queue holds.
func refuseConnections(t *testing.T) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := unix.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	own, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", own.(*unix.SockaddrInet4).Port)
	for range 4 {
		if c, err := net.DialTimeout("tcp4", address, 200*time.Millisecond); err == nil {
			defer c.Close()
		}
	}
}
