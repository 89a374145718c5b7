package doctor

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// topText is what top -HSPb prints; %s: a line for each core, %s: one for each thread.
const topText = "last pid: 15071;  load averages:  1.86,  1.09,  0.57    up 0+00:10:47  00:20:40\n346 threads:   12 running, 295 sleeping, 39 waiting\n" +
	"%sMem: 139M Active, 126M Inact, 635M Wired, 56K Buf, 14G Free\nARC: 189M Total, 41M MFU, 112M MRU, 516K Anon, 1363K Header, 34M Other\n     116M Compressed, 256M Uncompressed, 2.20:1 Ratio\n" +
	"Swap: 8192M Total, 8192M Free\n\n  PID USERNAME    PRI NICE   SIZE    RES STATE    C   TIME    WCPU COMMAND\n%s"

// topOf prints cores, each given as user, system and interrupt, and threads ("97.00 intr{…}").
func topOf(cores [][3]float64, threads ...string) string {
	var lines, rows strings.Builder
	for i, c := range cores {
		fmt.Fprintf(&lines, "CPU %d: %4.1f%% user,  0.0%% nice, %4.1f%% system, %4.1f%% interrupt, %4.1f%% idle\n", i, c[0], c[1], c[2], 100-c[0]-c[1]-c[2])
	}
	for i, t := range threads {
		share, name, _ := strings.Cut(t, " ")
		fmt.Fprintf(&rows, "%5d root        -92    -     0B  1024K CPU%d     %d   5:00  %s%% %s\n", 10+i, i, i, share, name)
	}
	return fmt.Sprintf(topText, lines.String(), rows.String())
}

const (
	vmstatText = "interrupt                          total       rate\nirq1: atkbd0                           2          0\ncpu0:timer                       1234567        123\n" +
		"irq264: igb0:rxq0                9000000        999\nirq265: igb0:rxq1                  10000          1\nirq266: igb0:aq                        2          0\nTotal                           10244571       1123\n"
	netstatText = "1539/3561/5100 mbufs in use (current/cache/total)\n1536/1780/%d/26584 mbuf clusters in use (current/cache/total/max)\n1536/1780 mbuf+clusters out of packet secondary zone in use (current/cache)\n" +
		"0/0/0/13291 4k (page size) jumbo clusters in use (current/cache/total/max)\n0/0/0/3938 9k jumbo clusters in use (current/cache/total/max)\n3456K/4450K/7906K bytes allocated to network (current/cache/total)\n" +
		"%d/7/0 requests for mbufs denied (mbufs/clusters/mbuf+clusters)\n1/2/0 requests for mbufs delayed (mbufs/clusters/mbuf+clusters)\n0/0/0 requests for jumbo clusters delayed (4k/9k/16k)\n" +
		"0/5/0 requests for jumbo clusters denied (4k/9k/16k)\n0 requests for sfbufs denied\n0 sendfile syscalls\n"
)

// TestFreeBSDTools checks what is read of FreeBSD's tools.
func TestFreeBSDTools(t *testing.T) {
	text := topOf([][3]float64{{0.4, 1, 97}, {2, 3, 1}}, "98.97 idle{idle: cpu1}", "97.00 intr{irq264: igb0:rxq0}", "3.10 /usr/local/bin/php") + vmstatText + fmt.Sprintf(netstatText, 3316, 4)
	s, err := Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	want := &BSD{
		Cores:   []BSDCore{{ID: 0, User: 0.4, System: 1, Interrupt: 97, Idle: 1.6}, {ID: 1, User: 2, System: 3, Interrupt: 1, Idle: 94}},
		Threads: []BSDThread{{Name: "intr{irq264: igb0:rxq0}", Time: 97}, {Name: "/usr/local/bin/php", Time: 3.1}},
		Interrupts: map[string]uint64{"irq1: atkbd0": 2, "cpu0:timer": 1234567, "irq264: igb0:rxq0": 9000000,
			"irq265: igb0:rxq1": 10000, "irq266: igb0:aq": 2},
		Mbufs: &Mbufs{Clusters: 3316, Max: 26584, Denied: 16, Delayed: 3},
	}
	if diff := cmp.Diff(want, s.BSD); diff != "" || s.Host.System != "FreeBSD" {
		t.Errorf("%s (-want +got):\n%s", s.Host.System, diff)
	}
	for _, text := range []string{vmstatText + "what is this?\n", topOf([][3]float64{{1, 1, 1}}) + "net.inet.ip.forwarding: 1\n"} {
		if _, err := Read(strings.NewReader(text)); !errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), "does not belong") {
			t.Errorf("%v", err)
		}
	}
	if _, err := Read(strings.NewReader("last pid: 15071;  load averages:  1.86\n")); !errors.Is(err, ErrForeign) {
		t.Errorf("nothing to judge: %v", err)
	}
}

// TestFreeBSDCores checks what is said of full cores, by the thread that fills them.
func TestFreeBSDCores(t *testing.T) {
	one, idle := [3]float64{0, 2, 96}, [3]float64{2, 4, 3}
	for _, c := range []struct {
		name, text         string
		check              string
		severity           Severity
		says, first, never string // parts of the sentence and of the first remedy; what no remedy has
	}{
		{name: "room", text: topOf([][3]float64{{1, 40, 40}, idle}, "60.00 intr{irq264: igb0:rxq0}")},
		{name: "a queue", text: topOf([][3]float64{one, idle, idle, idle}, "96.00 intr{irq264: igb0:rxq0}"), check: "BSD-5", severity: Critical, says: "cpu0 is full of packets, and 3 cores have room: they come by one queue", first: "net.isr.dispatch=deferred"},
		{name: "a queue of iflib", text: topOf([][3]float64{{0, 97, 1}, idle}, "95.00 kernel{if_io_tqg_0}") + vmstatText, check: "BSD-5", severity: Critical, says: "1 core has room: they come by one queue of a card (100 % of igb0's interrupts are those of queue 0)", first: "net.isr.dispatch=deferred"},
		{name: "netisr", text: topOf([][3]float64{one, idle}, "96.00 intr{swi1: netisr 0}"), check: "BSD-5", severity: Critical, says: "one thread of netisr", first: "netstat -Q", never: "dispatch=deferred"},
		{name: "netgraph", text: topOf([][3]float64{{0, 96, 0}, idle}, "96.00 ng_queue{ng_queue0}"), check: "BSD-5", severity: Critical, says: "netgraph's thread", first: "net.isr.dispatch=deferred"},
		{name: "WireGuard", text: topOf([][3]float64{{0, 96, 0}, idle}, "96.00 kernel{wg_tqg_1}"), check: "BSD-5", severity: Critical, says: "WireGuard", first: "top -HSP", never: "isr"},
		{name: "a limiter", text: topOf([][3]float64{{0, 96, 0}, idle}, "96.00 kernel{dummynet}"), check: "BSD-5", severity: Critical, says: "cpu0 is full, and the kernel's thread kernel{dummynet} takes 96 %", first: "top -HSP", never: "isr"},
		{name: "an old driver", text: topOf([][3]float64{one, idle}, "96.00 intr{irq16: em0}"), check: "BSD-5", severity: Critical, says: "one queue of a card", first: "net.isr.dispatch=deferred"},
		{name: "without -H", text: strings.Replace(topOf([][3]float64{one, idle}, "686.23 [intr]", "36.04 [idle]"), "8192M Total, 8192M Free", "", 1), check: "BSD-5", severity: Critical, says: "1 core has room", first: "top -HSP"},
		{name: "no threads", text: topOf([][3]float64{one, idle}), check: "BSD-5", severity: Critical, says: "1 core has room", first: "top -HSP"},
		{name: "all cores", text: topOf([][3]float64{one, one}, "96.00 intr{irq264: igb0:rxq0}"), check: "BSD-5", severity: Critical, says: "packets fill cpu0 and cpu1: no core has room", first: "pfctl -vvsr", never: "isr"},
		{name: "a program", text: topOf([][3]float64{{90, 6, 2}, idle}, "91.00 /usr/local/bin/suricata", "40.00 intr{irq264: igb0:rxq0}"), check: "BSD-5", severity: Warning, says: "programs fill cpu0: /usr/local/bin/suricata takes 91 % of a core", first: "top -HSP", never: "isr"},
		{name: "buffers left", text: strings.Replace(strings.Replace(fmt.Sprintf(netstatText, 3316, 0), "0/7/0", "0/0/0", 1), "0/5/0", "0/0/0", 1)},
		{name: "denied", text: fmt.Sprintf(netstatText, 3316, 0), check: "BSD-6", severity: Warning, says: "12 requests were denied", first: "kern.ipc.nmbclusters=131072"},
		{name: "buffers taken", text: fmt.Sprintf(netstatText, 26584, 90000), check: "BSD-6", severity: Critical, says: "26,584 of 26,584", first: "kern.ipc.nmbclusters=131072"},
	} {
		r := examine(t, c.text)
		if r.Verdict.Check != c.check {
			t.Errorf("%s: %q: %s; want %q", c.name, r.Verdict.Check, r.Verdict.Sentence, c.check)
			continue
		}
		if c.check == "" {
			continue
		}
		f := r.Findings[0]
		if f.Severity != c.severity || !strings.Contains(f.Says, c.says) || len(f.Remedies) == 0 || !strings.Contains(f.Remedies[0].Command, c.first) ||
			c.never != "" && strings.Contains(fmt.Sprint(f.Remedies), c.never) {
			t.Errorf("%s: %s: %s\n%v", c.name, f.Severity, f.Says, f.Remedies)
		}
		asTuneSays(t, c.name, f.Remedies)
	}
}

// asTuneSays checks that no remedy wants what weir tune writes as a comment only, or says of it why.
func asTuneSays(t *testing.T, name string, remedies []Remedy) {
	t.Helper()
	for _, m := range remedies {
		if strings.Contains(m.Command, "bindthreads") || strings.Contains(m.Command, "maxthreads") && !strings.Contains(m.Text, "measured only with option RSS") {
			t.Errorf("%s: %+v", name, m)
		}
	}
}
