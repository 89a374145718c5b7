package audit_test

import (
	"strings"
	"testing"

	"weir/internal/host/tune/audit"
)

// TestCards reads the commands with which people set cards and cores of Linux.
func TestCards(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string // KEY=VALUE: what is said
	}{
		{"ethtool -K eth0 gro off lro off tso off", []string{"nic.eth0.gro=off: still valid: Each segment", "nic.eth0.lro=off: still valid", "nic.eth0.tso=off: still valid: The kernel cuts"}},
		{"sudo ethtool --offload \"$IF\" lro on", nil}, // a name in quotes is not read, but the line is counted
		{"ethtool --features $IF large-receive-offload on rx-gro-hw on # fast", []string{"nic.$IF.lro=on: dangerous", "nic.$IF.hw-gro=on: still valid"}},
		{"/sbin/ethtool -G enp1s0f0 rx 4096 tx 4096", []string{"nic.enp1s0f0.rings=rx 4096 tx 4096: still valid"}},
		{"ethtool -L {{ wan }} combined 4", []string{"nic.{{wan}}.queues=combined 4: still valid"}},
		{"ethtool -C eth0 adaptive-rx off rx-usecs 50", []string{"nic.eth0.adaptive-rx=off: still valid", "nic.eth0.rx-usecs=50: still valid: How many microseconds"}},
		{"ethtool -A eth0 autoneg off rx off tx off", []string{"nic.eth0.pause=autoneg off rx off tx off: still valid: Pause frames"}},
		{"ethtool --set-eee eth0 eee off", []string{"nic.eth0.eee=off: still valid"}},
		{"ethtool -N eth0 rx-flow-hash udp4 sdfn", []string{"nic.eth0.hash-udp4=sdfn: still valid"}},
		{"ethtool -X eth0 equal 4", []string{"nic.eth0.indirection=equal 4: still valid"}},
		{"ethtool -K eth0 gso on", []string{"nic.eth0.gso=on: the default now"}},
		{"ethtool -K eth0 tx-nocache-copy on", []string{"nic.eth0.tx-nocache-copy=on: unknown"}},
		{"ethtool -S eth0", nil},
		{"ethtool -i eth0", nil},
		{"echo f > /sys/class/net/eth0/queues/rx-0/rps_cpus", []string{"nic.eth0.rps=f: still valid: The kernel hands"}},
		{"# echo 1 > /sys/class/net/wg0/threaded", []string{"nic.wg0.threaded=1: still valid"}},
		{"echo 2 > /proc/irq/45/smp_affinity", []string{"irq.45.smp_affinity=2: still valid: Binds"}},
		{"echo 65536 > /sys/module/nf_conntrack/parameters/hashsize", []string{"net.netfilter.nf_conntrack_buckets=65536: still valid"}},
		{"options nf_conntrack hashsize=65536 # modprobe.d", []string{"net.netfilter.nf_conntrack_buckets=65536: still valid"}},
		{"cpupower frequency-set -g performance", []string{"cpu.governor=performance: still valid"}},
		{"echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor", []string{"cpu.governor=performance: still valid"}},
		{"ip link set dev eth0 txqueuelen 10000", []string{"nic.eth0.txqueuelen=10000: still valid: How many packets pfifo_fast"}},
		{"ifconfig eth0 txqueuelen 10000", []string{"nic.eth0.txqueuelen=10000: still valid"}},
	} {
		j := judge(t, "linux")
		found, passed, err := audit.Read(strings.NewReader(c.text+"\n"), "rc.local", j.Known)
		if err != nil {
			t.Fatal(err)
		}
		if len(found) != len(c.want) {
			t.Errorf("%s: %+v, want %q", c.text, found, c.want)
			continue
		}
		if c.want == nil && len(passed) != 1 {
			t.Errorf("%s: %d lines passed over, want 1", c.text, len(passed))
		}
		for i, want := range c.want {
			f := j.Check(found[i])
			if got := f.Key + "=" + f.Value + ": " + f.Says(); !strings.HasPrefix(got, want) {
				t.Errorf("%s: %s, want %s", c.text, got, want)
			}
		}
	}
}

// TestCardsElsewhere checks that Linux's commands mean nothing to FreeBSD.
func TestCardsElsewhere(t *testing.T) {
	j := judge(t, "freebsd-14")
	found, _, err := audit.Read(strings.NewReader("ethtool -K eth0 gro off\nip link set dev eth0 txqueuelen 10000\n"), "notes.txt", j.Known)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range found {
		if f := j.Check(l); f.Verdict != audit.Unknown {
			t.Errorf("%s: %s", l.Key, f.Says())
		}
	}
}

// TestTells checks that what only tells something in sysctl's output is no unknown setting.
func TestTells(t *testing.T) {
	for _, c := range []struct {
		target, text string
		want         audit.Verdict
	}{
		{"freebsd-14", "kern.ostype: FreeBSD", audit.Elsewhere},
		{"freebsd-14", "net.inet.ip.intr_queue_drops: 912", audit.Elsewhere},
		{"freebsd-14", "dev.igc.0.queue_rx_0.rxd_head: 231", audit.Elsewhere},
		{"freebsd-14", "net.inet.tcp.hostcache.count: 12", audit.Elsewhere},
		{"freebsd-14", "dev.igc.0.%desc: Intel(R) Ethernet Controller I226-V", audit.Elsewhere},
		{"freebsd-14", "net.inet.ip.intr_queue_maxlen: 512", audit.Valid},
		{"linux", "net.netfilter.nf_conntrack_count = 1200", audit.Elsewhere},
		{"linux", "kernel.osrelease = 6.12.0", audit.Elsewhere},
		{"linux", "net.netfilter.nf_conntrack_max = 262144", audit.Valid},
	} {
		j := judge(t, c.target)
		found, _, err := audit.Read(strings.NewReader(c.text+"\n"), "sysctl-a.txt", j.Known)
		if err != nil || len(found) != 1 {
			t.Errorf("%s: %+v, %v", c.text, found, err)
			continue
		}
		if f := j.Check(found[0]); f.Verdict != c.want {
			t.Errorf("%s: %s, want %s", c.text, f.Says(), c.want)
		}
	}
}

// TestRemark checks that a remark in parentheses leaves a setting in force, and that the commands of tasks
// set cards.
func TestRemark(t *testing.T) {
	j := judge(t, "freebsd-14")
	found, _, err := audit.Read(strings.NewReader("net.inet.tcp.keepidle=62000 # (default 7200000)\nnet.inet.tcp.keepidle=10000 (default 65000)\n"), "notes.md", j.Known)
	if notes := j.Across(found); err != nil || len(notes) != 1 || !notes[0].Harmful {
		t.Errorf("%+v, %+v, %v", found, notes, err)
	}
	linux := judge(t, "linux")
	found, passed, err := audit.Read(strings.NewReader("- name: offloads\n  ansible.builtin.command: ethtool -K eth0 lro off gro on\n"), "tasks.yml", linux.Known)
	if err != nil || len(found) != 2 || len(passed) != 0 {
		t.Errorf("%+v, %+v, %v", found, passed, err)
	}
}

// TestInterfaces checks settings that mean one thing for all interfaces and another for each.
func TestInterfaces(t *testing.T) {
	for _, c := range []struct {
		key, value string
		want       audit.Verdict
		says       string
	}{
		{"net.ipv4.conf.default.accept_source_route", "1", audit.IsDefault, ""},
		{"net.ipv4.conf.eth0.accept_source_route", "0", audit.Valid, "only if both"},
		{"net.ipv4.conf.all.accept_source_route", "1", audit.Dangerous, ""},
		{"net.ipv6.conf.all.forwarding", "0", audit.Dangerous, "does not route"},
		{"net.ipv6.conf.eth0.forwarding", "0", audit.Valid, "behaves as a host's"},
		{"net.ipv6.conf.eth0.accept_ra_mtu", "0", audit.EndpointOnly, "router advertisements"},
		{"net.ipv6.conf.eth0.proxy_ndp", "1", audit.Valid, "answers for addresses"},
		{"net.core.gro_normal_batch", "8", audit.IsDefault, ""},
	} {
		f := judge(t, "linux").Check(audit.Line{Key: c.key, Value: c.value})
		if f.Verdict != c.want || !strings.Contains(f.Says(), c.says) {
			t.Errorf("%s=%s: %s, want %s with %q", c.key, c.value, f.Says(), c.want, c.says)
		}
	}
}
