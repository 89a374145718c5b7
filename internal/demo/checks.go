package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"weir/internal/fw/view"
	"weir/internal/lab"
)

// checks tries everything that the gateway is for.
func (g *gateway) checks(ctx context.Context) error {
	for _, check := range []struct {
		what string
		try  func(context.Context) (string, error)
	}{
		{"a host of the LAN pings the internet", g.pings},
		{"a download through NAT", func(ctx context.Context) (string, error) { return g.download(ctx, false) }},
		{"a download through NAT, IPv6", func(ctx context.Context) (string, error) { return g.download(ctx, true) }},
		{"the server in the LAN can be reached by the port forward", g.portForward},
		{"the internet cannot reach the gateway's ssh", g.forbiddenIn},
		{"the LAN cannot use telnet", g.forbiddenOut},
		{"packets go on without the daemon", g.withoutDaemon},
	} {
		found, err := within(ctx, check.try)
		if ctx.Err() != nil || err != nil && interrupted(ctx) {
			return ctx.Err()
		}
		if err != nil {
			fmt.Fprintf(g.Stdout, "  FAIL  %s\n", check.what)
			return fmt.Errorf("%s: %w", check.what, err)
		}
		fmt.Fprintf(g.Stdout, "  ok    %s: %s\n", check.what, found)
	}
	return g.printStates(ctx)
}

// checkTime is the limit for one check. A check that hangs has failed.
const checkTime = 20 * time.Second

func within(ctx context.Context, try func(context.Context) (string, error)) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	found, err := try(ctx)
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w (%w)", ctx.Err(), err)
	}
	return found, err
}

func (g *gateway) pings(ctx context.Context) (string, error) {
	for _, ipv6 := range []bool{false, true} {
		to := g.lab.Addr(lab.WAN, "eth0", ipv6).String()
		if _, err := g.lab.Run(ctx, lab.LAN, "ping", "-n", "-c", "3", "-i", "0.2", "-W", "2", to); err != nil {
			return "", err
		}
	}
	return "IPv4 and IPv6, 3 of 3 answered each", nil
}

// transfer is what iperf3 reports in JSON, at either end.
type transfer struct {
	Start struct {
		Accepted struct{ Host string } `json:"accepted_connection"`
	}
	End struct {
		Received struct {
			Bytes float64 `json:"bytes"`
			Rate  float64 `json:"bits_per_second"`
		} `json:"sum_received"`
	}
}

// iperf runs an iperf3 server in one host and a client in another, and returns both
// reports. The server sends if download is set.
func (g *gateway) iperf(ctx context.Context, server string, port uint16, client string, args ...string) (*transfer, string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// If iperf3 is killed, its temporary file goes with the folder.
	temporary := "TMPDIR=" + g.folder
	cmd := exec.CommandContext(ctx, "env", temporary, "iperf3", "-s", "-1", "-J", "-p", fmt.Sprint(port))
	var report bytes.Buffer
	cmd.Stdout = &report
	if err := g.lab.Start(server, cmd); err != nil {
		return nil, "", err
	}
	err := g.lab.AwaitListener(ctx, server, port)
	var said []byte
	if err == nil {
		said, err = g.lab.Run(ctx, client, "env", append([]string{temporary, "iperf3", "-J", "-t", "1"}, args...)...)
		err = withReport(err, said)
	}
	if err != nil {
		cancel()
		cmd.Wait() //nolint:errcheck // the client's error says more
		return nil, "", err
	}
	if err := cmd.Wait(); err != nil {
		return nil, "", fmt.Errorf("iperf3's server: %w", withReport(err, report.Bytes()))
	}
	var served, sent transfer
	if err := errors.Join(json.Unmarshal(report.Bytes(), &served), json.Unmarshal(said, &sent)); err != nil {
		return nil, "", fmt.Errorf("read iperf3's report: %w", err)
	}
	if sent.End.Received.Bytes == 0 {
		return nil, "", errors.New("iperf3 received nothing")
	}
	return &sent, served.Start.Accepted.Host, nil
}

// withReport adds iperf3's own error, which is in its JSON.
func withReport(err error, said []byte) error {
	var report struct{ Error string }
	if err != nil && json.Unmarshal(said, &report) == nil && report.Error != "" {
		return fmt.Errorf("%w: %s", err, report.Error)
	}
	return err
}

func (g *gateway) download(ctx context.Context, ipv6 bool) (string, error) {
	to := g.lab.Addr(lab.WAN, "eth0", ipv6).String()
	own := g.lab.Addr(lab.FW, "wan0", ipv6).String()
	got, seen, err := g.iperf(ctx, lab.WAN, 5201, lab.LAN, "-R", "-c", to)
	if err != nil {
		return "", err
	}
	if seen != own {
		return "", fmt.Errorf("the server saw %s, not the gateway's %s", seen, own)
	}
	return fmt.Sprintf("%.1f Gbit/s, the server saw the gateway's %s", got.End.Received.Rate/1e9, seen), nil
}

func (g *gateway) portForward(ctx context.Context) (string, error) {
	own := g.lab.Addr(lab.FW, "wan0", false).String()
	client := g.lab.Addr(lab.WAN, "eth0", false).String()
	got, seen, err := g.iperf(ctx, lab.LAN, 80, lab.WAN, "-c", own, "-p", "8080")
	if err != nil {
		return "", err
	}
	if seen != client {
		return "", fmt.Errorf("the server saw %s, not the client's %s", seen, client)
	}
	return fmt.Sprintf("%s port 8080, %.1f Gbit/s, the server saw %s", own, got.End.Received.Rate/1e9, seen), nil
}

func (g *gateway) forbiddenIn(ctx context.Context) (string, error) {
	own := g.lab.Addr(lab.FW, "wan0", false).String()
	return g.forbidden(ctx, lab.WAN, "http://"+own+":22/", "default")
}

func (g *gateway) forbiddenOut(ctx context.Context) (string, error) {
	to := g.lab.Addr(lab.WAN, "eth0", false).String()
	return g.forbidden(ctx, lab.LAN, "http://"+to+":23/", "telnet")
}

// curlTimeout is curl's exit status after a timeout (curl(1)): blocked connections get no
// answer.
const curlTimeout = 28

// forbidden tries a connection that must fail, and checks that the rule with the label
// counted it.
func (g *gateway) forbidden(ctx context.Context, host, url, label string) (string, error) {
	before, err := g.rule(ctx, label)
	if err != nil {
		return "", err
	}
	_, err = g.lab.Run(ctx, host, "curl", "-sS", "--connect-timeout", "1", url)
	var exit *exec.ExitError
	if err == nil || !errors.As(err, &exit) || exit.ExitCode() != curlTimeout {
		return "", fmt.Errorf("curl %s should have timed out: %w", url, err)
	}
	after, err := g.rule(ctx, label)
	if err != nil {
		return "", err
	}
	if after.Packets <= before.Packets {
		return "", fmt.Errorf("no packet was counted under %s", after.Text)
	}
	return fmt.Sprintf("blocked, counted under rule %d: %s", after.Nr, after.Text), nil
}

// rule returns the rule with a label, as weir rules --json shows it.
func (g *gateway) rule(ctx context.Context, label string) (*view.Rule, error) {
	out, err := g.weir(ctx, "rules", "--json").Output()
	if err != nil {
		return nil, fmt.Errorf("weir rules: %w", err)
	}
	var rules []view.Rule
	if err := json.Unmarshal(out, &rules); err != nil {
		return nil, fmt.Errorf("read weir rules --json: %w", err)
	}
	for i := range rules {
		if rules[i].Label == label {
			return &rules[i], nil
		}
	}
	return nil, fmt.Errorf("no rule with label %s", label)
}

// withoutDaemon kills the daemon with SIGKILL and pings. Then a new daemon takes over.
func (g *gateway) withoutDaemon(ctx context.Context) (string, error) {
	if err := g.daemon.Process.Kill(); err != nil {
		return "", fmt.Errorf("kill the daemon: %w", err)
	}
	<-g.ended
	to := g.lab.Addr(lab.WAN, "eth0", false).String()
	if _, err := g.lab.Run(ctx, lab.LAN, "ping", "-n", "-c", "20", "-i", "0.02", "-W", "2", to); err != nil {
		return "", err
	}
	return "after kill -9, 20 of 20 pings answered", nil
}

func (g *gateway) printStates(ctx context.Context) error {
	out, err := g.weir(ctx, "states").Output()
	if err != nil {
		return fmt.Errorf("weir states: %w", err)
	}
	if len(bytes.TrimSpace(out)) == 0 {
		return errors.New("weir states shows none after all this")
	}
	fmt.Fprintf(g.Stdout, "  the connections that weir knows (weir states):\n")
	for line := range strings.Lines(string(out)) {
		fmt.Fprintf(g.Stdout, "    %s", line)
	}
	return nil
}
