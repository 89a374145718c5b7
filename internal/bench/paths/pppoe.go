package paths

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/vishvananda/netlink"

	"weir/examples"
	"weir/internal/bench/testbed"
	"weir/internal/bench/traffic"
	"weir/internal/lab"
	"weir/internal/pppoe/ac"
	"weir/internal/pppoe/ppp"
	"weir/internal/pppoe/wire"
)

// Addresses in the session: the concentrator's, and the firewall's.
var (
	sessionPeer = netip.MustParseAddr("192.0.2.1")
	sessionAddr = netip.MustParseAddr("192.0.2.2")
)

const (
	sessionDevice = "ppp0"
	sessionUser   = "bench"
	sessionSecret = "only-in-this-lab"
	// packets of 1,500 bytes (RFC 4638), so that frames of all sizes fit
	sessionMTU = 1500
	carrierMTU = 1508
	// sessionStart is how long a session may take.
	sessionStart = 20 * time.Second
)

// startSession runs weir with a PPPoE session to a concentrator at the far end. The session is
// weir's own client's. Its packets are the traffic's.
func startSession(o WeirOptions) func(context.Context, *traffic.Setup) (func() error, error) {
	return func(ctx context.Context, w *traffic.Setup) (_ func() error, err error) {
		var undo UndoList
		defer func() {
			if err != nil {
				err = errors.Join(err, undo.Run())
			}
		}()
		if err := raiseMTU(w.Testbed, &undo); err != nil {
			return nil, err
		}
		if _, err := startConcentrator(w.Testbed, &undo); err != nil {
			return nil, err
		}
		rules, err := sessionRules(w)
		if err != nil {
			return nil, err
		}
		stop, err := StartWeir(ctx, w.Testbed, o.spread()+rules, o)
		if err != nil {
			return nil, err
		}
		undo.Add(stop)
		if w.Session, err = awaitSession(ctx, w.Testbed); err != nil {
			return nil, err
		}
		w.SessionAddr = sessionAddr
		targets := netip.PrefixFrom(testbed.TargetNet.Addr(false), 15)
		if err := w.Testbed.Lab.AddRoute(lab.FW, sessionDevice, targets, netip.Addr{}); err != nil {
			return nil, err
		}
		return undo.Run, nil
	}
}

// bareSession is the number of a session that nobody has made.
const bareSession = 0x1234

// startRedirectSession attaches the bare redirect that puts a session in front of frames for the far wire, and takes it
// off those from there: what a session costs at least.
func startRedirectSession(program string) func(context.Context, *traffic.Setup) (func() error, error) {
	return func(ctx context.Context, w *traffic.Setup) (func() error, error) {
		var undo UndoList
		if err := raiseMTU(w.Testbed, &undo); err != nil {
			return nil, errors.Join(err, undo.Run())
		}
		w.Session, w.SessionAddr = bareSession, sessionAddr
		stop, err := startRedirect(program)(ctx, w)
		if err != nil {
			return nil, errors.Join(err, undo.Run())
		}
		undo.Add(stop)
		return undo.Run, nil
	}
}

// raiseMTU makes room for the session's header on the far wire.
func raiseMTU(b *testbed.Testbed, undo *UndoList) error {
	for _, p := range []testbed.Place{testbed.FarEnd, testbed.FarDoor} {
		set := func(mtu int) error {
			return b.Lab.Do(p.Host, func() error {
				link, err := netlink.LinkByName(p.Device)
				if err == nil {
					err = netlink.LinkSetMTU(link, mtu)
				}
				if err != nil {
					return fmt.Errorf("MTU %d of %s: %w", mtu, p.Device, err)
				}
				return nil
			})
		}
		undo.Add(func() error { return set(sessionMTU) })
		if err := set(carrierMTU); err != nil {
			return err
		}
	}
	return nil
}

// startConcentrator serves sessions at the far end. Their packets it leaves to the sinks there.
func startConcentrator(b *testbed.Testbed, undo *UndoList) (*ac.Running, error) {
	var w *wire.Wire
	err := b.Lab.Do(testbed.FarEnd.Host, func() (err error) {
		w, err = wire.Open(testbed.FarEnd.Device, 0)
		return err
	})
	if err != nil {
		return nil, err
	}
	server := ac.NewRunning(ac.Config{
		MAC: w.MAC(), Name: "bench", MaxPayload: sessionMTU, Random: rand.Reader, Local: sessionPeer, First: sessionAddr,
		Ask: ppp.Ask{Methods: []ppp.Method{ppp.ByCHAP}, Name: "bench",
			Secret: func(name string) (ppp.Secret, bool) { return ppp.NewSecret(sessionSecret), name == sessionUser }},
	})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx, w) }()
	undo.Add(func() error {
		cancel()
		err := <-ended
		w.Close()
		return err
	})
	return server, nil
}

// sessionRules returns the rules of the other paths with the session in place of the far door.
func sessionRules(w *traffic.Setup) (string, error) {
	password := filepath.Join(w.Testbed.Folder, "password")
	if err := os.WriteFile(password, []byte(sessionSecret+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("write the password of the session: %w", err)
	}
	return withSession(weirRules(w.Case), password), nil
}

// withSession returns examples/gateway.conf, or what a case has made of it, with a session.
func withSession(rules, password string) string {
	const wan = "wan = \"wan0\"\n"
	if strings.Count(rules, wan) != 1 {
		panic("examples/gateway.conf has no line " + strconv.Quote(wan)) // a test checks for it
	}
	statement := fmt.Sprintf("pppoe %s on wan0 user %q password file %q mtu %d\n", sessionDevice, sessionUser, password, sessionMTU)
	return strings.Replace(rules, wan, fmt.Sprintf("wan = %q\n%s", sessionDevice, statement), 1)
}

// SessionConf returns the rules with a session, for reports.
func SessionConf() string { return withSession(examples.GatewayConf, "/etc/weir/password") }

// awaitSession waits until the session is up, and XDP takes its packets. It returns its number.
func awaitSession(ctx context.Context, b *testbed.Testbed) (number uint16, err error) {
	deadline := time.Now().Add(sessionStart)
	for {
		number, why := sessionNumber(ctx, b)
		if number != 0 {
			return number, nil
		}
		if time.Now().After(deadline) {
			return 0, fmt.Errorf("there is no session after %v: %s", sessionStart, why)
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// sessionNumber returns the number of the session that is up, or why there is none.
func sessionNumber(ctx context.Context, b *testbed.Testbed) (number uint16, why string) {
	var sessions []struct{ State, Session, Why string }
	if err := askWeir(ctx, b, &sessions, "pppoe", "status"); err != nil {
		return 0, err.Error()
	}
	if len(sessions) != 1 || sessions[0].State != "up" {
		return 0, fmt.Sprintf("%+v", sessions)
	}
	var interfaces struct {
		Interfaces []struct{ Name, Hook, Why string }
	}
	if err := askWeir(ctx, b, &interfaces, "interfaces"); err != nil {
		return 0, err.Error()
	}
	for _, i := range interfaces.Interfaces {
		if i.Name != sessionDevice {
			continue
		}
		n, err := strconv.ParseUint(sessions[0].Session, 0, 16)
		if err != nil {
			return 0, err.Error()
		}
		if i.Hook == "xdp" {
			return uint16(n), ""
		}
		return 0, fmt.Sprintf("%s has hook %s: %s", i.Name, i.Hook, i.Why)
	}
	return 0, sessionDevice + " is not among the interfaces"
}

// askWeir decodes what a command of weir prints as JSON.
func askWeir(ctx context.Context, b *testbed.Testbed, into any, args ...string) error {
	args = append(args, "--json", "--netns", b.Firewall())
	out, err := exec.CommandContext(ctx, b.Program, args...).Output()
	if err == nil {
		err = json.Unmarshal(out, into)
	}
	if err != nil {
		return fmt.Errorf("weir %s: %w", strings.Join(args, " "), err)
	}
	return nil
}
