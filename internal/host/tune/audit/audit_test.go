package audit_test

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/host/tune/audit"
	"weir/internal/host/tune/db"
	"weir/internal/host/tune/target"
	"weir/internal/testenv"
)

// records are read once for all tests.
var records = sync.OnceValues(db.Load)

func judge(t *testing.T, name string) *audit.Auditor {
	t.Helper()
	d, err := records()
	if err != nil {
		t.Fatal(err)
	}
	if name == "linux" {
		return &audit.Auditor{DB: d, Target: target.Target{Name: name}}
	}
	system, err := target.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	return &audit.Auditor{DB: d, Target: system}
}

// TestRead checks that lines with a setting are found among prose, with their line
// number. Sentences that quote a setting are not.
func TestRead(t *testing.T) {
	const text = `The file /boot/loader.conf is read at the start = always.
# If hw.igb.txd="1024" then set the net.link.ifqmaxlen="2048".
hw.igb.rxd="4096"  # (default 1024)
#hw.igb.txd="2048"
kern.hz=1000 is what we set
net.inet.tcp.tso = 0

cc_htcp_load="YES"
gateway_enable = "YES"
ifconfig_igb0="dhcp -lro -tso"
	net.inet.ip.redirect=0 # fast
x=1
hostname="fw"
pf_flags=""
dev.igb.0.fc=0
# net.inet.tcp.persmin=5000  # (default 5000)
# pf_load="YES"
##net.inet6.ip6.accept_rtadv=0
-net/ipv4/conf/eth0.100/rp_filter = 2
;net.ipv4.tcp_rmem = 4096 131072	6291456
net.ipv4.tcp_wmem=4096 16384 is what we take
`
	known := func(key string) bool { return key == "hostname" }
	lines, _, err := audit.Read(strings.NewReader(text), "f", known)
	if err != nil {
		t.Fatal(err)
	}
	want := []audit.Line{
		{File: "f", Line: 3, Key: "hw.igb.rxd", Value: "4096"},
		{File: "f", Line: 4, Key: "hw.igb.txd", Value: "2048", Off: true},
		{File: "f", Line: 6, Key: "net.inet.tcp.tso", Value: "0"},
		{File: "f", Line: 8, Key: "cc_htcp_load", Value: "YES"},
		{File: "f", Line: 10, Key: "ifconfig_igb0", Value: "dhcp -lro -tso"},
		{File: "f", Line: 11, Key: "net.inet.ip.redirect", Value: "0"},
		{File: "f", Line: 13, Key: "hostname", Value: "fw"},
		{File: "f", Line: 14, Key: "pf_flags"},
		{File: "f", Line: 15, Key: "dev.igb.0.fc", Value: "0"},
		{File: "f", Line: 16, Key: "net.inet.tcp.persmin", Value: "5000", Off: true},
		{File: "f", Line: 18, Key: "net.inet6.ip6.accept_rtadv", Value: "0", Off: true},
		{File: "f", Line: 19, Key: "net.ipv4.conf.eth0/100.rp_filter", Value: "2"},
		{File: "f", Line: 20, Key: "net.ipv4.tcp_rmem", Value: "4096 131072	6291456", Off: true},
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

// TestReadProse finds settings in commands, in sysctl's output, and in sentences. A
// comment's sentences explain the lines next to them.
func TestReadProse(t *testing.T) {
	const text = `With net.isr.dispatch=deferred APU delivers about 420Mbps.
If you add net.inet.ip.intr_queue_maxlen=3000 the throughput goes up.
# with net.isr.dispatch=deferred it is faster
Set "net.isr.dispatch=deferred", then (net.isr.bindthreads="1").
The link example.com/?net.isr.dispatch=deferred and a.b=c are none.
sysctl net.isr.dispatch=deferred
# sysctl -w net.isr.dispatch=hybrid net.isr.bindthreads=1
root@fw:~ # sysrc gateway_enable="YES"
$ sudo sysctl -w net.ipv4.tcp_rmem="4096 87380 16777216"
sysctl net.inet.tcp.hostcache.list
net.isr.dispatch: direct -> deferred
net.isr.bindthreads: 1
net.isr.other: see below
Note: 1
echo "tcp_rack_load=\"YES\"" >> /boot/loader.conf
echo 'net.isr.dispatch=deferred' >> /etc/sysctl.conf
echo "a=b" and so on
echo 1 > /proc/sys/net/ipv4/conf/eth0.100/rp_filter
# echo "4096 87380 16777216" > /proc/sys/net/ipv4/tcp_rmem
sysctl net.isr.dispatch=direct; sysctl net.isr.bindthreads=0 && sysrc pf_enable=YES & # all
`
	known := func(key string) bool {
		return strings.HasPrefix(key, "net.isr.") || strings.HasPrefix(key, "net.inet.ip.")
	}
	lines, _, err := audit.Read(strings.NewReader(text), "f", known)
	if err != nil {
		t.Fatal(err)
	}
	want := []audit.Line{
		{Line: 1, Key: "net.isr.dispatch", Value: "deferred", Quoted: true},
		{Line: 2, Key: "net.inet.ip.intr_queue_maxlen", Value: "3000", Quoted: true},
		{Line: 4, Key: "net.isr.dispatch", Value: "deferred", Quoted: true},
		{Line: 4, Key: "net.isr.bindthreads", Value: "1", Quoted: true},
		{Line: 6, Key: "net.isr.dispatch", Value: "deferred"},
		{Line: 7, Key: "net.isr.dispatch", Value: "hybrid"},
		{Line: 7, Key: "net.isr.bindthreads", Value: "1"},
		{Line: 8, Key: "gateway_enable", Value: "YES"},
		{Line: 9, Key: "net.ipv4.tcp_rmem", Value: "4096 87380 16777216"},
		{Line: 11, Key: "net.isr.dispatch", Value: "deferred"},
		{Line: 12, Key: "net.isr.bindthreads", Value: "1"},
		{Line: 15, Key: "tcp_rack_load", Value: "YES"},
		{Line: 16, Key: "net.isr.dispatch", Value: "deferred"},
		{Line: 18, Key: "net.ipv4.conf.eth0/100.rp_filter", Value: "1"},
		{Line: 19, Key: "net.ipv4.tcp_rmem", Value: "4096 87380 16777216"},
		{Line: 20, Key: "net.isr.dispatch", Value: "direct"},
		{Line: 20, Key: "net.isr.bindthreads", Value: "0"},
		{Line: 20, Key: "pf_enable", Value: "YES"},
	}
	for i := range want {
		want[i].File = "f"
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	if lines, _, err := audit.Read(strings.NewReader("# sysctl net.isr.dispatch=deferred\n"), "/etc/sysctl.conf", known); err != nil || len(lines) != 1 || !lines[0].Off {
		t.Errorf("a comment of a configuration: %v, %v", lines, err)
	}
}

// TestGuides checks that exactly the settings in each guide are found.
func TestGuides(t *testing.T) {
	for name, want := range map[string]int{
		"000_63cf10b922397f9c.txt": 2, // for PPPoE
		"002_eefa4d519d62c97d.txt": 0, "003_2b296e8561215ea1.txt": 0, "004_31334150c4b7956f.txt": 0,
	} {
		file, err := os.Open(testenv.Shared(t, "documents", name))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		lines, _, err := audit.Read(file, name, judge(t, "pfsense-2.4.5").Known)
		if err != nil || len(lines) != want {
			t.Errorf("%s: %v, %v", name, lines, err)
		}
	}
}

// TestReadConfiguration checks that, in a file of settings only, every name counts as
// one.
func TestReadConfiguration(t *testing.T) {
	for file, want := range map[string]int{"/etc/rc.conf": 1, "rc.conf.local": 1, "/boot/loader.conf": 1, "fw1-rc.conf": 1, "guide.txt": 0} {
		lines, _, err := audit.Read(strings.NewReader("netif_delay=3\n"), file, func(string) bool { return false })
		if err != nil || len(lines) != want {
			t.Errorf("%s: %v, %v", file, lines, err)
		}
	}
}

// TestJudge checks each verdict, and how it depends on the value and the target.
func TestJudge(t *testing.T) {
	for _, c := range []struct {
		target, key, value string
		verdict            audit.Verdict
		says               string
	}{
		{"freebsd-14", "net.inet.ip.redirect", "0", audit.Valid, "ip_tryforward()"},
		{"freebsd-14", "net.inet.ip.redirect", "1", audit.IsDefault, "the system sets 1 by itself"},
		{"freebsd-14", "kern.ipc.nmbclusters", "492680", audit.Valid, "sized by memory, leave out"},
		{"freebsd-14", "kern.ipc.nmbjumbop", "246339", audit.Valid, "sized by memory, leave out"},
		{"freebsd-14", "net.inet.tcp.tcbhashsize", "65536", audit.EndpointOnly, "sized by memory: leave it out"},
		{"opnsense-25.7", "net.inet.ip.redirect", "0", audit.IsDefault, ""},
		{"pfsense-2.7", "net.inet.ip.redirect", "0", audit.Valid, ""},
		{"freebsd-12", "hw.igb.rx_process_limit", "-1", audit.Renamed, "renamed to dev.igb.N.iflib.rx_budget: FreeBSD 12 does not have it."},
		{"pfsense-2.5", "legal.intel_igb.license_ack", "1", audit.Removed, "removed in FreeBSD 12: "},
		{"pfsense-2.4.5", "hw.igb.rx_process_limit", "-1", audit.Valid, ""},
		{"pfsense-2.9", "hw.igb.rx_process_limit", "-1", audit.VersionUnknown, "does not know pfsense-2.9. FreeBSD 11 is the last known to have it; it was replaced by dev.igb.N.iflib.rx_budget."},
		{"pfsense-3.1", "net.inet.ip.redirect", "0", audit.VersionUnknown, "Evidence: C"},
		{"pfsense-3.1", "net.inet.ip.redirect", "1", audit.VersionUnknown, ""},
		{"pfsense-3.1", "aio_load", "YES", audit.VersionUnknown, "FreeBSD 10 is the last known to have it"},
		{"pfsense-3.1", "tcp_rack_load", "YES", audit.VersionUnknown, "FreeBSD 12 is the first known to have it"},
		{"pfsense-3.1", "net.inet.ip.maxfragpackets", "0", audit.Dangerous, "EDNS"},
		{"pfsense-3.1", "machdep.hyperthreading_allowed", "0", audit.Contradicted, ""},
		{"pfsense-3.1", "vfs.zfs.arc_max", "4G", audit.Elsewhere, "ZFS"},
		{"pfsense-3.1", "ifconfig_em2", "up -lro", audit.VersionUnknown, "-lro: "},
		{"pfsense-3.1", "ifconfig_em2", "up lro", audit.Dangerous, "panics"},
		{"pfsense-3.1", "dev.re.0.iflib.rx_budget", "64", audit.VersionUnknown, ""},
		{"freebsd-14", "dev.re.0.iflib.rx_budget", "64", audit.Unknown, "no source was found in which iflib(9) drives re"},
		{"pfsense-2.4.5", "dev.cxgbe.0.iflib.override_nrxqs", "4", audit.Unknown, "drives cxgbe"},
		{"pfsense-2.4.5", "dev.igb.0.iflib.override_nrxqs", "4", audit.Added, "added in FreeBSD 12: pfsense-2.4.5 is built on FreeBSD 11.3, which does not have it."},
		{"pfsense-2.5", "dev.igb.0.iflib.override_nrxqs", "4", audit.Valid, ""},
		{"pfsense-2.5", "dev.igc.0.iflib.override_nrxqs", "4", audit.Unknown, "no source of FreeBSD 12 was found in which iflib(9) drives igc; the oldest is of FreeBSD 14"},
		{"freebsd-13", "dev.netmap.buf_size", "4096", audit.Unknown, "weir has no record of it"},
		{"freebsd-13", "hw.bce.tso_enable", "0", audit.Valid, "segmentation"},
		{"linux", "vm.pmap.pti", "0", audit.Unknown, "a FreeBSD key"},
		{"pfsense-2.4.5", "net.inet.tcp.functions_default", "rack", audit.Added, "added in FreeBSD 12: "},
		{"pfsense-2.4.5", "tcp_rack_load", "YES", audit.Added, "added in FreeBSD 12: "},
		{"freebsd-14", "net.inet.tcp.functions_default", "rack", audit.EndpointOnly, ""},
		{"freebsd-14", "net.inet.ip.fastforwarding", "1", audit.Removed, "removed in FreeBSD 11: FreeBSD 11 has ip_tryforward() instead, which needs no setting"},
		{"freebsd-14", "polling_enable", "YES", audit.Unknown, "FreeBSD's rc.conf does not use it"},
		{"pfsense-3.1", "polling_enable", "YES", audit.Unknown, "FreeBSD's rc.conf does not use it"},
		{"freebsd-14", "net.inet.ip.log_cannot_forward", "0", audit.Unknown, "only IPv6 logs such packets (net.inet6.ip6.log_cannot_forward)"},
		{"freebsd-14", "net.inet6.ip6.log_cannot_forward", "0", audit.Valid, ""},
		{"freebsd-14", "t6nex.0.toe", "1", audit.Unknown, "begin with dev"},
		{"freebsd-14", "t5nex.1.toe.ddp", "1", audit.Unknown, "begin with dev"},
		{"freebsd-14", "dev.t6nex.0.toe", "1", audit.Unknown, "it is the node"},
		{"freebsd-14", "dev.t6nex.0.toe.ddp", "1", audit.EndpointOnly, ""},
		{"freebsd-14", "net.isr.numthreads", "4", audit.Renamed, "renamed to net.isr.maxthreads: It tells"},
		{"freebsd-13", "net.inet.tcp.nolocaltimewait", "0", audit.IsDefault, ""},
		{"freebsd-14", "net.inet.tcp.nolocaltimewait", "1", audit.IsDefault, ""},
		{"freebsd-14", "net.inet.tcp.nolocaltimewait", "0", audit.EndpointOnly, ""},
		{"freebsd-15", "net.inet.tcp.nolocaltimewait", "0", audit.IsDefault, ""},
		{"freebsd-13", "net.link.bridge.pfil_member", "1", audit.IsDefault, ""},
		{"freebsd-14", "net.link.bridge.pfil_member", "0", audit.IsDefault, ""},
		{"opnsense-25.7", "net.link.bridge.pfil_member", "1", audit.IsDefault, ""},
		{"freebsd-14", "net.pf.states_hashsize", "131072", audit.IsDefault, ""},
		{"freebsd-12", "net.pf.states_hashsize", "131072", audit.Valid, "walks a list"},
		{"freebsd-14", "dev.igc.0.eee_control", "0", audit.Valid, "0 turns energy-efficient Ethernet on"},
		{"freebsd-14", "dev.igc.0.eee_control", "1", audit.IsDefault, ""},
		{"freebsd-14", "net.inet.tcp.always_keepalive", "0", audit.EndpointOnly, "The guide has 1. Keepalive probes on every connection, as by default. Evidence: D."},
		{"freebsd-14", "dev.hwpstate_intel.0.epp", "0", audit.Valid, "speed"},
		{"linux", "dev.hwpstate_intel.0.epp", "0", audit.Unknown, "a FreeBSD key"},
		{"freebsd-15", "hw.em.enable_aim", "1", audit.Valid, "follows the load"},
		{"freebsd-15", "hw.igb.enable_aim", "1", audit.Removed, "removed in FreeBSD 12"},
		{"freebsd-15", "dev.em.0.enable_aim", "2", audit.Valid, "follows the load"},
		{"freebsd-13", "aio_load", "YES", audit.Removed, "removed in FreeBSD 11: "},
		{"freebsd-13", "net.inet.ip.check_interface", "1", audit.Valid, ""},
		{"freebsd-14", "net.inet.ip.check_interface", "1", audit.Renamed, "rfc1122_strong_es"},
		{"freebsd-14", "net.inet.ip.maxfragpackets", "0", audit.Dangerous, "EDNS"},
		{"freebsd-14", "net.inet.ip.maxfragpackets", "1000", audit.EndpointOnly, ""},
		{"freebsd-14", "net.inet.tcp.syncookies", "0", audit.Dangerous, "flood"},
		{"freebsd-14", "net.inet.tcp.syncookies", "1", audit.IsDefault, ""},
		{"freebsd-14", "net.inet.tcp.path_mtu_discovery", "0", audit.Dangerous, "path MTU discovery"},
		{"freebsd-14", "machdep.hyperthreading_allowed", "0", audit.Contradicted, "E5-2697A"},
		{"freebsd-14", "hw.ix.rxd", "4096", audit.Renamed, "override_nrxds: FreeBSD 12 does not have it. Larger rings were slower"},
		{"pfsense-2.4.5", "hw.igb.rxd", "4096", audit.Contradicted, "20 %"},
		{"pfsense-2.4.5", "hw.igb.rxd", "1024", audit.IsDefault, ""},
		{"pfsense-2.4.5", "hw.igb.rxd", "2048", audit.Valid, ""},
		{"freebsd-14", "kern.ipc.maxsockbuf", "16777216", audit.EndpointOnly, "not forwarded ones"},
		{"freebsd-14", "dev.ix.1.iflib.tx_abdicate", "1", audit.Valid, "puts it into the send queue"},
		{"freebsd-14", "dev.igb.1.fc", "0", audit.Valid, ""},
		{"freebsd-14", "ifconfig_em2", "up -lro", audit.Valid, "-lro: LRO merges packets that a router must send as they came"},
		{"freebsd-14", "ifconfig_em2", "DHCP media 100baseTX mediaopt full-duplex", audit.Valid, "half duplex"},
		{"freebsd-14", "ifconfig_em2", "DHCP media 10Gbase-SR", audit.Elsewhere, "addresses"},
		{"freebsd-14", "ifconfig_em2", "inet 192.0.2.1/24 -tso lro", audit.Dangerous, "panics"},
		{"freebsd-14", "ifconfig_em2", "inet 192.0.2.1/24", audit.Elsewhere, "addresses are configuration"},
		{"freebsd-14", "ifconfig_em2", "up polling tso", audit.Contradicted, "delay"},
		{"freebsd-14", "ifconfig_em2", "up -hwrxtsmp", audit.Unknown, "weir does not know -hwrxtsmp"},
		{"freebsd-14", "ifconfig_em2", "DHCP -lro frobnicate", audit.Unknown, "-lro: LRO merges"},
		{"freebsd-14", "ifconfig_em2", "up lro frobnicate", audit.Dangerous, "weir does not know frobnicate"},
		{"freebsd-14", "ifconfig_vlan7", "inet 192.0.2.1 netmask 255.255.255.0 vlan 7 vlandev ix0 mtu 9000 description wan", audit.Elsewhere, "addresses"},
		{"freebsd-14", "ifconfig_lagg0", "laggproto lacp laggport ix0 laggport ix1 inet6 2001:db8::1 prefixlen 64 ether 02:00:00:00:00:01", audit.Elsewhere, ""},
		{"opnsense-25.1", "vm.pmap.pti", "0", audit.Dangerous, "Meltdown"},
		{"opnsense-25.1", "vm.pmap.pti", "1", audit.IsDefault, "opnsense-25.1 sets 1 by itself"},
		{"freebsd-14", "vm.pmap.pti", "0", audit.Dangerous, "on a CPU that needs it"},
		{"freebsd-14", "hw.cxgbe.nrxq10g", "4", audit.Valid, "Receive queues"},
		{"freebsd-14", "hw.cxgbe.ntxq", "16", audit.Valid, "Send queues"}, // on 4 cores the default is 4
		{"freebsd-14", "hw.cxgbe.nofldrxq10g", "1", audit.EndpointOnly, "TOE"},
		{"freebsd-14", "hw.cxgbe.holdoff_timer_idx_10G", "3", audit.Valid, "interrupts"},
		{"freebsd-14", "hw.cxgbe.pause_settings", "0", audit.Valid, "Pause frames"},
		{"freebsd-14", "hw.ix.enable_aim", "0", audit.Valid, "12.5 %"},
		{"freebsd-13", "net.inet.tcp.cc.algorithm", "newreno", audit.IsDefault, ""},
		{"freebsd-13", "net.inet.tcp.cc.algorithm", "cubic", audit.EndpointOnly, ""},
		{"freebsd-14", "net.inet.tcp.cc.algorithm", "cubic", audit.IsDefault, ""},
		{"freebsd-14", "net.inet.tcp.cc.algorithm", "newreno", audit.EndpointOnly, ""},
		{"freebsd-14", "hw.ix.num_queues", "4", audit.Renamed, "override_nrxqs"},
		{"freebsd-14", "hw.em.rx_int_delay", "100", audit.Valid, "hang"},
		{"pfsense-2.7", "hw.pci.enable_msix", "0", audit.Dangerous, "one core does all the work"},
		{"pfsense-2.7", "hw.pci.enable_msix", "1", audit.IsDefault, ""},
		{"freebsd-14", "net.inet.tcp.path_mtu_discovery", "2", audit.EndpointOnly, "This value is fine; only these are refused: 0: "},
		{"freebsd-14", "vfs.zfs.arc_max", "4G", audit.Elsewhere, "ZFS"},
		{"freebsd-14", "kern.ipc.shmmax", "67108864", audit.Elsewhere, "databases"},
		{"freebsd-14", "nginx_enable", "YES", audit.Elsewhere, "a service"},
		{"freebsd-14", "net.isr.direct", "1", audit.Renamed, "net.isr.dispatch"},
		{"freebsd-14", "net.inet.tcp.inflight.enable", "1", audit.Removed, "removed in FreeBSD 9"},
		{"freebsd-14", "dev.cxl.0.fc", "0", audit.Valid, "Pause frames"},
		{"linux", "net.ipv4.tcp_tw_recycle", "1", audit.Removed, "removed in Linux, after 4.11"},
		{"linux", "net.ipv4.ip_no_pmtu_disc", "1", audit.Dangerous, "path MTU discovery"},
		{"linux", "net.ipv4.ip_forward", "1", audit.Valid, "This value is fine; only these are refused: 0: "},
		{"linux", "net.ipv4.tcp_sack", "0", audit.Dangerous, "one loss costs a whole window"},
		{"linux", "net.ipv4.tcp_sack", "1", audit.IsDefault, ""},
		{"freebsd-14", "tcp_keepalive", "YES", audit.IsDefault, ""},
		{"linux", "net.ipv4.ip_no_pmtu_disc", "0", audit.IsDefault, ""},
		{"linux", "net.ipv4.ip_forward", "0", audit.Dangerous, "does not route"},
		{"linux", "net.ipv4.conf.eth0.rp_filter", "1", audit.Valid, "two uplinks"},
		{"linux", "net.ipv4.netfilter.ip_conntrack_max", "65536", audit.Renamed, "net.netfilter.nf_conntrack_max"},
		{"linux", "net.ipv4.tcp_rmem", "4096 87380 16777216", audit.EndpointOnly, "receive buffer"},
		{"linux", "net.ipv4.tcp_rmem", "4096 131072 6291456", audit.IsDefault, ""},
		{"linux", "net.core.netdev_budget", "600", audit.Valid, "softnet_stat"},
		{"linux", "vm.swappiness", "10", audit.Elsewhere, "memory"},
		{"linux", "net.inet.ip.redirect", "0", audit.Unknown, "a FreeBSD key, which Linux does not have; nearest there: net.ipv4.conf."},
		{"linux", "kern.ipc.maxsockbuf", "1", audit.Unknown, "nearest there: net.core.rmem_max"},
		{"linux", "net.inet.ip.nonsense", "0", audit.Unknown, "by its name a FreeBSD key"},
		{"linux", "net.ipv4.nonsense", "0", audit.Unknown, "weir has no record of it"},
		{"linux", "ifconfig_em0", "up", audit.Unknown, ""},
		{"freebsd-14", "zfs_load", "YES", audit.Elsewhere, "the boot file system"},
		{"freebsd-14", "net.inet.ip.nonsense", "1", audit.Unknown, ""},
		{"freebsd-14", "net.ipv4.ip_early_demux", "0", audit.Unknown, "a Linux key, which FreeBSD does not have"},
		{"freebsd-14", "net.ipv4.tcp_rmem", "4096 87380 16777216", audit.Unknown, "nearest there: net.inet.tcp.recv"},
		{"freebsd-14", "net.ipv4.nonsense", "0", audit.Unknown, "by its name a Linux key"},
		{"linux", "net.core.busy_poll", "1", audit.EndpointOnly, "keeps polling the card"},
		{"linux", "net.ipv4.vs.conntrack", "1", audit.Valid, "IPVS"},
		{"linux", "net.mptcp.enabled", "0", audit.EndpointOnly, "several paths"},
		{"linux", "net.ipv4.conf.all.arp_ignore", "1", audit.Valid, ""},
		{"linux", "net.netfilter.nf_conntrack_acct", "1", audit.Valid, "The opposite is set here. About 0 weir says: "},
		{"linux", "net.ipv4.conf.all.accept_source_route", "1", audit.Dangerous, "it turns on what is off by default"},
		{"linux", "net.core.xdp_nonsense", "1", audit.Unknown, "weir has no record of it"},
		{"linux", "net.core.netdev_budget_usecs", "2000", audit.Valid, ""},
		{"freebsd-14", "hw.ibrs_disable", "1", audit.IsDefault, ""},
		{"freebsd-14", "hw.ibrs_disable", "0", audit.Valid, "Turns IBRS"},
		{"opnsense-25.1", "hw.ibrs_disable", "1", audit.Dangerous, "Spectre"},
		{"opnsense-25.1", "hw.ibrs_disable", "0", audit.IsDefault, "opnsense-25.1 sets 0 by itself"},
		{"opnsense-25.7", "hw.ibrs_disable", "1", audit.IsDefault, "Spectre"},
		{"opnsense-24.1", "net.inet.icmp.drop_redirect", "0", audit.IsDefault, ""},
		{"opnsense-24.7", "net.inet.icmp.drop_redirect", "1", audit.IsDefault, ""},
		{"pfsense-2.7", "net.inet.raw.recvspace", "131072", audit.IsDefault, "pfsense-2.7 sets"},
		{"freebsd-12", "net.inet.tcp.rack.tlpmethod", "3", audit.EndpointOnly, ""},
		{"freebsd-13", "net.inet.tcp.rack.tlpmethod", "3", audit.Renamed, "net.inet.tcp.rack.tlp.tlpmethod"},
		{"freebsd-15", "hw.ix.enable_aim", "0", audit.IsDefault, ""},
		{"freebsd-12", "hw.ix.enable_aim", "1", audit.IsDefault, ""},
		{"freebsd-13", "ifconfig_cc0", "inet 192.0.2.1/24 -txrtlmt promisc", audit.Valid, "pace"},
		{"freebsd-14", "hw.mds_disable", "0", audit.IsDefault, ""},
		{"freebsd-14", "hw.mds_disable", "3", audit.Valid, "as the CPU needs it"},
		{"freebsd-14", "economy_cx_lowest", "Cmax", audit.IsDefault, ""},
		{"freebsd-14", "security.bsd.stack_guard_page", "1", audit.IsDefault, ""},
		{"freebsd-12", "hw.intr_storm_threshold", "1000", audit.IsDefault, ""},
		{"freebsd-14", "hw.intr_storm_threshold", "0", audit.IsDefault, ""},
		{"freebsd-14", "hw.intr_storm_threshold", "9000", audit.Valid, "turns throttling on"},
		{"freebsd-12", "net.inet.ip.rfc1122_strong_es", "1", audit.Added, "added in FreeBSD 14"},
		{"freebsd-12", "net.route.multipath", "0", audit.Added, "added in FreeBSD 13"},
		{"freebsd-12", "net.route.multipath", "1", audit.Added, "added in FreeBSD 13"},
		{"freebsd-14", "dev.igb.0.iflib.simple_tx", "1", audit.Added, "added in FreeBSD 15"},
		{"freebsd-13", "net.inet.ip.portrange.randomcps", "9999", audit.EndpointOnly, ""},
		{"freebsd-15", "net.inet.ip.portrange.randomtime", "1", audit.Removed, "removed in FreeBSD 15"},
		{"freebsd-14", "hw.igb.max_interrupt_rate", "16000", audit.Renamed, "renamed to hw.em.max_interrupt_rate"},
	} {
		f := judge(t, c.target).Check(audit.Line{Key: c.key, Value: c.value})
		if f.Verdict != c.verdict || !strings.Contains(f.Says(), c.says) {
			t.Errorf("%s: %s=%s: %s, want %s with %q", c.target, c.key, c.value, f.Says(), c.verdict, c.says)
		}
	}
}

// TestTunable checks that settings that only the loader sets do not belong in FreeBSD's
// sysctl.conf. OPNsense gives its tunables to both.
func TestTunable(t *testing.T) {
	for _, c := range []struct {
		target, file, key string
		misplaced         bool
	}{
		{"freebsd-14", "/etc/sysctl.conf", "net.isr.maxthreads", true},
		{"freebsd-14", "fw1-sysctl.conf", "net.pf.states_hashsize", true},
		{"freebsd-14", "/boot/loader.conf", "net.isr.maxthreads", false},
		{"freebsd-14", "/etc/sysctl.conf", "net.isr.dispatch", false},
		{"opnsense-25.7", "/etc/sysctl.conf", "net.isr.maxthreads", false},
	} {
		f := judge(t, c.target).Check(audit.Line{File: c.file, Key: c.key, Value: "-1"})
		if strings.HasPrefix(f.Why, "It has no effect here: it belongs in loader.conf. ") != c.misplaced || f.Verdict != audit.Valid {
			t.Errorf("%+v: %s", c, f.Says())
		}
	}
}

// TestGuideOfUnknownVersion checks that, for an unknown version, no line of the guide is
// called valid, a default or removed.
func TestGuideOfUnknownVersion(t *testing.T) {
	file, err := os.Open(testenv.Shared(t, "documents", "001_70d8e997f1a63176.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	j := judge(t, "pfsense-3.1")
	lines, _, err := audit.Read(file, "001", j.Known)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range lines {
		switch f := j.Check(l); f.Verdict {
		case audit.VersionUnknown, audit.Elsewhere, audit.Dangerous, audit.Contradicted:
		default:
			t.Errorf("%d: %s=%s: %s", l.Line, l.Key, l.Value, f.Says())
		}
	}
}

// TestGuide reads the whole guide for FreeBSD. All rows of the table that are lines of
// its files are found, and none is unknown.
func TestGuide(t *testing.T) {
	file, err := os.Open(testenv.Shared(t, "documents", "001_70d8e997f1a63176.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	j := judge(t, "freebsd-14")
	lines, _, err := audit.Read(file, "001", j.Known)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, l := range lines {
		found[l.Key] = true
		if f := j.Check(l); f.Verdict == audit.Unknown {
			t.Errorf("%d: %s=%s: %s", l.Line, l.Key, l.Value, f.Says())
		}
	}
	for _, r := range j.DB.Records {
		if r.Row == nil || r.Row.Guide != "001" {
			continue
		}
		switch r.Row.OS {
		case "FreeBSD loader.conf", "FreeBSD sysctl.conf", "FreeBSD rc.conf":
			if key := strings.Replace(r.Key, ".N.", ".0.", 1); !found[key] {
				t.Errorf("%s is not found", key)
			}
		}
	}
}

// TestPassedOver checks which lines count as not understood.
func TestPassedOver(t *testing.T) {
	const text = "# a comment\n\n---\nnet.inet.ip.redirect=0\nWe are happy.\n| a | b |\n<p>Nobody knows.</p>\n"
	lines, passed, err := audit.Read(strings.NewReader(text), "f", judge(t, "freebsd-14").Known)
	if err != nil || len(lines) != 1 {
		t.Fatal(lines, err)
	}
	want := []audit.Passed{{File: "f", Line: 5, Text: "We are happy."}, {File: "f", Line: 6, Text: "| a | b |"}, {File: "f", Line: 7, Text: "<p>Nobody knows.</p>"}}
	if diff := cmp.Diff(want, passed); diff != "" {
		t.Errorf("passed over (-want +got):\n%s", diff)
	}
}

// TestAcross compares lines with one another.
func TestAcross(t *testing.T) {
	for _, c := range []struct {
		target, text string
		says         []string // a part of each note
	}{
		{"freebsd-14", "net.inet.ip.redirect=0\n#net.inet.ip.redirect=1\nnet.inet.ip.ttl=64\n", nil},
		{"freebsd-14", "net.inet.ip.redirect=0\nnet.inet.ip.redirect=0\n", []string{"is set twice, as in line 1"}},
		{"freebsd-14", "net.inet.ip.redirect=0\nnet.inet.ip.redirect=1\n", []string{"contradicts net.inet.ip.redirect=0 in line 1; the last one counts"}},
		{"freebsd-14", "kern.ipc.maxsockbuf=4194304\nnet.inet.tcp.recvbuf_max=4194304\n", []string{"at least 4718592"}},
		{"freebsd-14", "kern.ipc.maxsockbuf=4718592\nnet.inet.tcp.recvbuf_max=4194304\n", nil},
		{"freebsd-14", "net.inet.tcp.recvbuf_max=4194304\n", []string{"which is 2097152: the kernel refuses such a buffer"}},
		{"opnsense-25.7", "net.inet.tcp.recvbuf_max=3145728\n", nil}, // OPNsense has 4262144
		{"freebsd-14", "net.inet.tcp.recvspace=262144\nnet.inet.tcp.recvbuf_max=131072\n", []string{"recvspace=262144 is more than net.inet.tcp.recvbuf_max, which is 131072"}},
		{"freebsd-14", "kern.ipc.nmbclusters=20000\ndev.ix.0.iflib.override_nrxqs=8\ndev.ix.0.iflib.override_nrxds=2048\ndev.ix.1.iflib.override_nrxqs=8\ndev.ix.1.iflib.override_nrxds=2048\n", []string{"less than the receive rings hold: 32768 clusters"}},
		{"freebsd-14", "kern.ipc.nmbclusters=200000\ndev.ix.0.iflib.override_nrxqs=8\ndev.ix.0.iflib.override_nrxds=2048\n", nil},
		{"freebsd-14", "net.pf.states_hashsize=100000\n", []string{"no power of two"}},
		{"linux", "net.ipv4.neigh.default.gc_thresh1=8192\nnet.ipv4.neigh.default.gc_thresh3=4096\n", []string{"gc_thresh3=4096 is below net.ipv4.neigh.default.gc_thresh1=8192 in line 1"}},
		{"linux", "net.ipv4.neigh.default.gc_thresh1=1024\nnet.ipv4.neigh.default.gc_thresh3=4096\n", nil},
		{"freebsd-14", "net.inet.tcp.tcbhashsize=0\n", nil}, // sized by memory
		{"freebsd-14", "net.inet.tcp.hostcache.hashsize=512\nnet.inet.tcp.hostcache.bucketlimit=30\nnet.inet.tcp.hostcache.cachelimit=65536\n", []string{"512 x 30 = 15360"}},
		{"freebsd-14", "net.inet.tcp.hostcache.cachelimit=15360\n", nil}, // the default itself
		{"freebsd-14", "net.inet.tcp.hostcache.cachelimit=15361\n", []string{"512 x 30 = 15360: there are never more"}},
		{"opnsense-25.7", "net.inet.tcp.hostcache.hashsize=4096\nnet.inet.tcp.hostcache.cachelimit=16384\n", nil},
		{"freebsd-14", "net.inet.tcp.hostcache.hashsize=5000\nnet.inet.tcp.hostcache.cachelimit=16384\n", []string{"hashsize=5000 is no power of two", "512 x 30 = 15360"}},
		{"freebsd-14", "net.inet.tcp.hostcache.hashsize=4K\nnet.inet.tcp.hostcache.cachelimit=16384\n", nil}, // no number
		{"pfsense-3.1", "net.inet.tcp.hostcache.cachelimit=16384\n", nil},                                    // defaults unknown
		{"pfsense-3.1", "net.inet.tcp.recvbuf_max=4194304\n", nil},
		{"freebsd-14", "net.inet.tcp.syncache.cachelimit=16384\n", []string{"512 x 30 = 15360"}},
		{"freebsd-14", "kern.ipc.maxsockbuf=8M\nnet.inet.tcp.recvbuf_max=4194304\n", nil},
		{"freebsd-13", "net.inet.ip.fw.dyn_max=5000000\nnet.inet.ip.fw.dyn_buckets=5000000\n", []string{"at most 65536 buckets make lists of 76", "acts as 65536"}},
		{"linux", "net.ipv4.neigh.default.gc_thresh1=4096\nnet.ipv4.neigh.default.gc_thresh2=1024\n", []string{"gc_thresh2=1024 is below net.ipv4.neigh.default.gc_thresh1=4096 in line 1"}},
		{"linux", "net.ipv4.tcp_rmem = 4096 16777216 87380\n", []string{"does not rise: 87380 follows 16777216"}},
		{"linux", "net.ipv4.tcp_rmem = 4096 87380 16777216\n", nil},
		{"linux", "net.netfilter.nf_conntrack_max=2000000\nnet.netfilter.nf_conntrack_buckets=16384\n", []string{"lists of 122"}},
		{"linux", "net.ipv4.conf.all.rp_filter=1\nnet.ipv4.conf.eth0.rp_filter=0\n", []string{"has no effect: the larger of it and of all counts, which line 1 sets to 1"}},
		{"linux", "net.ipv4.conf.all.rp_filter=1\nnet.ipv4.conf.eth0.rp_filter=2\n", nil},
		{"linux", "net.core.somaxconn=2\nsysctl -w net.core.somaxconn = 1\n", nil}, // sets nothing
	} {
		j := judge(t, c.target)
		lines, _, err := audit.Read(strings.NewReader(c.text), "f", j.Known)
		if err != nil {
			t.Fatal(err)
		}
		notes := j.Across(lines)
		if len(notes) != len(c.says) {
			t.Errorf("%s: %q: %v, want %q", c.target, c.text, notes, c.says)
			continue
		}
		for i, says := range c.says {
			if !strings.Contains(notes[i].Says, says) {
				t.Errorf("%s: %q: %s, want %q", c.target, c.text, notes[i].Says, says)
			}
		}
	}
}

// TestOwnValues checks that FreeBSD's own values, which do not fit each other, are no fault of a file's.
func TestOwnValues(t *testing.T) {
	j := judge(t, "freebsd-14")
	for value, harmful := range map[string]bool{"2097152": false, "2097153": true} {
		notes := j.Across([]audit.Line{{File: "f", Line: 1, Key: "net.inet.tcp.recvbuf_max", Value: value}})
		if len(notes) != 1 || notes[0].Harmful != harmful {
			t.Errorf("%s: %+v, want one note, harmful: %v", value, notes, harmful)
		}
	}
}

// TestAcrossFiles checks that a later file may override an earlier one, and that notes have
// a fixed order.
func TestAcrossFiles(t *testing.T) {
	j := judge(t, "linux")
	notes := j.Across([]audit.Line{
		{File: "10.conf", Line: 1, Key: "net.ipv4.conf.all.rp_filter", Value: "2"},
		{File: "10.conf", Line: 2, Key: "net.ipv4.conf.eth1.rp_filter", Value: "0"},
		{File: "10.conf", Line: 3, Key: "net.ipv4.conf.eth0.rp_filter", Value: "0"},
		{File: "20.conf", Line: 1, Key: "net.ipv4.conf.all.rp_filter", Value: "1"},
	})
	want := []audit.Note{
		{File: "20.conf", Line: 1, Says: "net.ipv4.conf.all.rp_filter=1 overrides net.ipv4.conf.all.rp_filter=2 in 10.conf:1 (in the order given)"},
		{File: "10.conf", Line: 3, Says: "net.ipv4.conf.eth0.rp_filter=0 has no effect: the larger of it and of all counts, which 20.conf:1 sets to 1", Harmful: true},
		{File: "10.conf", Line: 2, Says: "net.ipv4.conf.eth1.rp_filter=0 has no effect: the larger of it and of all counts, which 20.conf:1 sets to 1", Harmful: true},
	}
	if diff := cmp.Diff(want, notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
}

// TestReadForms checks what is read of tables, of a firewall's config.xml and of tasks, and
// that none of them takes lines that are not its own.
func TestReadForms(t *testing.T) {
	long := "# " + strings.Repeat("x", 2<<20)
	for name, c := range map[string]struct {
		text string
		want string // line:key=value of each setting
	}{
		"value after default":  {"| Setting | Default | Value |\n|---|---|---|\n| net.a.b | 0 | 1 |\n", "3:net.a.b=1"},
		"setting alone":        {"| Key | Default | Setting |\n| net.a.b | 0 | 1 |\n", "2:net.a.b=1"},
		"empfohlen":            {"| Parameter | Default | Empfohlen |\n| net.a.b | 0 | 1 |\n", "2:net.a.b=1"},
		"no head of the value": {"| Parameter | Default | Ours |\n| net.a.b | 0 | 1 |\n", "2:net.a.b=1"},
		"only defaults":        {"| Parameter | Default |\n| net.a.b | 0 |\n", ""},
		"the word default":     {"| Parameter | Ours |\n| net.a.b | default |\n| net.a.c | 1 |\n", "3:net.a.c=1"},
		"rows without an end":  {"<table>\n<tr><td>net.a.b</td><td>1</td>\n<tr><td>net.a.c</td><td>2</td>\n</table>\nnet.a.d=3\n", "2:net.a.b=1 3:net.a.c=2 5:net.a.d=3"},
		"a row at the end":     {"<tr><td>net.a.b</td>\n<td>1</td>\n", "1:net.a.b=1"},
		"heading":              {"net.ipv4.tcp_syncookies:\nnet.a.b=1\nnet.a.c=2\nvalue: 3\n", "2:net.a.b=1 3:net.a.c=2"},
		"placeholders":         {"Replace <opnsense> or <pfsense>.\nnet.a.b=1\nUse <sysctl> for it.\nnet.a.c=2\n", "2:net.a.b=1 4:net.a.c=2"},
		"after config.xml":     {"<opnsense>\n<sysctl>\n<item><tunable>net.a.b</tunable><value>1</value></item>\n</opnsense>\nnet.a.c=2\n", "3:net.a.b=1 5:net.a.c=2"},
		"list alone":           {"<sysctl>\n<item><tunable>net.a.b</tunable><value>1</value></item>\n</sysctl>\nnet.a.c=2\n", "2:net.a.b=1 4:net.a.c=2"},
		"item without a value": {"<pfsense>\n<sysctl>\n<item><tunable>net.a.b</tunable></item>\n<item><value>1</value></item>\n</sysctl>\n</pfsense>\n", ""},
		"a long line":          {long + "\nnet.a.b=1\n", "2:net.a.b=1"},
		"absent":               {"- sysctl:\n    name: net.a.b\n    value: '1'\n    state: absent\n- sysctl:\n    name: net.a.c\n    value: '2'\n    state: present\n", "7:net.a.c=2"},
		"absent first":         {"- sysctl:\n    name: net.a.b\n    state: absent\n    value: '1'\n", ""},
		"absent inline":        {"- { name: net.a.b, value: '1', state: absent }\n- { name: net.a.c, value: '2' }\n", "2:net.a.c=2"},
		"another task":         {"- sysctl:\n    name: net.a.b\n    value: '1'\n- package:\n    name: foo\n    state: absent\n", "3:net.a.b=1"},
	} {
		lines, _, err := audit.Read(strings.NewReader(c.text), "f", func(string) bool { return false })
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var got []string
		for _, l := range lines {
			got = append(got, fmt.Sprintf("%d:%s=%s", l.Line, l.Key, l.Value))
		}
		if got := strings.Join(got, " "); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
