package daemon

import (
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/fw/rundir"
	"weir/internal/host/filelock"
	"weir/internal/pppoe/client"
	"weir/internal/pppoe/ppp"
	"weir/pf/resolve"
)

// scriptFixture is a script that writes what it is told to a file, and then does more.
type scriptFixture struct {
	t       *testing.T
	dir     string
	of      resolve.PPPoE
	scripts *scripts
}

func newScriptFixture(t *testing.T) *scriptFixture {
	f := &scriptFixture{t: t, dir: t.TempDir()}
	f.of = resolve.PPPoE{Name: "ppp0", On: "eth0", Script: f.write("a", "")}
	f.start()
	return f
}

// write writes a script.
func (f *scriptFixture) write(name, more string) (path string) {
	f.t.Helper()
	path = filepath.Join(f.dir, name)
	text := fmt.Sprintf("#!/bin/sh\necho %s $1 $WEIR_MTU >>%s/told\n%s\n", name, f.dir, more)
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil { //nolint:gosec // a script
		f.t.Fatal(err)
	}
	return path
}

// start is another daemon.
func (f *scriptFixture) start() {
	f.scripts = newScripts(&Config{Folder: rundir.Folder(f.dir), Log: slog.New(slog.NewTextHandler(f.t.Output(), nil))})
	f.scripts.read()
}

func (f *scriptFixture) up(mtu uint16) { f.scripts.up(&f.of, &client.Session{MTU: mtu, MRU: 1500}) }

// begins waits until a script has begun.
func (f *scriptFixture) begins(text string) {
	f.t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if b, err := os.ReadFile(filepath.Join(f.dir, "told")); err == nil && strings.Contains(string(b), text) {
			return
		}
	}
	f.t.Fatalf("no script was told %q", text)
}

// check waits for the scripts and compares what they were told since the last check.
func (f *scriptFixture) check(want ...string) {
	f.t.Helper()
	f.scripts.wait(20 * time.Second)
	path := filepath.Join(f.dir, "told")
	b, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		f.t.Fatal(err)
	}
	os.Remove(path) //nolint:errcheck // it may not be there
	if got := strings.TrimSpace(string(b)); got != strings.Join(want, "\n") {
		f.t.Errorf("the scripts were told %q, want %q", got, want)
	}
}

// A script hears of each session and of its end once, also of one that ends while no daemon runs.
func TestScripts(t *testing.T) {
	f := newScriptFixture(t)
	f.scripts.down("ppp0")
	f.check()
	f.up(1492)
	f.check("a up 1492")
	f.up(1480)
	f.check("a up 1480")
	f.start() // it goes on with the session
	f.up(1480)
	f.check("a up 1480")
	f.scripts.downBut(func(name string) bool { return name == "ppp0" })
	f.check()
	f.start() // the session is over
	f.scripts.down("ppp0")
	f.scripts.down("ppp0")
	f.check("a down 1480")
	f.start()
	f.scripts.down("ppp0")
	f.check()
	f.up(1492)
	f.scripts.wait(20 * time.Second)
	f.of.Script = f.write("b", "")
	f.up(1400)
	f.check("a up 1492", "a down 1492", "b up 1400")
	f.start() // nobody asks for the interface any more
	f.scripts.downBut(func(string) bool { return false })
	f.check("b down 1400")
}

// A daemon of before has recorded with the session that the script was told "up".
func TestScriptsOfOldRecord(t *testing.T) {
	f := newScriptFixture(t)
	record := func(name string, scripted bool) map[string]any {
		of := f.of
		of.Name = name
		return map[string]any{"Of": of, "Scripted": scripted, "Saved": client.Saved{
			AC: "bras", Payload: 1492, Link: ppp.Saved{MRU: 1492, PeerMRU: 1480, Own: netip.MustParseAddr("192.0.2.1")},
		}}
	}
	f.of.Script = f.write("old", "echo $WEIR_INTERFACE $WEIR_CARRIER $WEIR_AC $WEIR_IPV4 >>"+f.dir+"/told")
	err := rundir.WriteJSON(rundir.Folder(f.dir).PPPoE(), map[string]any{"ppp0": record("ppp0", true), "ppp1": record("ppp1", false)})
	if err != nil {
		t.Fatal(err)
	}
	f.start()
	f.start() // it is recorded
	f.scripts.downBut(func(string) bool { return false })
	f.check("old down 1480", "ppp0 eth0 bras 192.0.2.1")
	f.start()
	f.scripts.down("ppp0") // although the record is as it was
	f.check()
}

// Nobody waits for a script. Of what has become of the session meanwhile, it hears the last.
func TestSlowScript(t *testing.T) {
	f := newScriptFixture(t)
	f.of.Script = f.write("slow", "while [ ! -e $0.go ]; do sleep 0.05; done")
	f.up(1492)
	f.begins("slow up 1492")
	for i := range 50 {
		f.scripts.down("ppp0")
		f.up(uint16(1300 + i))
	}
	other := resolve.PPPoE{Name: "ppp1", On: "eth0", Script: f.write("a", "touch "+f.of.Script+".go")}
	f.scripts.up(&other, &client.Session{MTU: 1200, MRU: 1500}) // that of another interface
	f.check("slow up 1492", "a up 1200", "slow up 1349")
	f.up(1492)
	f.begins("slow up 1492")
	f.scripts.down("ppp0")
	f.check("slow up 1492", "slow down 1492")
}

// A script that is told "down" when the daemon ends is told again by the next one: it may have been killed in the middle.
func TestScriptCutShort(t *testing.T) {
	f := newScriptFixture(t)
	f.of.Script = f.write("slow", "[ $1 = up ] || while [ ! -e $0.go ]; do sleep 0.05; done")
	f.up(1492)
	f.check("slow up 1492")
	f.scripts.down("ppp0")
	f.begins("slow down 1492")
	old := f.scripts
	f.start()
	f.scripts.down("ppp0")
	f.write("slow.go", "")
	old.wait(20 * time.Second)
	f.check("slow down 1492", "slow down 1492")
	f.start()
	f.scripts.down("ppp0")
	f.check()
}

// A script of a daemon that was killed ends before the next daemon's begins.
func TestScriptOfAnotherProcess(t *testing.T) {
	const folder = "WEIR_TEST_SCRIPT_FOLDER"
	if dir := os.Getenv(folder); dir != "" { // the daemon that is killed
		f := &scriptFixture{t: t, dir: dir, of: resolve.PPPoE{Name: "ppp0", On: "eth0", Script: filepath.Join(dir, "slow")}}
		f.start()
		f.up(1492)
		f.scripts.wait(time.Minute)
		return
	}
	f := newScriptFixture(t)
	f.of.Script = f.write("slow", "[ $1 = down ] || sleep 1; echo $1 ends >>"+f.dir+"/told")
	other := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestScriptOfAnotherProcess$")
	other.Env = append(os.Environ(), folder+"="+f.dir)
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	f.begins("slow up 1492")
	if err := other.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	other.Wait() //nolint:errcheck // it was killed
	f.start()
	f.scripts.down("ppp0")
	f.check("slow up 1492", "up ends", "slow down 1492", "down ends")
}

// A script of another process that does not end is waited for once.
func TestScriptWithoutEnd(t *testing.T) {
	f := newScriptFixture(t)
	f.scripts.patience = time.Second
	lock, err := filelock.File(rundir.Folder(f.dir).PPPoEScript("ppp0"), filelock.Wait)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	for _, most := range []time.Duration{20 * time.Second, f.scripts.patience} {
		began := time.Now()
		f.up(1492)
		f.check("a up 1492")
		if took := time.Since(began); took > most {
			t.Errorf("it took %v, want at most %v", took, most)
		}
	}
}

// What a script has left running holds nobody up, whatever it writes.
func TestScriptsChild(t *testing.T) {
	f := newScriptFixture(t)
	f.of.Script = f.write("parent", "(sleep 0.3; head -c 200000 /dev/zero; echo child >>"+f.dir+"/told; sleep 20) &")
	began := time.Now()
	f.up(1492)
	f.begins("parent up")
	f.scripts.down("ppp0")
	f.scripts.wait(20 * time.Second)
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
	time.Sleep(2 * time.Second)
	f.check("parent up 1492", "parent down 1492", "child", "child")
}
