package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/fw/rundir"
	"weir/internal/vpn/key"
	"weir/pf/resolve"
)

// A name of both kinds of tunnels is not taken for one of them, --on tells which is meant, and errors of a summary are told.
func TestSummaryNames(t *testing.T) {
	folder := rundir.Folder(t.TempDir())
	write := func(path, text string) string {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	near, far := key.NewPrivate(), key.NewPrivate()
	psk := write(filepath.Join(t.TempDir(), "psk"), "a preshared key of a test\n")
	private := filepath.Join(t.TempDir(), "key")
	if err := key.WriteFile(private, near); err != nil {
		t.Fatal(err)
	}
	tunnels := resolve.Tunnels{
		WireGuard: []resolve.WireGuard{{Name: "wg0", KeyFile: private, Peers: []resolve.Peer{{Name: "branch", Key: far.Public().String()}, {Name: "other", Key: far.Public().String()}}}},
		IKEv2:     []resolve.IKEv2{{Name: "branch", PSKFile: psk, DstID: "far", SrcID: "near"}, {Name: "ipsec1", PSKFile: psk, DstID: "far", SrcID: "near"}},
	}
	text, err := json.Marshal(&tunnels)
	if err != nil {
		t.Fatal(err)
	}
	write(folder.Tunnels(), string(text))
	for _, c := range []struct{ on, name, want, fault string }{
		{"", "branch", "", "name one with --on branch or --on wg0"},
		{"wg0", "branch", `"body"`, ""}, {"branch", "branch", `"ikev2"`, ""}, {"", "ipsec1", `"ikev2"`, ""}, {"", "other", `"body"`, ""},
		{"wg1", "branch", "", "has a peer branch"}, {"wg0", "ipsec1", "", "has a peer ipsec1"},
	} {
		got, err := writeSummary(folder, c.on, c.name, time.Now())
		if c.fault == "" && (err != nil || !strings.Contains(string(got), c.want)) || c.fault != "" && (err == nil || !strings.Contains(err.Error(), c.fault)) {
			t.Errorf("%s on %q: %s, %v", c.name, c.on, got, err)
		}
	}
	site, err := writeSummary(folder, "", "ipsec1", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	compare := func(text, on string, args ...string) string {
		t.Helper()
		all, err := compareText(folder, []byte(text), "file", on, args)
		if err != nil {
			return err.Error()
		}
		return all[0].Answer
	}
	own, err := writeSummary(folder, "wg0", "branch", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for got, want := range map[string]string{
		"WireGuard without a name: " + compare(string(own), ""):                                         "that of this end",
		"WireGuard with a name: " + compare(string(own), "wg0", "branch"):                               "that of this end",
		"IPsec without a name: " + compare(string(site), ""):                                            "that of this end",
		compare(strings.Replace(string(site), `"weir_vpn_summary": 1`, `"weir_vpn_summary": 2`, 1), ""): "another version of weir",
		compare("{}", ""):                         "no summary of weir",
		compare(string(site), "", "ipsec1"):       "that of this end",
		compare(string(site), "ipsec1", "ipsec1"): "that of this end",
		compare(string(site), "wg0", "branch"):    "branch is not on wg0",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("not %q: %q", want, got)
		}
	}
}
