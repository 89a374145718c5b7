package daemon

import (
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // a machine may have no zones

	"weir/internal/fw/control"
	"weir/internal/pppoe/client"
	"weir/pf/resolve"
)

// A time of day comes once a day, also on days with 23 or 25 hours, and within a minute.
func TestNextRenewal(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ at, now, want string }{
		{"04:00", "2026-01-02 03:59", "2026-01-02 04:00"},
		{"04:00", "2026-01-02 04:00", "2026-01-03 04:00"},
		{"23:59", "2026-12-31 23:59", "2027-01-01 23:59"},
		{"04:00", "2026-03-28 12:00", "2026-03-29 04:00"}, // the clock goes forward at 2:00
		{"04:00", "2026-10-24 12:00", "2026-10-25 04:00"}, // and back at 3:00
		{"02:30", "2026-03-28 12:00", "2026-03-29 03:30"}, // there is no such time
	} {
		now, err := time.ParseInLocation("2006-01-02 15:04", test.now, berlin)
		if err != nil {
			t.Fatal(err)
		}
		got := nextRenewal(test.at, now)
		if text := got.Format("2006-01-02 15:04"); text != test.want || got.Sub(now) <= 0 {
			t.Errorf("%s after %s: %s, want %s", test.at, test.now, got, test.want)
		}
	}
}

// A session that is up is renewed when its time has come; one that has just come up is not, nor one
// whose time was long ago.
func TestRenew(t *testing.T) {
	due := time.Now()
	for _, test := range []struct {
		name      string
		state     control.PPPoEState
		age, late time.Duration
		want      bool
	}{
		{"up", control.PPPoEUp, time.Hour, time.Second, true},
		{"just up", control.PPPoEUp, time.Minute, time.Second, false},
		{"too late", control.PPPoEUp, 10 * time.Hour, time.Hour, false},
		{"not yet", control.PPPoEUp, time.Hour, -time.Second, false},
		{"waiting", control.PPPoEWaiting, time.Hour, time.Second, false},
	} {
		now := due.Add(test.late)
		s := &dial{
			of: resolve.PPPoE{Renew: "04:00"}, state: test.state, since: now.Add(-test.age), renewAt: due,
			running: &session{commands: make(chan client.Command, 1)},
		}
		s.renew(now)
		if got := len(s.running.commands) == 1; got != test.want {
			t.Errorf("%s: renewed %v, want %v", test.name, got, test.want)
		}
		if test.want {
			s.renewAt = due
			s.renew(now) // the first command is still there
			<-s.running.commands
			s.renew(now.Add(time.Second))
			if len(s.running.commands) != 1 {
				t.Errorf("%s: a command that found no room is not repeated", test.name)
			}
		}
	}
}

// systemd-resolved is told by its program. This one writes down what it is asked.
func TestResolved(t *testing.T) {
	dir := t.TempDir()
	script := "#!/bin/sh\necho \"$@\" >>" + filepath.Join(dir, "said") + "\n"
	if err := os.WriteFile(filepath.Join(dir, "resolvectl"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	s := &dial{of: resolve.PPPoE{Name: "ppp0", Resolved: true}, dialler: &dialler{box: &box{}}, state: control.PPPoEUp}
	s.session.DNS = []netip.Addr{netip.MustParseAddr("192.0.2.53")}
	s.prefix = &delegation{status: control.PPPoEPrefix{DNS: []netip.Addr{netip.MustParseAddr("2001:db8::53")}}}
	s.followResolved()
	s.followResolved()
	s.state = control.PPPoEWaiting
	s.followResolved()
	said, err := os.ReadFile(filepath.Join(dir, "said"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"dns ppp0 192.0.2.53 2001:db8::53", "domain ppp0 ~.", "default-route ppp0 yes", "revert ppp0"}
	if got := strings.Split(strings.TrimSpace(string(said)), "\n"); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("said %q, want %q", got, want)
	}
}

// What systemd-resolved could not be told is told again after a pause, until it is understood. The log has
// each error once.
func TestResolvedAgain(t *testing.T) {
	dir := t.TempDir()
	script := "#!/bin/sh\necho \"$@\" >>" + filepath.Join(dir, "said") + "\n[ -e " + filepath.Join(dir, "works") + " ]\n"
	if err := os.WriteFile(filepath.Join(dir, "resolvectl"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	var log strings.Builder
	b := &box{cfg: &Config{Log: slog.New(slog.NewTextHandler(&log, nil))}}
	s := &dial{of: resolve.PPPoE{Name: "ppp0", Resolved: true}, dialler: &dialler{box: b}, state: control.PPPoEUp}
	s.session.DNS = []netip.Addr{netip.MustParseAddr("192.0.2.53")}
	s.followResolved()
	s.followResolved() // too soon
	s.untold.again = time.Now()
	s.followResolved()
	if err := os.WriteFile(filepath.Join(dir, "works"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s.untold.again = time.Now()
	s.followResolved()
	s.followResolved()
	said, err := os.ReadFile(filepath.Join(dir, "said"))
	if err != nil {
		t.Fatal(err)
	}
	dns := "dns ppp0 192.0.2.53\n"
	if want := dns + dns + dns + "domain ppp0 ~.\ndefault-route ppp0 yes\n"; string(said) != want {
		t.Errorf("said %q, want %q", said, want)
	}
	if n := strings.Count(log.String(), "\n"); n != 1 {
		t.Errorf("the log has %d lines:\n%s", n, log.String())
	}
}

// What has no room on the interface below is not asked for.
func TestRoomFor(t *testing.T) {
	for _, c := range []struct {
		wanted uint16
		mtu    int
		want   uint16
		says   bool
	}{{0, 1500, 0, false}, {1492, 1500, 1492, false}, {1492, 1400, 1492, false}, {1500, 1508, 1500, false}, {1500, 1500, 1492, true}, {1500, 1504, 1496, true}, {1500, 1400, 1492, true}} {
		got, why := roomFor(c.wanted, &net.Interface{Name: "wan0", MTU: c.mtu})
		if got != c.want || (why != "") != c.says {
			t.Errorf("%d on %d: %d, %q", c.wanted, c.mtu, got, why)
		}
	}
}
