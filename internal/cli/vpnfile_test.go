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
	err := e.importTunnel(file, "", folder)
	if err == nil || !strings.Contains(err.Error(), "the statements for "+file+":3:") || !strings.Contains(err.Error(), "10.1.0.0/16 is the network of another peer on wg0") || !strings.Contains(err.Error(), "^^^^^^^^^^^\n") {
		t.Errorf("two peers with one network: %v", err)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) != 1 {
		t.Errorf("%v: %v", err, left)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(text, "10.1.0.0/16, ", "", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := e.importTunnel(file, "", folder+"/keys"); err == nil || !strings.Contains(err.Error(), "make the folder first (mkdir -m 700 "+folder+"/keys)") {
		t.Errorf("a folder that is not there: %v", err)
	}
}
