package lib

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"

	"weir/internal/fw/bpfload"
	"weir/internal/fw/dataplane"
	"weir/internal/lab"
)

// WeirRunWithout starts weir run in fw, with an empty PATH, and waits until it is ready.
func (b *Box) WeirRunWithout(file string) *Process {
	b.Helper()
	cmd := exec.Command(string(b.weir), "--netns", b.Namespace(lab.FW), "run", "--hook", b.Hook, "-f", file)
	cmd.Env = append(os.Environ(), "PATH="+b.dir)
	p := b.start("", cmd)
	b.awaitReady(p)
	return p
}

// TakeOff detaches weir's ingress programs from a device of fw, as if they had been lost.
func (b *Box) TakeOff(device string) {
	b.Helper()
	err := b.Do(lab.FW, func() error {
		link, err := net.InterfaceByName(device)
		if err != nil {
			return err
		}
		for _, hook := range []string{"xdp", "ingress"} {
			pin := filepath.Join(dataplane.Base, filepath.Base(b.RunFolder()), "links", fmt.Sprintf("%d-%s", link.Index, hook))
			l, err := bpfload.OpenLink(pin)
			if hook == "xdp" && errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return err
			}
			if err := errors.Join(l.Detach(), l.Close(), os.Remove(pin)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}
