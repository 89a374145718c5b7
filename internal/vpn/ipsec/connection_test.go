package ipsec

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"weir/pf/parser"
	"weir/pf/resolve"
)

// Each file of testdata has tunnels, and what charon is given for them by a version of strongSwan on a
// release of Linux. Of these versions only Debian's are run by other tests.
func TestConnection(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || files == nil {
		t.Fatal("no testdata", err)
	}
	for _, path := range files {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		tunnels, versions := rules(t, string(archive.Files[0].Data)), strings.Fields(string(archive.Files[1].Data))
		c := &Charon{client: &client{version: versions[0]}, kernel: versions[1]}
		var got strings.Builder
		for i := range tunnels {
			of := &tunnels[i]
			credentials := &credentials{}
			if of.Certificate != "" {
				credentials.leaf, credentials.cas = []byte("<"+of.Certificate+">"), [][]byte{[]byte("<" + strings.Join(of.CAFiles, " and ") + ">")}
			}
			note := ""
			if of.PerCPU {
				note = c.perCPU()
			}
			fmt.Fprintf(&got, "%s%s %s", prefix, of.Name, connection(of, credentials, of.PerCPU && note == "").message())
			fmt.Fprintf(&got, "owners of a key: %s\n", strings.Join(owners(of), ", "))
			if note != "" {
				fmt.Fprintf(&got, "note: %s\n", note)
			}
		}
		if os.Getenv("WEIR_TEST_UPDATE") != "" {
			archive.Files[2].Data = []byte(got.String())
			if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil { //nolint:gosec // testdata
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(string(archive.Files[2].Data), got.String()); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
	}
}

// rules reads the tunnels of a configuration.
func rules(t *testing.T, text string) []resolve.IKEv2 {
	t.Helper()
	rs, faults := resolve.LoadWith("rules", []byte(text), &resolve.Host{}, resolve.Settings{})
	if rs == nil {
		t.Fatal(faults.Err())
	}
	return rs.Options.IKEv2
}

// All profiles have algorithms, and the default is AEAD with a group for each rekeying.
func TestProfiles(t *testing.T) {
	for _, name := range parser.ProposalNames {
		p, ok := profiles[name]
		if !ok || p.ike == nil || p.esp == nil {
			t.Errorf("%s: %+v", name, p)
		}
		all := slices.Concat(p.ike, p.esp)
		for _, weak := range []string{"des", "md5", "sha1", "modp768", "modp1024", "modp1536", "null"} {
			if slices.ContainsFunc(all, func(s string) bool { return strings.Contains(s, weak) }) {
				t.Errorf("%s has %s", name, weak)
			}
		}
		if name == "compatible" {
			continue
		}
		for _, s := range p.esp {
			if !strings.Contains(s, "gcm") || !strings.Contains(s, "ecp384") || strings.Contains(s, "none") {
				t.Errorf("%s has %s", name, s)
			}
		}
	}
}

func TestPerCPU(t *testing.T) {
	for _, c := range []struct {
		charon, kernel string
		want           bool
	}{
		{"5.9.8", "6.13.0", false}, {"6.0.1", "6.13.0", false}, {"6.0.2", "6.12.57+deb13-amd64", false}, {"6.0.2", "6.13.0", true}, {"6.0.2rc1", "6.13-rc1", true},
		{"6.1.0", "7.0", true}, {"10.0.0", "6.18.5", true}, {"", "6.18.5", false}, {"6.0", "6.18.5", false}, {"6.0.6", "unknown", false},
	} {
		if got := (&Charon{client: &client{version: c.charon}, kernel: c.kernel}).perCPU(); (got == "") != c.want {
			t.Errorf("strongSwan %s on Linux %s: %q", c.charon, c.kernel, got)
		}
	}
}

func TestCovers(t *testing.T) {
	p := netip.MustParsePrefix
	i := &IKE{Children: []Child{{State: installed, To: []netip.Prefix{p("10.2.0.0/16")}}, {State: "REKEYED", To: []netip.Prefix{p("10.0.0.0/8")}}}}
	for n, want := range map[string]bool{"10.2.0.0/16": true, "10.2.3.0/24": true, "10.0.0.0/8": false, "10.3.0.0/16": false, "fd00::/64": false} {
		if i.Covers(p(n)) != want {
			t.Errorf("%s: not %v", n, want)
		}
		from := &IKE{Children: []Child{{State: installed, From: i.Children[0].To}, {State: "REKEYED", From: i.Children[1].To}}}
		if from.Takes(p(n)) != want {
			t.Errorf("from %s: not %v", n, want)
		}
	}
}

// Keys for a part of a pair of networks are all that the peer agrees to, unless they are another pair's.
func TestPartOfPair(t *testing.T) {
	one := func(text string) []netip.Prefix { return []netip.Prefix{netip.MustParsePrefix(text)} }
	tunnel := resolve.IKEv2{PerPair: true, From: one("10.1.0.0/16"), To: append(one("10.3.0.0/16"), one("10.3.4.0/24")...)}
	all := pairs(&tunnel)
	for to, part := range map[string]bool{"10.3.4.0/24": false, "10.3.5.0/24": true, "10.9.0.0/16": false} {
		up := &IKE{Children: []Child{{State: installed, From: one("10.1.0.0/16"), To: one(to)}}}
		if is := up.hasPart(&all[0], all); is != part {
			t.Errorf("keys for %s are a part of those for %s: %v", to, &all[0], is)
		}
	}
}
