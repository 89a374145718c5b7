package cli

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What the statements of a file are refused for is not told as of a line of that file, and nothing is written.
func TestImportFaults(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "wg0.conf")
	const text = `[Interface]
PrivateKey = yAnz5TF+lXXJte14tji3zlMNq+hd2rYUIgJBgB3fBmk=
# two branches
[Peer]
PublicKey = xTIBA5rboUvnH4htodjb6e697QjLERt1NAB4mZqp8Dg=
AllowedIPs = 10.1.0.0/16
[Peer]
PublicKey = HIgo9xNzJMWLKASShiTqIybxZ0U3wGLiUeJ1PKf8ykw=
AllowedIPs = 10.1.0.0/16, 10.2.0.0/16
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	e := &Env{Stdout: io.Discard, Stderr: io.Discard}
	err := e.importTunnel(file, "", folder, false)
	if err == nil || !strings.Contains(err.Error(), "the statements for "+file+":3:") || !strings.Contains(err.Error(), "10.1.0.0/16 is the network of another peer on wg0") || !strings.Contains(err.Error(), "^^^^^^^^^^^\n") {
		t.Errorf("two peers with one network: %v", err)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) != 1 {
		t.Errorf("%v: %v", err, left)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(text, "10.1.0.0/16, ", "", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := e.importTunnel(file, "", folder+"/keys", false); err == nil || !strings.Contains(err.Error(), "make the folder first (mkdir -m 700 "+folder+"/keys)") {
		t.Errorf("a folder that is not there: %v", err)
	}
}

// What weir does not do is refused, or left out and told. Other faults are faults all the same.
func TestImportSkips(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "wg0.conf")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const text = `[Interface]
PrivateKey = yAnz5TF+lXXJte14tji3zlMNq+hd2rYUIgJBgB3fBmk=
Address = 10.64.1.2/32
DNS = 10.64.0.1
DNS = home.example
SaveConfig = true
Table = 51
PostUp = iptables -A FORWARD -i %i -j ACCEPT
PostUp = iptables -t nat -A POSTROUTING -o eth0 -j MASQUERADE
PostDown = iptables -D FORWARD -i %i -j ACCEPT
[Peer]
PublicKey = xTIBA5rboUvnH4htodjb6e697QjLERt1NAB4mZqp8Dg=
AllowedIPs = 10.1.0.0/16
Endpoint = 192.0.2.7:51820
`
	write(text)
	var out, says strings.Builder
	e := &Env{Stdout: &out, Stderr: &says}
	err := e.importTunnel(file, "", folder, false)
	if err == nil || !strings.HasSuffix(err.Error(), "\nto leave that out: weir vpn import --skip "+file) || strings.Contains(err.Error(), "twice") || out.Len() > 0 {
		t.Errorf("without --skip: %v\n%s", err, out.String())
	}
	if err := e.importTunnel(file, "", folder, true); err != nil {
		t.Fatal(err)
	}
	want := "wireguard wg0 key file \"" + folder + "/wg0.key\" address 10.64.1.2/32 no route\n" +
		"peer peer1 on wg0 key \"xTIBA5rboUvnH4htodjb6e697QjLERt1NAB4mZqp8Dg=\" endpoint 192.0.2.7 port 51820 allowed 10.1.0.0/16\n"
	if out.String() != want {
		t.Errorf("with --skip:\n%s\nwant\n%s", out.String(), want)
	}
	for _, line := range []string{":4: ", ":5: ", ":6: ", ":7: ", ":8: ", ":9: ", ":10: "} {
		if !strings.Contains(says.String(), file+line) {
			t.Errorf("what is left out has not%s:\n%s", line, says.String())
		}
	}
	write(strings.Replace(text, "10.64.1.2/32", "nowhere", 1))
	if err := e.importTunnel(file, "other", folder, true); err == nil || !strings.Contains(err.Error(), ":3: \"nowhere\" is no address") {
		t.Errorf("another fault: %v", err)
	}
}
