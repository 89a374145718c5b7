package target

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/internal/host/tune/db"
	"weir/internal/testenv"
)

// cases have one section each in every golden file.
var cases = []struct {
	name string
	in   Inputs
}{
	{"forwarder", Inputs{Role: db.Forwarder}},
	{"igb-pppoe", Inputs{Role: db.Forwarder, Driver: "igb", Cores: 4, Ports: 2, PPPoE: true}},
	{"endpoint", Inputs{Role: db.Endpoint, Link: 10_000_000_000, RTT: 80 * time.Millisecond, Burst: 250, Accept: 128}},
}

// records are read once for all tests.
var records = sync.OnceValues(db.Load)

func write(t *testing.T, target Target, in *Inputs) string {
	t.Helper()
	d, err := records()
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewPlan(d, target, in)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := p.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	for _, s := range p.Settings {
		if s.Live && s.Grade == db.Folklore && s.Keys[0] != "gateway_enable" {
			t.Errorf("%s: only a guide says %s=%s, and it takes effect", target.Name, s.Keys[0], s.Value)
		}
	}
	return b.String()
}

// names returns the names of the known targets.
func names(t *testing.T) (names []string) {
	t.Helper()
	all, err := load()
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range all.targets {
		names = append(names, one.Name)
	}
	return names
}

// TestGolden checks what is written for each target, and for two unknown versions.
func TestGolden(t *testing.T) {
	all := append(names(t), "freebsd-16", "pfsense-2.9")
	for _, name := range all {
		file := filepath.Join("testdata", name+".txtar")
		if _, err := os.Stat(file); err != nil && testenv.Updating() {
			if err := os.WriteFile(file, nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	seen := 0
	testenv.EachGolden(t, "testdata/*.txtar", func(t *testing.T, g *testenv.Golden) {
		seen++
		target, err := Find(filepath.Base(strings.TrimPrefix(t.Name(), "TestGolden/")))
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range cases {
			g.Check(t, c.name, write(t, target, &c.in))
		}
	})
	if seen != len(all) {
		t.Errorf("%d golden files for %d targets", seen, len(all))
	}
}

// effective returns the lines that are not comments.
func effective(text string) []string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			lines = append(lines, line)
		}
	}
	return lines
}

// TestProcessLimits checks that the list for pfSense 2.4.5 and igb is written only for
// pfSense 2.4.5.
func TestProcessLimits(t *testing.T) {
	in := &Inputs{Role: db.Forwarder, Driver: "igb"}
	old, err := Find("pfsense-2.4.5")
	if err != nil {
		t.Fatal(err)
	}
	if text := write(t, old, in); !strings.Contains(text, "\nhw.igb.rx_process_limit=\"-1\"\n") || strings.Contains(text, "iflib") {
		t.Errorf("pfSense 2.4.5:\n%s", text)
	}
	for _, name := range names(t) {
		target, err := Find(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range []string{"process_limit", "license_ack"} {
			if name != old.Name && strings.Contains(write(t, target, in), word) {
				t.Errorf("%s: %s", name, word)
			}
		}
	}
}

// TestRedirect checks that redirect=0 is offered everywhere, with its mechanism and
// grade. On OPNsense it is the default.
func TestRedirect(t *testing.T) {
	for name, want := range map[string]bool{"freebsd-14": true, "pfsense-2.7": true, "opnsense-25.7": false} {
		target, err := Find(name)
		if err != nil {
			t.Fatal(err)
		}
		text := write(t, target, &Inputs{Role: db.Forwarder})
		if !strings.Contains(text, "ip_tryforward()") || !strings.Contains(text, "C (vendor or standard): sys/netinet/ip_input.c") {
			t.Errorf("%s: no mechanism:\n%s", name, text)
		}
		for _, key := range []string{"net.inet.ip.redirect=0", "net.inet6.ip6.redirect=0"} {
			if slices.Contains(effective(text), key) != want {
				t.Errorf("%s: %s is there: %v", name, key, !want)
			}
		}
	}
}

// TestOwnReasons checks that a system has its own reasons if its record differs from
// FreeBSD's. What holds for FreeBSD 12 and newer must not appear for pfSense 2.4.5, which
// is built on 11.3.
func TestOwnReasons(t *testing.T) {
	for name, want := range map[string]string{"pfsense-2.4.5": "after pfSense 2.4.4: ip_tryforward() ran", "freebsd-13": "In FreeBSD 12 and 13"} {
		target, err := Find(name)
		if err != nil {
			t.Fatal(err)
		}
		text := write(t, target, &Inputs{Role: db.Forwarder})
		if !strings.Contains(text, want) || name != "freebsd-13" && strings.Contains(text, "FreeBSD 12 and 13") {
			t.Errorf("%s: no %q:\n%s", name, want, text)
		}
	}
}

// TestToTry checks that settings without effect on the cards, or that need more than a
// line, are only proposed for a try. So are fewer queues than the driver's own number.
func TestToTry(t *testing.T) {
	for _, c := range []struct {
		target, driver, line string
		live                 bool
	}{
		{"pfsense-2.8", "igb", `dev.igb.0.iflib.override_nrxqs="2"`, false},
		{"opnsense-25.7", "ix", `dev.ix.0.iflib.override_nrxqs="2"`, false},
		{"freebsd-14", "igb", "dev.igb.0.iflib.tx_abdicate=1", false},
		{"freebsd-14", "ix", "dev.ix.0.iflib.tx_abdicate=1", true},
		{"freebsd-14", "ixl", "dev.ixl.1.iflib.tx_abdicate=1", true},
		{"opnsense-25.7", "igc", "dev.igc.0.iflib.tx_abdicate=1", false},
		{"freebsd-14", "ixv", "dev.ixv.0.iflib.tx_abdicate=1", false},
		{"freebsd-14", "igb", `pf_enable="YES"`, false},
		{"freebsd-14", "igb", `gateway_enable="YES"`, true},
	} {
		target, err := Find(c.target)
		if err != nil {
			t.Fatal(err)
		}
		text := write(t, target, &Inputs{Role: db.Forwarder, Driver: c.driver, Cores: 4, Ports: 2})
		if slices.Contains(effective(text), c.line) != c.live || !strings.Contains(text, c.line) {
			t.Errorf("%s, %s: %s is in force: %v", c.target, c.driver, c.line, !c.live)
		}
	}
}

// TestLiveLinesAreProven checks, for all targets and drivers, that what takes effect has
// evidence for the driver's cards. A key that names the driver needs evidence that names
// it too.
func TestLiveLinesAreProven(t *testing.T) {
	all, err := load()
	if err != nil {
		t.Fatal(err)
	}
	d, err := records()
	if err != nil {
		t.Fatal(err)
	}
	live := 0
	for _, one := range all.targets {
		for _, driver := range append(slices.Sorted(maps.Keys(all.drivers)), "", "re", "cxl", "mce") {
			for _, in := range []Inputs{
				{Role: db.Forwarder, Driver: driver, Cores: 8, Ports: 2, PPPoE: true},
				{Role: db.Forwarder, Driver: driver, Cores: 4, Ports: 4},
				{Role: db.Forwarder, Driver: driver, Ports: 4},
				{Role: db.Endpoint, Driver: driver, Link: 10_000_000_000, RTT: 80 * time.Millisecond, Burst: 250, Accept: 128},
			} {
				p, err := NewPlan(d, one, &in)
				if err != nil {
					t.Fatal(err)
				}
				for _, s := range p.Settings {
					if !s.Live || s.Keys[0] == "gateway_enable" { // a router is none without it
						continue
					}
					live++
					proven := slices.ContainsFunc(s.Evidence, func(e db.Evidence) bool {
						ofDriver := driver != "" && strings.Contains(s.Keys[0], "."+driver+".")
						return e.Grade < db.Folklore && !e.Unproven && (slices.Contains(e.Drivers, driver) || !ofDriver && (driver == "" || len(e.Drivers) == 0))
					})
					if !proven || s.Grade == "" || s.Grade == db.Folklore {
						t.Errorf("%s, %s: %s=%s takes effect, with grade %q and %v", one.Name, driver, s.Keys[0], s.Value, s.Grade, s.Evidence)
					}
				}
			}
		}
	}
	if live < 100 {
		t.Errorf("%d live lines", live)
	}
}

// TestNamed checks that a setting without proven effect takes effect if it is asked for by
// name, but not what belongs in a line of the user's.
func TestNamed(t *testing.T) {
	d, err := records()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		target, key, line string
		fails             bool
	}{
		{"opnsense-25.7", "dev.igc.0.iflib.tx_abdicate", "dev.igc.1.iflib.tx_abdicate=1", false},
		{"opnsense-25.7", "dev.igc.N.iflib.override_nrxqs", `dev.igc.0.iflib.override_nrxqs="2"`, false},
		{"freebsd-14", "pf_enable", `pf_enable="YES"`, false},
		{"freebsd-14", "ifconfig_igc0", "", false},
		{"pfsense-2.9", "dev.igc.0.iflib.tx_abdicate", "", false}, // unknown version
		{"freebsd-14", "dev.ix.0.iflib.tx_abdicate", "", true},
		{"freebsd-14", "net.inet.tcp.tso", "", true},
	} {
		one, err := Find(c.target)
		if err != nil {
			t.Fatal(err)
		}
		p, err := NewPlan(d, one, &Inputs{Role: db.Forwarder, Driver: "igc", Cores: 4, Ports: 2}, c.key)
		if c.fails != errors.Is(err, ErrNotAdvised) || err != nil && !c.fails {
			t.Errorf("%s, %s: %v", c.target, c.key, err)
			continue
		} else if err != nil {
			continue
		}
		lines := effective(p.text)
		if c.line != "" && !slices.Contains(lines, c.line) {
			t.Errorf("%s, %s: no %s in %q", c.target, c.key, c.line, lines)
		}
		if c.line == "" && slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, c.key) }) {
			t.Errorf("%s, %s: takes effect: %q", c.target, c.key, lines)
		}
	}
}

// TestNetisrThreads checks that netisr's threads are only to try with PPPoE: their effect was
// measured in another kernel. Who asks for them by name gets them.
func TestNetisrThreads(t *testing.T) {
	d, err := records()
	if err != nil {
		t.Fatal(err)
	}
	const line = `net.isr.maxthreads="-1"`
	for _, name := range names(t) {
		one, err := Find(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, keys := range [][]string{nil, {"net.isr.maxthreads"}} {
			p, err := NewPlan(d, one, &Inputs{Role: db.Forwarder, Driver: "igb", Cores: 4, Ports: 2, PPPoE: true}, keys...)
			if err != nil {
				t.Fatal(err)
			}
			if live := slices.Contains(effective(p.text), line); live != (keys != nil) || !strings.Contains(p.text, line) {
				t.Errorf("%s, asked for %v: takes effect: %t", name, keys, live)
			}
		}
	}
}

// TestOtherDrivers checks that keys of iflib(4) are written only for drivers based on it,
// from the version on that has it.
func TestOtherDrivers(t *testing.T) {
	for _, c := range []struct {
		target, driver string
		has            bool
	}{
		{"freebsd-14", "ix", true}, {"freebsd-14", "re", false}, {"freebsd-14", "hn", false}, {"freebsd-14", "bogus", false},
		{"pfsense-2.4.5", "igb", false}, {"pfsense-2.5", "igb", true}, {"pfsense-2.5", "vmx", false}, {"opnsense-24.1", "vmx", true},
		{"opnsense-24.1", "igc", false}, {"opnsense-25.7", "igc", true}, {"freebsd-12", "bnxt", false}, {"freebsd-16", "igb", true},
	} {
		target, err := Find(c.target)
		if err != nil {
			t.Fatal(err)
		}
		text := write(t, target, &Inputs{Role: db.Forwarder, Driver: c.driver, Cores: 4, Ports: 2})
		says := !c.has && c.target != "pfsense-2.4.5" // its FreeBSD has no such keys at all
		if strings.Contains(text, ".iflib.") != c.has || strings.Contains(text, "# Nothing for queues: ") != says {
			t.Errorf("%s, %s: keys of iflib: %v\n%s", c.target, c.driver, !c.has, text)
		}
	}
}

// TestRedirectClaimsNoSpeed checks that, from FreeBSD 14 on, the text does not claim that
// redirect=0 makes IPv4 faster.
func TestRedirectClaimsNoSpeed(t *testing.T) {
	target, err := Find("freebsd-14")
	if err != nil {
		t.Fatal(err)
	}
	text := write(t, target, &Inputs{Role: db.Forwarder})
	if !strings.Contains(text, "From 14 on it runs whenever the host forwards, and this makes nothing faster") {
		t.Errorf("no bound of the mechanism:\n%s", text)
	}
}

// TestUnknownVersion checks that, for an unknown version, all lines are comments.
func TestUnknownVersion(t *testing.T) {
	for _, name := range []string{"freebsd-16", "pfsense-2.9", "opnsense-27.1"} {
		target, err := Find(name)
		if err != nil || target.Base != "" {
			t.Fatalf("%s: %+v, %v", name, target, err)
		}
		for _, c := range cases {
			if lines := effective(write(t, target, &c.in)); len(lines) > 0 {
				t.Errorf("%s: %s: %q", name, c.name, lines)
			}
		}
	}
	for _, name := range []string{"", "openbsd-7", "freebsd", "freebsd-x", "pfsense-2.7-p1"} {
		if got, err := Find(name); err == nil || !strings.Contains(err.Error(), "want freebsd-12, freebsd-13, ") {
			t.Errorf("%q: %+v, %v", name, got, err)
		}
	}
}

// TestOrigins checks that each key that may be written has sources, that each source is a
// commit of a public repository and is used, and that the database has reasons for each
// setting.
func TestOrigins(t *testing.T) {
	known, err := load()
	if err != nil {
		t.Fatal(err)
	}
	d, err := records()
	if err != nil {
		t.Fatal(err)
	}
	commit := regexp.MustCompile(`^([0-9a-f]{40}|r[0-9]{6})$`)
	used := map[string]bool{}
	sourced := maps.Clone(known.keys)
	maps.Copy(sourced, known.drivers)
	for key, names := range sourced {
		for _, name := range names {
			s, there := known.sources[name]
			if !there || !commit.MatchString(s.Commit) || strings.Count(s.Repo, "/") != 1 || s.Path == "" || s.FreeBSD < 10 {
				t.Errorf("%s: source %s: %+v", key, name, s)
			}
			used[name] = true
		}
	}
	for name := range known.sources {
		if !used[name] {
			t.Errorf("no key has the source %s", name)
		}
	}
	written := map[string]bool{}
	for i := range advice {
		a := &advice[i]
		written[a.keyName()] = true
		if first, _ := known.versions(a.keyName()); first == 0 {
			t.Errorf("%s has no source", a.keyName())
		}
		r, err := a.reasons(d, Target{Name: "freebsd-14"})
		if err != nil || r.Rationale+r.Reason == "" {
			t.Fatalf("%s: reasons %+v, %v", a.record, r, err)
		}
		if a.setTo(r, &Inputs{Cores: 1, Ports: 1}) == "" {
			t.Errorf("%s has no value", a.record)
		}
	}
	for key := range known.keys {
		if !written[key] {
			t.Errorf("%s is never written", key)
		}
	}
}

// TestBuffers checks that buffers are twice the product, and their limit an eighth more.
// A short path does not lower values below the defaults.
func TestBuffers(t *testing.T) {
	for _, c := range []struct {
		target string
		rtt    time.Duration
		lines  []string
	}{
		{"freebsd-15", 80 * time.Millisecond, []string{"kern.ipc.maxsockbuf=225005568", "net.inet.tcp.recvbuf_max=200003584", "net.inet.tcp.sendbuf_max=200003584"}},
		{"opnsense-24.7", time.Millisecond, []string{"net.inet.tcp.recvbuf_max=2502656", "net.inet.tcp.sendbuf_max=2502656"}}, // its limit is 4262144
		{"freebsd-14", time.Millisecond, []string{"kern.ipc.maxsockbuf=2818048", "net.inet.tcp.recvbuf_max=2502656", "net.inet.tcp.sendbuf_max=2502656"}},
		{"freebsd-14", 100 * time.Microsecond, nil},
	} {
		target, err := Find(c.target)
		if err != nil {
			t.Fatal(err)
		}
		text := write(t, target, &Inputs{Role: db.Endpoint, Link: 10_000_000_000, RTT: c.rtt})
		if !slices.Equal(effective(text), c.lines) {
			t.Errorf("%s, %v: want %q:\n%s", c.target, c.rtt, c.lines, text)
		}
		if !strings.Contains(text, "# Bandwidth-delay product: 10000000000 bit/s x "+c.rtt.String()+" / 8 = ") {
			t.Errorf("%s: no arithmetic:\n%s", c.target, text)
		}
	}
}

// TestNothing checks that a plan without a setting says why.
func TestNothing(t *testing.T) {
	for role, want := range map[db.Role]string{db.Endpoint: "--link and --rtt", db.Hardening: "no settings of this role"} {
		target, err := Find("freebsd-13")
		if err != nil {
			t.Fatal(err)
		}
		if text := write(t, target, &Inputs{Role: role}); !strings.Contains(text, "# Nothing to set: ") || !strings.Contains(text, want) {
			t.Errorf("%s:\n%s", role, text)
		}
	}
}

// TestTunables checks that settings of the loader are written into its file.
func TestTunables(t *testing.T) {
	d, err := records()
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for i := range advice {
		r, err := advice[i].reasons(d, Target{Name: "freebsd-14"})
		if err != nil {
			t.Fatal(err)
		}
		if r.Tunable {
			seen++
			if advice[i].place != "loader.conf" {
				t.Errorf("%s is written into %s", r.Key, advice[i].place)
			}
		}
	}
	if seen == 0 {
		t.Error("none of them is a tunable")
	}
}

// TestNoSource checks that a key is not written beyond its sources.
func TestNoSource(t *testing.T) {
	d, err := records()
	if err != nil {
		t.Fatal(err)
	}
	known, err := load()
	if err != nil {
		t.Fatal(err)
	}
	for sources, want := range map[string]bool{"uipc_socket-10 sockbuf-13": true, "tuning-15": false, "uipc_socket-10": false} {
		few := *known
		few.keys = map[string][]string{"kern.ipc.soacceptqueue": strings.Fields(sources)}
		p := printer{db: d, known: &few, target: Target{Name: "freebsd-13", Base: "13"}, in: &Inputs{Role: db.Endpoint, Burst: 250, Accept: 128}}
		if err := p.file("sysctl.conf", "sysctl.conf"); err != nil {
			t.Fatal(err)
		}
		text := p.text.String()
		if written := slices.Equal(effective(text), []string{"kern.ipc.soacceptqueue=512"}); written != want ||
			strings.Contains(text, "# Not written: no public source of FreeBSD 13 was found to have kern.ipc.soacceptqueue.\n") == want {
			t.Errorf("%s:\n%s", sources, text)
		}
	}
}
