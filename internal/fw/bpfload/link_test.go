package bpfload

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"

	"weir/internal/testenv"
)

// TestProgramOfALinkIsReplaced opens the program of a link while somebody replaces it
// again and again. Each program is gone as soon as the next one is in its place.
func TestProgramOfALinkIsReplaced(t *testing.T) {
	testenv.NeedRoot(t)
	load := func() (*Program, error) {
		const tcxNext = -1
		return ebpf.NewProgram(&ebpf.ProgramSpec{
			Type: ebpf.SchedCLS, License: "BSD",
			Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, tcxNext), asm.Return()},
		})
	}
	var link *Link
	var namespace *os.File // it ends with its last user
	err := onThread(func() (err error) {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return err
		}
		if namespace, err = os.Open("/proc/thread-self/ns/net"); err != nil {
			return err
		}
		first, err := load()
		if err != nil {
			return err
		}
		const loopback = 1
		link, err = Attach(first, Ingress, loopback)
		return errors.Join(err, first.Close())
	})
	if err != nil {
		t.Fatal(err)
	}
	defer namespace.Close()
	defer link.Close()
	stop, stopped := make(chan struct{}), make(chan error, 1)
	go func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				t.Logf("replaced %d times", n)
				stopped <- nil
				return
			default:
			}
			next, err := load()
			if err == nil {
				err = errors.Join(link.Replace(next), next.Close())
			}
			if err != nil {
				stopped <- err
				return
			}
		}
	}()
	opened := 0
	for end := time.Now().Add(time.Second); time.Now().Before(end) && !t.Failed(); opened++ {
		p, err := link.Program()
		if err != nil {
			t.Errorf("after %d times: %v", opened, err)
			continue
		}
		p.Close()
	}
	close(stop)
	if err := <-stopped; err != nil {
		t.Fatal(err)
	}
	t.Logf("opened %d times", opened)
}
