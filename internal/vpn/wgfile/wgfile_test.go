package wgfile

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/testenv"
	"weir/pf/resolve"
)

// What other programs write: a line of thousands of networks, a peer without any, the end of a line as Windows has it, and
// the mark in front.
func TestOdd(t *testing.T) {
	var all []string
	for i := range 8000 {
		all = append(all, fmt.Sprintf("10.%d.%d.0/24", i/250, i%250))
	}
	const key = "yAnz5TF+lXXJte14tji3zlMNq+hd2rYUIgJBgB3fBmk="
	text := "\ufeff[Interface]\r\nPrivateKey=" + key + "\r\n\r\n[Peer] # one\r\nPublicKey = " + key + "\r\nAllowedIPs = " + strings.Join(all, ", ") + "\r\n[peer]\nPUBLICKEY = " + key + "\nAllowedIPs =\nEndpoint = [2001:db8::7]:7\n"
	f, err := Read("wg0.conf", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Peers) != 2 || len(f.Peers[0].Allowed) != len(all) || len(f.Peers[1].Allowed) != 0 || f.Peers[1].Host != "2001:db8::7" || f.Peers[1].Port != 7 {
		t.Errorf("%d peers, %d networks, %+v", len(f.Peers), len(f.Peers[0].Allowed), f.Peers[1])
	}
}

// TestGolden checks the files in testdata: reading "in" gives "faults", or "statements" with the files
// of keys; and what these mean is written as "out".
func TestGolden(t *testing.T) {
	testenv.EachGolden(t, "testdata/*.txtar", func(t *testing.T, g *testenv.Golden) {
		file, err := Read("wg0.conf", strings.NewReader(g.Section("in")))
		if err != nil {
			g.Check(t, "faults", err.Error()+"\n")
			return
		}
		stmts, files := file.Statements("wg0", "/etc/weir")
		var b strings.Builder
		if err := Fprint(&b, stmts); err != nil {
			t.Fatal(err)
		}
		text := b.String()
		for _, f := range files {
			fmt.Fprintf(&b, "# %s: %v\n", f.Path, f.Key)
		}
		g.Check(t, "statements", b.String())
		rules, list := resolve.Load("weir.conf", []byte(text), nil)
		if rules == nil {
			t.Fatalf("the statements are refused: %v", list.Err())
		}
		var out strings.Builder
		if err := Write(&out, &rules.Options.WireGuard[0]); err != nil {
			t.Fatal(err)
		}
		g.Check(t, "out", out.String())
		again, err := Read("out", strings.NewReader(out.String()))
		if err != nil {
			t.Fatalf("what is written is not read: %v", err)
		}
		var c strings.Builder
		stmts, _ = again.Statements("wg0", "/etc/weir")
		if err := Fprint(&c, stmts); err != nil {
			t.Fatal(err)
		}
		meant, list := resolve.Load("again", []byte(c.String()), nil)
		if meant == nil {
			t.Fatalf("what is written is refused: %v", list.Err())
		}
		if diff := cmp.Diff(rules.Options.WireGuard, meant.Options.WireGuard, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
			t.Errorf("read again, it means another tunnel:\n%s", diff)
		}
	})
}

// What is exported is imported, and means the same but for what such a file cannot say.
func TestExported(t *testing.T) {
	const one, two = "HIgo9xNzJMWLKASShiTqIybxZ0U3wGLiUeJ1PKf8ykw=", "xTIBA5rboUvnH4htodjb6e697QjLERt1NAB4mZqp8Dg="
	peers := func(first, second string) string {
		return fmt.Sprintf("peer \"branch #1\" on wg0 key %q %s\npeer far on wg0 key %q %s\n", one, first, two, second)
	}
	for name, text := range map[string]string{
		"plain":                 `wireguard wg0 key file "/k"` + "\n" + peers("allowed 10.2.0.0/16", "allowed { 10.3.0.0/16 fd03::/48 } keepalive 25"),
		"no route":              `wireguard wg0 key file "/k" no route` + "\n" + peers("allowed 10.2.0.0/16", "allowed 10.3.0.0/16"),
		"no route to one":       `wireguard wg0 key file "/k" address 10.9.0.1/24` + "\n" + peers("allowed { 10.2.0.0/16 fd02::/48 } endpoint fd00::7 port 7", "allowed 10.3.0.0/16 no route"),
		"everything":            `wireguard wg0 key file "/k"` + "\n" + peers("allowed 0.0.0.0/0", "allowed { 10.3.0.0/16 ::/0 }"),
		"names that are quoted": `wireguard wg0 port 7 mtu 1400 key file "/etc/we ir/it's $key; (1)"` + "\n" + peers(`psk file "/p q/*" allowed 10.2.0.0/16`, `psk file "/~" allowed 10.3.0.0/16 no route`),
		"nobody":                `wireguard wg0 key file "/k"` + "\n" + peers("allowed 10.2.0.0/16 no route", "endpoint a.example"),
	} {
		t.Run(name, func(t *testing.T) {
			rules, list := resolve.Load("weir.conf", []byte(text), nil)
			if rules == nil {
				t.Fatal(list.Err())
			}
			var out, stmts strings.Builder
			if err := Write(&out, &rules.Options.WireGuard[0]); err != nil {
				t.Fatal(err)
			}
			f, err := Read("wg0.conf", strings.NewReader(out.String()))
			if err != nil {
				t.Fatalf("%v\n%s", err, out.String())
			}
			again, files := f.Statements("wg0", "/etc/weir")
			if err := Fprint(&stmts, again); err != nil {
				t.Fatal(err)
			}
			meant, list := resolve.Load("again", []byte(stmts.String()), nil)
			if meant == nil {
				t.Fatalf("%v\n%s", list.Err(), stmts.String())
			}
			if diff := cmp.Diff(rules.Options.WireGuard, meant.Options.WireGuard, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" || len(files) != 0 {
				t.Errorf("%s\n%s\nfiles %v", diff, out.String(), files)
			}
		})
	}
}

// wg-quick takes %i for the name of the interface, and # for a comment.
func TestWriteRefuses(t *testing.T) {
	for _, path := range []string{"/keys/%i", "/keys/#1", "/keys/a\nb"} {
		for _, w := range []*resolve.WireGuard{{KeyFile: path}, {KeyFile: "/k", Peers: []resolve.Peer{{PSKFile: path}}}} {
			if err := Write(&strings.Builder{}, w); err == nil {
				t.Errorf("%q is written", path)
			}
		}
	}
}

// FuzzRead reads anything, and says nothing of a secret.
func FuzzRead(f *testing.F) {
	f.Add("[Interface]\nPrivateKey = yAnz5TF+lXXJte14tji3zlMNq+hd2rYUIgJBgB3fBmk=\n[Peer]\nPublicKey = xTIBA5rboUvnH4htodjb6e697QjLERt1NAB4mZqp8Dg=\nAllowedIPs = 10.0.0.0/8, ::/0\nEndpoint = [::1]:7\n")
	f.Add("[Interface]\nPrivateKey = yAnz5TF+lXXJte14tji3zlMNq+hd2rYUIgJBgB3fBm\nPostUp = wg set %i private-key /x\n# name = a\n[Peer]\nPresharedKey = q\n")
	f.Fuzz(func(t *testing.T, text string) {
		file, err := Read("f", strings.NewReader(text))
		if err != nil {
			return
		}
		stmts, _ := file.Statements("wg0", "/k")
		var b strings.Builder
		if err := Fprint(&b, stmts); err != nil {
			t.Fatal(err)
		}
		for _, s := range []string{fmt.Sprintf("%+v", file), b.String()} {
			if raw := file.Private.Reveal(); file.KeyFile == "" && strings.Contains(s, string(raw[:])) {
				t.Errorf("a secret is printed: %s", s)
			}
		}
	})
}
