package test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"weir/internal/fw/dataplane"
	"weir/internal/fw/rundir"
	"weir/internal/host/filelock"
	"weir/internal/killpoint"
	"weir/internal/lab"
	"weir/internal/testenv"
	"weir/test/lib"
)

// upgradeRules translate what goes to the wan, and redirect one port to the lan.
const upgradeRules = `set skip on lo
match out on wan0 inet nat-to (wan0)
match in on wan0 inet proto tcp to (wan0) port 7000 rdr-to 192.168.1.10 port 7001
block
pass in on lan0
pass out on wan0
pass in on wan0 inet proto tcp to 192.168.1.10 port 7001
pass out on lan0
`

// trackedRules are the same, and count the states of sources.
var trackedRules = strings.Replace(upgradeRules, "pass in on lan0\n", "pass in on lan0 keep state (max-src-states 5000)\n", 1)

// lastLayout is the layout before this version's.
const lastLayout = 15

// oldWeir unpacks the daemon of the last version with a state layout (test/upgrade/build).
func oldWeir(b *lib.Box, layout int) string {
	b.Helper()
	if runtime.GOARCH != "amd64" {
		testenv.SkipOutside(b, "the old daemon is built for amd64")
	}
	testenv.NeedProgram(b, "xz")
	packed, err := os.Open(filepath.Join(testenv.Root(b), "test", "upgrade", fmt.Sprintf("layout%d.xz", layout)))
	if err != nil {
		b.Fatal(err)
	}
	defer packed.Close()
	unpack := exec.CommandContext(b.Context(), "xz", "-dc")
	unpack.Stdin = packed
	program, err := unpack.Output()
	if err != nil {
		b.Fatal(err)
	}
	path := filepath.Join(b.TempDir(), "oldweir")
	testenv.WriteProgram(b, path, program)
	return path
}

// runOld starts it and waits until it is ready.
func runOld(b *lib.Box, old, rules string) *lib.Process {
	b.Helper()
	p := b.Start(lab.FW, old, rules, b.Hook)
	b.Until(lib.StartPatience, "the old weir is ready", func() bool {
		if !p.Running() {
			b.Fatalf("the old weir ended:\n%s", p.Said())
		}
		return strings.Contains(p.Said(), "msg=ready")
	})
	return p
}

// A stream is one TCP connection that must not break.
type stream struct {
	name  string
	conn  net.Conn
	bytes atomic.Int64
	err   atomic.Pointer[error]
}

// streams are connections of all kinds through the box.
type streams struct {
	*lib.Box
	all  []*stream
	idle []*stream
	stop context.CancelFunc
	busy sync.WaitGroup
}

// pace leaves the machine time for other stories; 16 KiB at a time are still hundreds of
// megabits.
const pace = 300 * time.Microsecond

// Kinds of a stream's server, by the first byte that it is sent.
const (
	streamEcho = iota
	streamSource
	streamSink
)

// startStreams opens connections in both directions: idle ones that are used now and
// then, ones that echo all the time, and ones that carry as much as they can.
func startStreams(b *lib.Box) *streams {
	b.Helper()
	ctx, stop := context.WithCancel(context.Background())
	t := &streams{Box: b, stop: stop}
	b.Cleanup(t.end)
	serveStreams(b, lab.WAN, "203.0.113.1:7000")
	serveStreams(b, lab.LAN, "192.168.1.10:7001")
	for from, to := range map[string]string{lab.LAN: wanHost + ":7000", lab.WAN: fwWAN + ":7000"} {
		for range 20 {
			t.idle = append(t.idle, t.open(from, to, "idle", streamEcho))
		}
		for _, kind := range []byte{streamEcho, streamEcho, streamSource, streamSink} {
			x := t.open(from, to, fmt.Sprintf("kind %d", kind), kind)
			t.busy.Go(func() { x.run(ctx, kind) })
		}
	}
	return t
}

func serveStreams(b *lib.Box, host, at string) {
	b.Helper()
	var l net.Listener
	err := b.Do(host, func() (err error) {
		l, err = net.Listen("tcp", at)
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go serveStream(c)
		}
	}()
}

func serveStream(c net.Conn) {
	defer c.Close()
	var kind [1]byte
	if _, err := io.ReadFull(c, kind[:]); err != nil {
		return
	}
	switch kind[0] {
	case streamEcho:
		io.Copy(c, c) //nolint:errcheck // the other end reports errors
	case streamSource:
		for block := make([]byte, 16<<10); ; {
			if _, err := c.Write(block); err != nil {
				return
			}
		}
	case streamSink:
		io.Copy(io.Discard, c) //nolint:errcheck // the other end reports errors
	}
}

func (t *streams) open(host, to, name string, kind byte) *stream {
	t.Helper()
	x := &stream{name: fmt.Sprintf("%s from %s", name, host)}
	err := t.Do(host, func() (err error) {
		d := net.Dialer{Timeout: 5 * time.Second}
		x.conn, err = d.DialContext(context.Background(), "tcp", to)
		return err
	})
	if err != nil {
		t.Fatalf("%s: %v", x.name, err)
	}
	if _, err := x.conn.Write([]byte{kind}); err != nil {
		t.Fatalf("%s: %v", x.name, err)
	}
	t.all = append(t.all, x)
	return x
}

// run carries data until ctx ends or the connection breaks.
func (x *stream) run(ctx context.Context, kind byte) {
	r := bufio.NewReaderSize(x.conn, 16<<10)
	block := make([]byte, 16<<10)
	for ctx.Err() == nil {
		n, err := 0, error(nil)
		switch kind {
		case streamEcho:
			if _, err = x.conn.Write([]byte("x")); err == nil {
				_, err = r.ReadByte()
			}
			n = 1
			time.Sleep(2 * time.Millisecond)
		case streamSource:
			n, err = r.Read(block)
			time.Sleep(pace)
		case streamSink:
			n, err = x.conn.Write(block)
			time.Sleep(pace)
		}
		if err != nil {
			x.err.Store(&err)
			return
		}
		x.bytes.Add(int64(n))
	}
}

// live checks that every connection carries data now.
func (t *streams) live(when string) {
	t.Helper()
	before := make(map[*stream]int64)
	for _, x := range t.all {
		before[x] = x.bytes.Load()
	}
	for _, x := range t.idle {
		x.conn.SetDeadline(time.Now().Add(20 * time.Second)) //nolint:errcheck // reading reports errors
		var answer [4]byte
		_, err := x.conn.Write([]byte("live"))
		if err == nil {
			_, err = io.ReadFull(x.conn, answer[:])
		}
		if err != nil || string(answer[:]) != "live" {
			t.Errorf("%s: %s, %s > %s: answered %q, %v", when, x.name, x.conn.LocalAddr(), x.conn.RemoteAddr(), answer, err)
		}
	}
	for _, x := range t.all {
		if before[x] == 0 && x.bytes.Load() == 0 {
			continue // an idle one
		}
		deadline := time.Now().Add(20 * time.Second)
		for x.bytes.Load() < before[x]+10 && time.Now().Before(deadline) && x.err.Load() == nil {
			time.Sleep(10 * time.Millisecond)
		}
		if err := x.err.Load(); err != nil {
			t.Errorf("%s: %s broke: %v", when, x.name, *err)
		} else if x.bytes.Load() < before[x]+10 {
			t.Errorf("%s: %s, %s > %s, carries nothing any more", when, x.name, x.conn.LocalAddr(), x.conn.RemoteAddr())
		}
	}
}

func (t *streams) end() {
	t.stop()
	for _, x := range t.all {
		x.conn.Close()
	}
	t.busy.Wait()
}

// downgrade hands over to the old weir, and checks that nothing was lost.
func downgrade(b *lib.Box, old, rules string, layout int) *lib.Process {
	b.Helper()
	d := b.WeirCommand("downgrade", "--layout", strconv.Itoa(layout))
	b.AwaitSaid(d, "start the older weir now")
	p := runOld(b, old, rules)
	if said := d.Wait(30*time.Second, 0); !strings.Contains(said, "lost: 0") && !strings.Contains(said, "lost=0") && !strings.Contains(said, "0 lost") {
		b.Errorf("the downgrade said:\n%s", said)
	} else if strings.Contains(said, "busy connections may break") {
		b.Errorf("the offered tables do not fit the old weir, which has the same limit of states:\n%s", said)
	}
	return p
}

//	lan ═══ TCP, NAT, both directions ═══ wan     fw: an earlier layout ─▶ this version ─▶ back ─▶ this version
//
// An upgrade to another layout of the states, and back, loses no connection, and counters go on.
func TestUpgradeKeepsConnections(t *testing.T) { upgradeKeepsConnections(t, lastLayout, "tcx", "xdp") }

// The same from the layouts before that.
func TestUpgradeFromLayout12(t *testing.T) { upgradeKeepsConnections(t, 12, "xdp") }

func TestUpgradeFromLayout11(t *testing.T) { upgradeKeepsConnections(t, 11, "tcx") }

func TestUpgradeFromLayout10(t *testing.T) { upgradeKeepsConnections(t, 10, "xdp") }

func TestUpgradeFromLayout9(t *testing.T) { upgradeKeepsConnections(t, 9, "tcx") }

func TestUpgradeFromLayout8(t *testing.T) { upgradeKeepsConnections(t, 8, "xdp") }

func upgradeKeepsConnections(t *testing.T, layout int, hooks ...string) {
	weir.AtOnce(t, hooks, func(b *lib.Box) {
		text := trackedRules
		if layout < 10 { // it counts no sources
			text = upgradeRules
		}
		old, rules := oldWeir(b, layout), b.Rules(text)
		runOld(b, old, rules)
		t := startStreams(b)
		t.live("under the old layout")
		if said, status := b.WeirStatus("info"); status != 1 || !strings.Contains(said, "another version of weir") {
			b.Errorf("weir info about the old version: status %d, %s", status, said)
		}
		p := b.WeirRun(rules)
		t.live("after the upgrade")
		if !strings.Contains(p.Said(), "no connection is lost") || !strings.Contains(p.Said(), "converted the states") {
			b.Errorf("the upgrade said:\n%s", p.Said())
		}
		if states := len(b.States()); states < len(t.all) {
			b.Errorf("%d states of %d connections", states, len(t.all))
		}
		counted := b.Rule("pass in on lan0").Packets
		if counted < 1000 {
			b.Errorf("pass in on lan0 has counted %d packets: the old version's are gone", counted)
		}
		counted = packets(b)
		downgrade(b, old, rules, layout)
		t.live("after the downgrade")
		b.WeirRun(rules)
		t.live("after the second upgrade")
		if sources := b.Weir("sources"); text == trackedRules && !strings.Contains(sources, lanHost) {
			b.Errorf("no source counts its states any more:\n%s", sources)
		}
		// The old version renumbers rules with nat-to at each start; states keep
		// counting.
		if now := packets(b); now < counted {
			b.Errorf("the states have counted %d packets, before the way back %d", now, counted)
		}
	})
}

// A downgrade that cannot begin, or whose terminal is closed before the older weir has
// come, leaves everything as it was.
func TestDowngradeIsInterrupted(t *testing.T) {
	weir.UnderTCX(t, func(b *lib.Box) {
		pins := filepath.Join(dataplane.Base, filepath.Base(b.RunFolder()))
		said, status := b.WeirStatus("downgrade")
		if status != 1 || !strings.Contains(said, "weir does not run here") || strings.Contains(said, "stop") {
			b.Errorf("without weir: status %d, %s", status, said)
		}
		if _, err := os.Stat(pins); !errors.Is(err, fs.ErrNotExist) {
			b.Errorf("without weir it has made %s: %v", pins, err)
		}
		b.WeirRun(b.Rules(upgradeRules))
		b.Ping(lab.LAN, wanHost, 2)
		said, status = b.WeirStatus("downgrade", "--layout", "7")
		if status != 1 || !strings.Contains(said, "layout 7") || !strings.Contains(said, "those of layout 15, 14, 13, 12, 11, 10, 9, 8") {
			b.Errorf("a layout that it does not know: status %d, %s", status, said)
		}
		d := b.WeirCommand("downgrade")
		b.AwaitSaid(d, "start the older weir now")
		d.Signal(syscall.SIGHUP)
		if said := d.Wait(30*time.Second, 1); !strings.Contains(said, "this version stays") {
			b.Errorf("interrupted, it said:\n%s", said)
		}
		if aside, err := filepath.Glob(filepath.Join(pins, "newer_tables*")); err != nil || len(aside) > 0 {
			b.Errorf("the tables in use are not back: %v, %v", aside, err)
		}
		if len(b.States()) == 0 {
			b.Error("no states are left")
		}
	})
}

// An upgrade that would lose connections changes nothing until the administrator agrees.
func TestUpgradeAsksBeforeItLoses(t *testing.T) {
	weir.UnderTCX(t, func(b *lib.Box) {
		old, rules := oldWeir(b, lastLayout), b.Rules(upgradeRules)
		p := runOld(b, old, rules)
		t := startStreams(b)
		if err := os.Remove(filepath.Join(dataplane.Base, filepath.Base(b.RunFolder()), "tables", "states")); err != nil {
			b.Fatal(err)
		}
		refused := b.WeirStart(rules)
		said := refused.Wait(lib.StartPatience, 1)
		if !strings.Contains(said, "all connections will be lost") || !strings.Contains(said, "--lose-states") {
			b.Errorf("the refused upgrade said:\n%s", said)
		}
		if !p.Running() {
			b.Errorf("the old daemon has ended:\n%s", p.Said())
		}
		t.live("after the refused upgrade")
		t.end()
		b.WeirRun(rules, "--lose-states")
		b.Ping(lab.LAN, wanHost, 2)
	})
}

// A start that rolls back a load asks, too. It does not block everything instead.
func TestRollbackAsksBeforeItLoses(t *testing.T) {
	t.Parallel()
	b := weir.Box(t, "tcx")
	rules := b.Rules(upgradeRules)
	old := runOld(b, oldWeir(b, lastLayout), rules)
	if err := os.Remove(filepath.Join(dataplane.Base, filepath.Base(b.RunFolder()), "tables", "states")); err != nil {
		b.Fatal(err)
	}
	before := rundir.Source{Name: rules, Path: rules, Text: upgradeRules}
	if err := rundir.WriteJSON(rundir.Folder(b.RunFolder()).Rollback(), rundir.Rollback{File: "/lockout.conf", Before: before}); err != nil {
		b.Fatal(err)
	}
	said := b.WeirStart(rules, "--or-block").Wait(lib.StartPatience, 1)
	if !strings.Contains(said, "--lose-states") || strings.Contains(said, "no longer load") {
		b.Errorf("the refused upgrade said:\n%s", said)
	}
	if !old.Running() {
		b.Errorf("the old daemon has ended:\n%s", old.Said())
	}
}

// While an upgrade asks, it locks nothing: the old daemon can still load and roll back.
func TestUpgradeAsksWithoutLock(t *testing.T) {
	weir.UnderTCX(t, func(b *lib.Box) {
		testenv.NeedProgram(b, "script")
		rules := b.Rules(upgradeRules)
		old := runOld(b, oldWeir(b, lastLayout), rules)
		pins := filepath.Join(dataplane.Base, filepath.Base(b.RunFolder()))
		if err := os.Remove(filepath.Join(pins, "tables", "states")); err != nil {
			b.Fatal(err)
		}
		answers, keyboard := io.Pipe()
		defer keyboard.Close()
		p := b.AtTerminal(answers, "run", "--hook", b.Hook, "-f", rules)
		b.AwaitSaid(p, "Go on? [y/N]")
		lock, err := filelock.Folder(pins, filelock.Try)
		if err != nil {
			b.Fatalf("while the upgrade asks: %v", err)
		}
		lock.Close()
		if !old.Running() {
			b.Errorf("the old daemon has ended:\n%s", old.Said())
		}
		if _, err := io.WriteString(keyboard, "y\n"); err != nil {
			b.Fatal(err)
		}
		b.AwaitSaid(p, "weir: ready")
		b.Ping(lab.LAN, wanHost, 2)
	})
}

// packets returns the sum of all states' counters.
func packets(b *lib.Box) (sum uint64) {
	b.Helper()
	for _, s := range b.States() {
		sum += s.Src.Packets + s.Dst.Packets
	}
	return sum
}

// If weir is killed in the middle of an upgrade, it loses no connection either: the next
// start continues the upgrade.
func TestUpgradeIsKilled(t *testing.T) {
	weir.BothAtOnce(t, func(b *lib.Box) {
		old, rules := oldWeir(b, lastLayout), b.Rules(upgradeRules)
		runOld(b, old, rules)
		t := startStreams(b)
		list := filepath.Join(b.TempDir(), "steps")
		steps := upgradeSteps(b, list, rules)
		dying := map[string][]string{"tcx": {"copy the states", "/generation"}, "xdp": {"replace a program"}}
		for _, step := range dying[b.Hook] {
			at := 1 + slices.IndexFunc(steps, func(s string) bool {
				return strings.HasPrefix(s, step) || strings.HasPrefix(s, "rename to") && strings.HasSuffix(s, step)
			})
			if at == 0 {
				b.Fatalf("no step %q in %q", step, steps)
			}
			b.Logf("%s is step %d of %d", step, at, len(steps))
			t.live("before it is killed")
			downgrade(b, old, rules, lastLayout)
			if err := os.WriteFile(list, []byte(fmt.Sprintln(at)), 0o600); err != nil {
				b.Fatal(err)
			}
			p := b.WeirUnder(killpoint.Variable+"="+list, "run", "--hook", b.Hook, "-f", rules)
			b.Until(lib.StartPatience, "weir is killed", func() bool { return !p.Running() })
			if !p.Killed() {
				b.Fatalf("weir ended by itself:\n%s", p.Said())
			}
			time.Sleep(time.Second) // two generations and no daemon
			b.WeirRun(rules)
			t.live("killed at " + step + ", and started again")
		}
	})
}

// upgradeSteps returns the names of an upgrade's steps.
func upgradeSteps(b *lib.Box, list, rules string) []string {
	b.Helper()
	if err := os.WriteFile(list, []byte("0\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	p := b.WeirUnder(killpoint.Variable+"="+list, "run", "--hook", b.Hook, "-f", rules)
	b.AwaitSaid(p, "weir: ready")
	text, err := os.ReadFile(list)
	if err = errors.Join(err, os.Remove(list)); err != nil {
		b.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")[1:]
}

//	fw: layout 15 with rules from a file that is gone ─▶ weir run without a file
//
// The rules in force outlive an upgrade without their file.
func TestUpgradeKeepsRulesWithoutFile(t *testing.T) {
	weir.UnderTCX(t, func(b *lib.Box) {
		rules := b.Rules(upgradeRules)
		runOld(b, oldWeir(b, lastLayout), rules)
		t := startStreams(b)
		if err := os.Remove(rules); err != nil {
			b.Fatal(err)
		}
		p := b.WeirBuiltin()
		if got := inForce(b); got != rules {
			b.Errorf("%s is in force after an upgrade without a file, want %s:\n%s", got, rules, p.Said())
		}
		t.live("after the upgrade")
		b.Ping(lab.LAN, wanHost, 2)
	})
}

//	lan ── curl ──▶ wan     fw: layout 15, with rules and addresses that programs have put in ─▶ this version
//
// What a program has loaded into an anchor, and added to tables, outlives an upgrade.
func TestUpgradeKeepsAnchors(t *testing.T) {
	weir.UnderTCX(t, func(b *lib.Box) {
		b.ServeHello(lab.WAN, 80)
		const text = "table <bad> persist\n" + anchoredRules
		rules := b.Rules(text)
		runOld(b, oldWeir(b, lastLayout), rules)
		loadAnchor(b, "guests/one", "table <ours> persist { "+lanHost+" }\npass in on lan0 inet proto tcp from <ours> to port 80\n")
		b.Weir("table", "add", "-t", "bad", "192.0.2.7")
		b.Weir("table", "add", "-a", "guests/one", "-t", "ours", "192.0.2.8")
		if !web(b, 80) {
			b.Fatal("the anchor does not open port 80 before the upgrade")
		}
		b.WeirRun(rules)
		if !web(b, 80) {
			b.Error("the upgrade has lost the rules of the anchor")
		}
		tableHolds(b, "after the upgrade", "bad", "192.0.2.7")
		tableSays(b, 0, "   192.0.2.8\n   "+lanHost+"\n", "-a", "guests/one", "-t", "ours", "show")
		b.Weir("load", b.Rules(text+"# again\n"))
		if !web(b, 80) || !strings.Contains(b.Weir("anchor", "list", "-v"), "guests/one                      1 rule, loaded at run time\n") {
			b.Errorf("after a load of the file the anchors are\n%s", b.Weir("anchor", "list", "-v"))
		}
	})
}

//	fw: layout 15, which has found a host by DNS ─▶ weir run --or-block, without DNS
//
// A start at boot knows the hosts of the rules in force after an upgrade, too. Without
// them it would block everything, DNS included.
func TestUpgradeRemembersHosts(t *testing.T) {
	weir.UnderTCX(t, func(b *lib.Box) {
		runOld(b, oldWeir(b, lastLayout), b.Rules(upgradeRules))
		found := map[string][]netip.Addr{"host.example.invalid": {netip.MustParseAddr(wanHost)}}
		rememberHosts(b, found)
		p := b.WeirRun(upgradeRules+"pass in on lan0 to host.example.invalid\n", "--or-block")
		if strings.Contains(p.Said(), "do not load") || !strings.Contains(b.Weir("rules"), wanHost) {
			b.Errorf("the host is unknown after the upgrade:\n%s", p.Said())
		}
	})
}

// rememberHosts adds hosts to the record of the rules in force, as if the daemon had
// found them.
func rememberHosts(b *lib.Box, hosts map[string][]netip.Addr) {
	b.Helper()
	files, err := filepath.Glob(filepath.Join(rundir.Folder(b.RunFolder()).Sources(), "*.json"))
	if err != nil || len(files) != 1 {
		b.Fatalf("%d texts of rules are recorded, %v", len(files), err)
	}
	var source rundir.Source
	if err := rundir.ReadJSON(files[0], &source); err != nil {
		b.Fatal(err)
	}
	source.Hosts = hosts
	if err := rundir.WriteJSON(files[0], &source); err != nil {
		b.Fatal(err)
	}
}
