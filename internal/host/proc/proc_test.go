package proc_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"weir/internal/host/proc"
)

// tree returns a directory that stands for /proc.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// equal fails the test if the result is not the wanted one.
func equal[T any](t *testing.T, want, got T, err error) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
}

func TestCores(t *testing.T) {
	root := tree(t, map[string]string{"stat": "cpu  30 1 20 101 2 5 50 3 0 0\ncpu0 10 1 9 50 2 5 25 3 0 0\ncpu3 20 0 11 123456789012 0 0 25 0 0 0\nintr 1 2\n"})
	got, err := proc.Cores(root)
	equal(t, map[int]proc.Times{
		0: {User: 10, Nice: 1, System: 9, Idle: 50, IOWait: 2, IRQ: 5, Softirq: 25, Steal: 3},
		3: {User: 20, System: 11, Idle: 123456789012, Softirq: 25},
	}, got, err)
	if got[0].Total() != 105 {
		t.Errorf("total %d", got[0].Total())
	}
	all, err := proc.AllCores(root)
	equal(t, proc.Times{User: 30, Nice: 1, System: 20, Idle: 101, IOWait: 2, IRQ: 5, Softirq: 50, Steal: 3}, all, err)
	for _, text := range []string{"", "cpu0 1 2 3 x 5 6 7 8 9\n", "cpuy 1 2 3 4 5 6 7 8 9\n"} {
		if got, err := proc.Cores(tree(t, map[string]string{"stat": text})); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestSoftnet(t *testing.T) {
	const row = "00000010 00000002 00000001 0 0 0 0 0 0 00000007 00000003 0 00000005 0 0\n"
	got, err := proc.Softnet(tree(t, map[string]string{"net/softnet_stat": row}))
	equal(t, map[int]procfs.SoftnetStat{5: {Processed: 16, Dropped: 2, TimeSqueezed: 1, ReceivedRps: 7, FlowLimitCount: 3, Index: 5, Width: 15}}, got, err)
	if got, err := proc.Softnet(tree(t, map[string]string{"net/softnet_stat": "zz 1 2 0 0 0 0 0 0 0 0 0 0\n"})); err == nil {
		t.Errorf("no numbers: %v", got)
	}
	if _, err := proc.Softnet(t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// TestTables checks that a table's head says which core each column is for: cpu1 is
// offline.
func TestTables(t *testing.T) {
	root := tree(t, map[string]string{
		"interrupts": `           CPU0       CPU2
  0:         20          0  IR-IO-APIC    2-edge      timer
 41:       9000          7  PCI-MSIX-0000:01:00.0   1-edge      eth1-TxRx-0
NMI:          1          2   Non-maskable interrupts
`,
		"softirqs":         "        CPU0   CPU2\n  NET_TX:  1  2\n  NET_RX:  30  0\n   TIMER:  5 5\n",
		"net/stat/a_table": "entries  found drop\n0000000a 0 1\n0000000a 2 f\n",
		"meminfo":          "MemTotal:        8000000 kB\nMemFree:         1000000 kB\n",
	})
	counts, names, err := proc.Interrupts(root)
	equal(t, map[int]map[int]uint64{0: {0: 20}, 41: {0: 9000, 2: 7}}, counts, err)
	equal(t, map[int]string{0: "timer", 41: "eth1-TxRx-0"}, names, err)
	softirqs, err := proc.NetSoftirqs(root)
	equal(t, map[string]map[int]uint64{"NET_TX": {0: 1, 2: 2}, "NET_RX": {0: 30}}, softirqs, err)
	tables, err := proc.NetStat(root)
	equal(t, map[string]map[string]uint64{"a_table": {"entries": 10, "found": 2, "drop": 16}}, tables, err)
	memory, err := proc.Memory(root)
	equal(t, 8000000*1024, memory, err)
	for _, head := range []string{"", "CPUx\n"} {
		if got, _, err := proc.Interrupts(tree(t, map[string]string{"interrupts": head})); err == nil {
			t.Errorf("%q: %v", head, got)
		}
	}
}

func TestPairs(t *testing.T) {
	got, err := proc.Pairs("Ip: Forwarding FragFails\nIp: 1 7\nTcp: RtoMin MaxConn\nTcp: 200 -1\n")
	equal(t, map[string]uint64{"Ip.Forwarding": 1, "Ip.FragFails": 7, "Tcp.RtoMin": 200}, got, err)
	if got, err := proc.Pairs("no colon\n"); err == nil {
		t.Errorf("%v", got)
	}
}

// TestProcess checks that the process's own time grows with its work.
func TestProcess(t *testing.T) {
	before, _, err := proc.Process("/proc", os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for begin := spent(t); spent(t)-begin < 200*time.Millisecond; { // other programs may have the core meanwhile
	}
	after, _, err := proc.Process("/proc", os.Getpid())
	if err != nil || after-before < 5 || after-before > 2000 {
		t.Errorf("%d ticks of work in 0.2 s, %v", after-before, err)
	}
	root := tree(t, map[string]string{"7/stat": "7 (a b) c) S 1 7 7 0 -1 69238880 0 0 0 0 11 12 0 0 20 0 1 0 5 0 0 18446744073709551615 0 0 0 0 0 0 0 2147483647 0 0 0 0 17 3 0 0 0 0 0 0 0 0 0 0 0 0 0\n"})
	ticks, core, err := proc.Process(root, 7)
	if err != nil || ticks != 23 || core != 3 {
		t.Errorf("%d ticks, core %d, %v", ticks, core, err)
	}
}

// spent returns the processor time that this process has used.
func spent(t *testing.T) time.Duration {
	t.Helper()
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// TestKsoftirqd finds the threads of this machine, and reads made ones.
func TestKsoftirqd(t *testing.T) {
	root := tree(t, map[string]string{
		"2/comm": "kthreadd\n", "14/comm": "ksoftirqd/0\n", "22/comm": "ksoftirqd/1\n", "100/comm": "ksoftirqd/x\n", "9/comm": "rcu\n",
		"22/schedstat": "120744701297 1163906897717 3398389\n",
	})
	found, err := proc.Ksoftirqd(root, 2)
	equal(t, map[int]int{0: 14, 1: 22}, found, err)
	wait, turns, err := proc.Waits(root, 22)
	equal(t, []uint64{1163906897717, 3398389}, []uint64{wait, turns}, err)
	if _, _, err := proc.Waits(root, 14); err == nil {
		t.Error("no schedstat, and no error")
	}
	if proc.KernelThreads("/proc") != nil {
		return
	}
	cores, err := proc.Cores("/proc")
	if err != nil {
		t.Fatal(err)
	}
	if found, err = proc.Ksoftirqd("/proc", len(cores)); err != nil || len(found) != len(cores) {
		t.Errorf("%v of %d cores, %v", found, len(cores), err)
	}
}
