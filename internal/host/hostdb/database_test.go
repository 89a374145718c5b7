package hostdb

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"weir/pf/resolve"
)

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }

func TestFill(t *testing.T) {
	root := fstest.MapFS{
		"etc/passwd":    file("root:x:0:0:root:/root:/bin/sh\nroot:x:9:9::/:\n+nis::::::\nbad:x:many:1::/:\nwww:x:67:67::/:\n# none\nshort:x\n"),
		"etc/group":     file("wheel:x:0:root\nwww:x:67:\n"),
		"etc/hosts":     file("127.0.0.1\tlocalhost\n::1 localhost ip6-localhost # both\n\n192.0.2.7 www.example.net www\nnonsense x\n127.0.0.1 localhost\n"),
		"etc/services":  file("# names\nssh 22/tcp\nhttp\t80/tcp www # web\nsyslog 514/udp\nbad 70000/tcp\nbad 5\n"),
		"etc/protocols": file("ip 0 IP\nipv6-icmp 58 IPv6-ICMP # v6\nbad 300\n"),
	}
	host := &resolve.Host{}
	if err := Fill(host, root); err != nil {
		t.Fatal(err)
	}
	addr := netip.MustParseAddr
	want := &resolve.Host{
		Users:  map[string]uint32{"root": 0, "www": 67},
		Groups: map[string]uint32{"wheel": 0, "www": 67},
		Hosts: map[string][]netip.Addr{
			"localhost": {addr("127.0.0.1"), addr("::1")}, "ip6-localhost": {addr("::1")},
			"www.example.net": {addr("192.0.2.7")}, "www": {addr("192.0.2.7")},
		},
		Services: []resolve.Service{
			{Names: []string{"ssh"}, Port: 22, Protocol: "tcp"},
			{Names: []string{"http", "www"}, Port: 80, Protocol: "tcp"},
			{Names: []string{"syslog"}, Port: 514, Protocol: "udp"},
		},
		Protocols: []resolve.Protocol{
			{Names: []string{"ip", "IP"}, Number: 0}, {Names: []string{"ipv6-icmp", "IPv6-ICMP"}, Number: 58},
		},
	}
	if diff := cmp.Diff(want, host, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFillWithout(t *testing.T) {
	host := &resolve.Host{}
	if err := Fill(host, fstest.MapFS{}); err != nil {
		t.Fatal(err)
	}
	if len(host.Users)+len(host.Hosts)+len(host.Services) != 0 {
		t.Errorf("names out of nothing: %+v", host)
	}
}

// TestFillLongLine finds a reader that stops at a long line: a group with many members is
// one line.
func TestFillLongLine(t *testing.T) {
	var members strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&members, "member%d,", i)
	}
	host := &resolve.Host{}
	if err := Fill(host, fstest.MapFS{"etc/group": file("users:x:100:" + members.String() + "\r\nwww:x:67:\n")}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]uint32{"users": 100, "www": 67}, host.Groups); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestFillUnreadable finds databases left out because another one cannot be read.
func TestFillUnreadable(t *testing.T) {
	root := fstest.MapFS{
		"etc/passwd/x": file(""), "etc/hosts": file("192.0.2.7 www\n"),
		"usr/share/iproute2/group/x": file(""), "etc/iproute2/group": file("1 lan\n"),
	}
	host := &resolve.Host{}
	if err := Fill(host, root); !errors.Is(err, ErrUnreadable) || len(host.Hosts["www"]) != 1 {
		t.Errorf("%v, hosts %v", err, host.Hosts)
	}
	if groups, err := LinkGroups(root); !errors.Is(err, ErrUnreadable) || groups[1] != "lan" {
		t.Errorf("%v, groups of links %v", err, groups)
	}
}

func TestLinkGroups(t *testing.T) {
	got, err := LinkGroups(fstest.MapFS{
		"usr/share/iproute2/group": file("0 default\n1 lan\n"),
		"etc/iproute2/group":       file("# own\n1\tinside\n0x10 dmz\nx y\n7\n"),
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[uint32]string{1: "inside", 16: "dmz"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
