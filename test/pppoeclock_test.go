package test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/fw/control"
	"weir/internal/fw/rundir"
	"weir/internal/lab"
	"weir/test/lib"
)

// zoneIn writes a time zone in which a time of day comes after a while, and returns its file.
func zoneIn(b *lib.Box, at time.Duration, after time.Duration) string {
	b.Helper()
	now := time.Now().UTC()
	midnight := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.UTC)
	offset := (at - after - now.Sub(midnight)).Round(time.Second)
	if offset < -12*time.Hour {
		offset += 24 * time.Hour
	}
	var file bytes.Buffer
	file.WriteString("TZif")
	file.Write(make([]byte, 16))
	for _, v := range []any{[6]uint32{4: 1, 5: 4}, int32(offset / time.Second), [2]uint8{}, []byte("LAB\x00")} { // one kind of time, named LAB
		binary.Write(&file, binary.BigEndian, v) //nolint:errcheck // it never fails
	}
	path := filepath.Join(b.TempDir(), "zone")
	if err := os.WriteFile(path, file.Bytes(), 0o600); err != nil {
		b.Fatal(err)
	}
	return path
}

//	lan ── lan0 fw wan0 ══ ppp0 in a PPPoE session ══ wan, a concentrator
//
// The session is made anew at the time of day that the rules say, once it is old enough. The clock is the machine's, the time zone one in
// which it is about to be 04:00.
func TestPPPoEReconnectAt(t *testing.T) {
	weir.UnderTCX(t, func(b *lib.Box) {
		p, password := b.Provider(1500)
		b.IP(lab.FW, "route del default", "-6 route del default")
		rules := b.Rules(fmt.Sprintf("pppoe ppp0 on wan0 user me password file %q reconnect at 04:00\npass\n", password))
		daemon := b.WeirRun(rules)
		first := awaitPPPoE(b, control.PPPoEUp)
		p.Await(first.Session)
		daemon.Kill()
		b.Tell("the session is an hour old", func(b *lib.Box) {
			path := rundir.Folder(b.RunFolder()).PPPoE()
			var all map[string]map[string]json.RawMessage
			if err := rundir.ReadJSON(path, &all); err != nil {
				b.Fatal(err)
			}
			since, err := time.Now().Add(-time.Hour).MarshalJSON()
			if err != nil || all["ppp0"]["Since"] == nil {
				b.Fatalf("the record: %v, %s", err, all)
			}
			all["ppp0"]["Since"] = since
			if err := rundir.WriteJSON(path, all); err != nil {
				b.Fatal(err)
			}
		})
		soon := lib.Scaled(15 * time.Second)
		began := time.Now()
		daemon = b.WeirUnder("TZ="+zoneIn(b, 4*time.Hour, soon), "run", "--hook", b.Hook, "-f", rules)
		b.AwaitSaid(daemon, "weir: ready")
		if s := awaitPPPoE(b, control.PPPoEUp); s.Session != first.Session || time.Since(s.Since) < time.Hour {
			b.Fatalf("the session before: %+v, want %s", s, first.Session)
		}
		b.Until(soon+70*time.Second, "the session is another one", func() bool { // the time has a minute of chance in it
			s := pppoeStatus(b)
			return s.State == control.PPPoEUp && s.Session != first.Session && s.IPv4.IsValid()
		})
		took := time.Since(began)
		b.Logf("the session was made anew %v after the start; 04:00 was %v after it", took.Round(time.Second), soon)
		if took < soon-2*time.Second {
			b.Error("that is before its time")
		}
		if log := b.Weir("pppoe", "log"); !strings.Contains(log, "reconnect at 04:00") {
			b.Errorf("the log does not say why:\n%s", log)
		}
		s := pppoeStatus(b)
		p.Await(s.Session)
		if len(p.Sessions()) != 1 || time.Since(s.Since) > time.Minute {
			b.Errorf("the concentrator has %d sessions; weir pppoe status: %+v", len(p.Sessions()), s)
		}
		b.Ping(lab.FW, lib.ProviderPeer, 3)
	})
}
