package test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"weir/internal/lab"
	"weir/internal/stats"
)

//	fw: weir tune apply --measure        a lab of weir bench: lan ── fw ── wan
//
// Changes that the lab can see are measured there, and kept only if they help. Changes
// that it cannot see are set if they were named. A revert removes all traces of both.
// Everything else is left alone.
func TestTuneKeepsWhatHelps(t *testing.T) {
	b := weir.Box(t, "tcx")
	read := func(key string) string {
		return strings.TrimSpace(b.Run(lab.FW, "cat", "/proc/sys/"+strings.ReplaceAll(key, ".", "/")))
	}
	const demux, probing, redirects = "net.ipv4.ip_early_demux", "net.ipv4.tcp_mtu_probing", "net.ipv4.conf.all.accept_redirects"
	b.Sysctl(lab.FW, "net/ipv4/tcp_mtu_probing", "0")
	b.Sysctl(lab.FW, "net/ipv4/conf/all/accept_redirects", "1")
	b.Sysctl(lab.FW, "net/ipv4/ip_early_demux", "1")
	measure := func(args ...string) map[string]finding {
		p := b.WeirCommand(append([]string{"tune", "apply", "--measure", "--rounds", "3", "--json"}, args...)...)
		said := p.Wait(3*time.Minute, 0)
		var found []finding
		if err := json.Unmarshal([]byte(said[strings.Index(said, "["):]), &found); err != nil {
			t.Fatalf("%v in:\n%s", err, said)
		}
		all := map[string]finding{}
		for _, f := range found {
			all[f.Key] = f
		}
		return all
	}

	found := measure(demux, probing)
	f := found[demux]
	if f.Effect == "" || f.Effect == "not measurable here" || len(f.Before) != 6 || len(f.After) != 3 || min(f.Before.Mean(), f.After.Mean()) < 1000 || f.Control == nil {
		t.Errorf("%s: %+v", demux, f)
	}
	if want := map[bool]string{true: "0", false: "1"}[f.Kept]; read(demux) != want || f.Kept != (f.Effect == "helps") {
		t.Errorf("%s is %s; %+v", demux, read(demux), f)
	}
	if f := found[probing]; !f.Kept || f.Effect != "not measurable here" || read(probing) != "1" || !strings.Contains(f.Why, "end on the host") {
		t.Errorf("%s is %s; %+v", probing, read(probing), f)
	}
	b.Weir("tune", "revert")
	if read(demux) != "1" || read(probing) != "0" {
		t.Errorf("reverted: %s, %s", read(demux), read(probing))
	}

	if f := measure("--role", "hardening")[redirects]; f.Kept || f.Effect != "not measurable here" || read(redirects) != "1" {
		t.Errorf("%s is %s; %+v", redirects, read(redirects), f)
	}
	if said := b.Weir("tune", "status"); !strings.Contains(said, "has set nothing") {
		t.Errorf("status: %s", said)
	}
}

// finding is a change in the output of apply --measure --json.
type finding struct {
	Key, Effect, Why string
	Kept             bool
	Before, After    stats.Sample
	Control          *stats.Control
}
