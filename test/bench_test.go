package test

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"weir/internal/bench/remote"
	"weir/internal/bench/report"
	"weir/internal/host/hostinfo"
	"weir/internal/lab"
	"weir/internal/testenv"
	"weir/test/lib"
)

//	lan ─────────────── fw ────────────── wan
//	weir bench client   weir, NAT         weir bench server
//
// TCP and UDP in each direction and in both, with round-trip times, through a translating
// router. The report also shows what the router drops meanwhile.
func TestBenchBetweenMachines(t *testing.T) {
	b := weir.Box(t, "tcx")
	b.WeirRun(gatewayConf(t))
	key, file := filepath.Join(t.TempDir(), "key"), filepath.Join(t.TempDir(), "report.json")
	server := b.Listen(lab.WAN, 5202, string(weir), "bench", "server", "--key", key, "--once")
	b.Start(lab.WAN, "bash", "-c", "while :; do echo > /dev/udp/"+fwWAN+"/9; sleep 0.02; done")
	client := b.Start(lab.LAN, string(weir), "bench", "client", wanHost, "--key", key, "--router", b.Namespace(lab.FW),
		"--proto", "tcp,udp", "--connections", "2", "--tcp-rate", "40M", "--rate", "5M", "--frame", "512", "--runs", "1", "--seconds", "0.5",
		"--json", file)
	said := reported(b, client)
	server.Wait(5*time.Second, 0)
	d := readReport(t, file)
	for name, least := range map[string]float64{
		"tcp.up.2.throughput": 20, "tcp.down.2.throughput": 20, "tcp.both.2.up.throughput": 20, "tcp.both.2.down.throughput": 20,
		"udp.up.512.5000000.throughput": 2, "udp.down.512.5000000.throughput": 2,
		"udp.both.512.5000000.up.throughput": 2, "udp.both.512.5000000.down.throughput": 2, "idle.rtt.p50": 0.001,
	} {
		if got := measurement(d, name); got < least {
			t.Errorf("%s is %g, want %g at least; the client said:\n%s", name, got, least, said)
		}
	}
	if !inTables(d, "weir: ") {
		t.Errorf("nothing of what weir dropped stands in the report:\n%s", said)
	}
	if !strings.Contains(said, "What limits "+b.Namespace(lab.FW)) || !strings.Contains(said, "Nothing is wrong") && !strings.Contains(said, "cpu") {
		t.Errorf("doctor says nothing of the router:\n%s", said)
	}
	if !strings.Contains(server.Said(), "has gone") {
		t.Errorf("the server said:\n%s", server.Said())
	}
}

//	lan ─────────────── fw ────────── wan
//	weir bench client   weir, NAT     iperf3 -s
//
// A stock iperf3 on the other side, in each direction.
func TestBenchWithIPerf3(t *testing.T) {
	b := weir.Box(t, "tcx")
	b.WeirRun(gatewayConf(t))
	b.Listen(lab.WAN, 5201, "iperf3", "-s")
	file := filepath.Join(t.TempDir(), "report.json")
	said := reported(b, b.Start(lab.LAN, string(weir), "bench", "client", wanHost, "--iperf3", "--proto", "tcp,udp", "--connections", "2",
		"--tcp-rate", "40M", "--rate", "5M", "--frame", "1518", "--runs", "1", "--seconds", "1", "--json", file))
	d := readReport(t, file)
	for name, least := range map[string]float64{
		"tcp.up.2.throughput": 20, "tcp.down.2.throughput": 20,
		"udp.up.1518.5000000.throughput": 2, "udp.down.1518.5000000.throughput": 2,
	} {
		if got := measurement(d, name); got < least {
			t.Errorf("%s is %g, want %g at least; the client said:\n%s", name, got, least, said)
		}
	}
}

//	lan ───────────── fw
//	weir bench client   weir bench server
//
// Over IPv6, on the link between the two: TCP, and UDP in the smallest frames that fit
// IPv6.
func TestBenchIPv6(t *testing.T) {
	b := weir.Box(t, "tcx")
	key, file := filepath.Join(t.TempDir(), "key"), filepath.Join(t.TempDir(), "report.json")
	server := b.Listen(lab.FW, 5202, string(weir), "bench", "server", "--key", key, "--listen", "["+fwLAN6+"]:5202", "--once")
	said := reported(b, b.Start(lab.LAN, string(weir), "bench", "client", fwLAN6, "--key", key, "--proto", "tcp,udp",
		"--direction", "up,down", "--connections", "2", "--tcp-rate", "40M", "--rate", "2M", "--frame", "84", "--runs", "1", "--seconds", "0.5",
		"--json", file))
	server.Wait(5*time.Second, 0)
	d := readReport(t, file)
	for name, least := range map[string]float64{
		"tcp.up.2.throughput": 20, "tcp.down.2.throughput": 20, "udp.up.84.2000000.throughput": 1, "udp.down.84.2000000.throughput": 1,
		"idle.rtt.p50": 0.001,
	} {
		if got := measurement(d, name); got < least {
			t.Errorf("%s is %g, want %g at least; the client said:\n%s", name, got, least, said)
		}
	}
}

//	lan                 fw            wan
//	weir bench client   forwards      weir bench server
//
// Foreign peers are left alone. If one side is killed, the other notices soon, and a
// server serves the next.
func TestBenchPeers(t *testing.T) {
	b := weir.Box(t, "tcx")
	b.WeirRun(gatewayConf(t))
	key := filepath.Join(t.TempDir(), "key")
	server := b.Listen(lab.WAN, 5202, string(weir), "bench", "server", "--key", key)
	client := func(host string, more ...string) *lib.Process {
		return b.Start(lab.LAN, string(weir), append([]string{"bench", "client", host, "--key", key, "--direction", "down",
			"--connections", "1", "--tcp-rate", "10M", "--seconds", "8", "--runs", "1"}, more...)...)
	}
	for _, host := range []string{"192.0.2.1", "203.0.113.9"} {
		if said := client(host).Wait(10*time.Second, 2); !strings.Contains(said, "add --yes-i-own "+host) {
			t.Errorf("measuring with %s: %s", host, said)
		}
	}
	if said := client("192.0.2.1", "--yes-i-own", wanHost).Wait(10*time.Second, 2); !strings.Contains(said, "another machine") {
		t.Errorf("owning another host: %s", said)
	}
	running := func() bool { return strings.Count(server.Said(), "TCP down, 1 connection,") > 0 }
	first := client(wanHost)
	b.Until(10*time.Second, "a run begins", running)
	first.Kill()
	b.Until(5*time.Second, "the server misses the client", func() bool { return strings.Contains(server.Said(), "the client has gone") })
	second := client(wanHost)
	b.Until(10*time.Second, "the next client is served", func() bool { return strings.Count(server.Said(), "TCP down, 1 connection,") > 1 })
	server.Kill()
	if said := second.Wait(15*time.Second, 1); !strings.Contains(said, "weir: bench client: ") {
		t.Errorf("after the server was killed: %s", said)
	}
}

// TestBenchKilled kills benchmarks at random moments. After the next one has begun and
// ended nothing is left: no namespace, no process, no folder, no limit of conntrack.
func TestBenchKilled(t *testing.T) {
	testenv.NeedRoot(t)
	for _, test := range []struct {
		arguments []string
		kills     int
		within    time.Duration
	}{
		{[]string{"forward", "--paths", "nft,weir", "--flows", "1000", "--runs", "50", "--raise-conntrack"}, 3, 5 * time.Second},
		{[]string{"ladder", "--parts", "tcp,pairs,latency", "--connections", "1,64", "--runs", "50"}, 3, 5 * time.Second},
		{[]string{"client", "127.0.0.1", "--iperf3", "--runs", "50", "--port", "5217"}, 2, 5 * time.Second},
		{[]string{"server", "--listen", "127.0.0.1:5218"}, 1, time.Second},
	} {
		t.Run(test.arguments[0], func(t *testing.T) {
			if test.arguments[0] == "client" {
				startIPerf3(t)
			}
			before, err := hostinfo.ReadConntrack()
			if err != nil {
				t.Fatal(err)
			}
			for range test.kills {
				killBench(t, test.arguments, test.within)
				nextBench(t)
				nothingOfBench(t)
			}
			if after, err := hostinfo.ReadConntrack(); err != nil || after != before {
				t.Errorf("conntrack's limits are %+v, %v; they were %+v", after, err, before)
			}
		})
	}
}

func startIPerf3(t *testing.T) {
	t.Helper()
	server := exec.Command(testenv.NeedProgram(t, "iperf3"), "-s", "-B", "127.0.0.1", "-p", "5217")
	server.SysProcAttr = withTest()
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait() // reports that it was killed
	})
}

// withTest ends a program of this test if the test itself is killed: a benchmark of many
// rounds would block all others for hours.
func withTest() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

// killBench starts a benchmark and kills it within that time.
func killBench(t *testing.T, arguments []string, within time.Duration) {
	t.Helper()
	cmd := exec.Command(string(weir), append([]string{"bench"}, arguments...)...)
	cmd.SysProcAttr = withTest()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	after := rand.N(within)
	time.Sleep(after)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatalf("weir bench %s had ended by itself after %s", arguments[0], after)
	}
	_ = cmd.Wait() // reports that it was killed
	t.Logf("killed after %s", after)
}

// nextBench is a benchmark without a peer to measure with; it cleans up before it looks
// for one.
func nextBench(t *testing.T) {
	t.Helper()
	key := filepath.Join(t.TempDir(), "key")
	if _, _, err := remote.OpenKey(key); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(string(weir), "bench", "client", "127.0.0.1", "--port", "1", "--key", key).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "connection refused") {
		t.Fatalf("the next benchmark: %v, %s", err, out)
	}
}

func nothingOfBench(t *testing.T) {
	t.Helper()
	for _, pattern := range []string{"/run/netns/weir-bench-*", "/run/weir-bench*"} {
		if left, err := filepath.Glob(pattern); err != nil || len(left) > 0 {
			t.Errorf("left: %v, %v", left, err)
		}
	}
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	// A process whose thread was killed a moment ago may still be visible.
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		left := slices.DeleteFunc(slices.Clone(commands), func(file string) bool {
			text, err := os.ReadFile(file)
			return err != nil || !ofBench(string(text))
		})
		if len(left) == 0 {
			return
		}
		if time.Now().After(end) {
			t.Errorf("processes are left: %v", left)
			return
		}
	}
}

// ofBench reports, by its arguments, whether a process belongs to a benchmark: those in
// its namespaces, its iperf3, a server.
func ofBench(arguments string) bool {
	for _, mark := range []string{"weir-bench", "/iperf3\x00-c", "/iperf3\x00-s\x00-1", "bench\x00server\x00--listen\x00127.0.0.1:5218"} {
		if strings.Contains(arguments, mark) {
			return true
		}
	}
	return strings.HasPrefix(arguments, "iperf3\x00-c")
}

// reported returns the report of a benchmark that has ended. On a busy machine one run
// and the control may differ; this is no error.
func reported(b *lib.Box, p *lib.Process) string {
	b.Until(90*time.Second, "the benchmark ends", func() bool { return !p.Running() })
	if !strings.Contains(p.Said(), "To repeat it") {
		b.Fatalf("no report:\n%s", p.Said())
	}
	return p.Said()
}

func readReport(t *testing.T, file string) *report.Document {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d, err := report.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// measurement returns the median of a measurement; 0: there is none.
func measurement(d *report.Document, name string) float64 {
	for _, m := range d.Measurements {
		if m.Name == name {
			return m.Runs.Median()
		}
	}
	return 0
}

func inTables(d *report.Document, text string) bool {
	for _, s := range d.Sections {
		for _, t := range s.Tables {
			for _, row := range t.Rows {
				for _, cell := range row {
					if strings.Contains(cell, text) {
						return true
					}
				}
			}
		}
	}
	return false
}
