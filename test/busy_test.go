package test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/fw/control"
	"weir/internal/fw/dataplane"
	"weir/internal/fw/rundir"
	"weir/internal/host/filelock"
	"weir/internal/lab"
	"weir/test/lib"
)

//	fw: another process holds the dataplane's lock; dmz0 comes and goes; POST /leave
//
// A start holds the lock while it asks the old daemon to leave. A change of the network
// in that time must not keep the old daemon from answering or ending.
func TestDaemonAnswersWhileAnotherBuilds(t *testing.T) {
	t.Parallel()
	b := weir.Box(t, "tcx")
	p := b.WeirRun(gatewayConf(t))
	client := control.NewClient(rundir.Folder(b.RunFolder()))
	waited := 0
	change := func(commands ...string) (unlock func()) {
		lock, err := filelock.Folder(filepath.Join(dataplane.Base, filepath.Base(b.RunFolder())), filelock.Try)
		if err != nil {
			b.Fatal(err)
		}
		for _, c := range commands {
			b.Run(lab.FW, "ip", strings.Fields(c)...)
		}
		waited = strings.Count(p.Said(), "waits until another process")
		b.Until(lib.StartPatience, "the change waits", func() bool {
			return strings.Count(p.Said(), "waits until another process") > waited
		})
		if out, status := b.WeirStatus("confirm"); status != 1 || !strings.Contains(out, "no load is waiting") {
			b.Errorf("confirm while another process builds: status %d, said\n%s", status, out)
		}
		return func() { lock.Close() }
	}
	unlock := change("link add dmz0 type veth peer name dmz1", "link set dmz0 up")
	unlock()
	b.AwaitHook("dmz0")

	unlock = change("link del dmz0")
	defer unlock()
	if _, err := client.End(t.Context(), "another weir takes over"); err != nil {
		b.Fatalf("the daemon does not leave: %v", err)
	}
	p.Wait(10*time.Second, 0)
	unlock()
	b.WeirRun(gatewayConf(t))
	if h, known := b.Hooks()["dmz0"]; known {
		b.Errorf("dmz0 is gone, and weir interfaces says %+v", h)
	}
	b.Ping(lab.LAN, wanHost, 2)
}
