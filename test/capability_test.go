package test

import (
	"strings"
	"testing"
	"time"

	"weir/internal/lab"
	"weir/internal/testenv"
	"weir/test/lib"
)

//	root without some capability, as in a container ─── fw
//
// If weir lacks something, it says so in one sentence, with status 2, and changes
// nothing.
func TestMissingCapability(t *testing.T) {
	t.Parallel()
	b := weir.Box(t, "tcx")
	for _, program := range []string{"setpriv", "unshare"} {
		testenv.NeedProgram(t, program)
	}
	found := b.Machine(lab.FW)
	without := func(capabilities string) []string {
		return []string{"setpriv", "--bounding-set=" + capabilities, "--inh-caps=" + capabilities, string(weir)}
	}
	run := []string{"run", "-f", gatewayConf(t)}
	for name, test := range map[string]struct {
		start, command []string
		want           string
	}{
		"no CAP_NET_ADMIN":  {without("-net_admin"), run, "this root lacks CAP_NET_ADMIN (in a container?"},
		"no CAP_SYS_ADMIN":  {without("-bpf,-sys_admin"), run, "this root lacks CAP_SYS_ADMIN (in a container?"},
		"neither":           {without("-bpf,-net_admin,-sys_admin"), run, "this root lacks CAP_NET_ADMIN and CAP_SYS_ADMIN (in a container?"},
		"a user namespace":  {[]string{"unshare", "--user", "--map-root-user", "--net", string(weir)}, run, "the kernel refuses BPF programs to this root (in a container?"},
		"demo":              {without("-net_admin"), []string{"demo", "--name", b.Namespace("demo")}, "this root lacks CAP_NET_ADMIN"},
		"benchmark":         {without("-net_admin"), []string{"bench", "forward"}, "this root lacks CAP_NET_ADMIN"},
		"run, said as JSON": {without("-net_admin"), append(run, "--json"), "this root lacks CAP_NET_ADMIN"},
	} {
		b.Tell(name, func(b *lib.Box) {
			if _, err := b.Try(lab.FW, test.start[0], append(test.start[1:len(test.start)-1:len(test.start)-1], "true")...); err != nil {
				testenv.SkipOutside(b, "a machine without this (a chroot has no user namespaces): %v", err)
			}
			said := b.Start(lab.FW, test.start[0], append(test.start[1:], test.command...)...).Wait(10*time.Second, 2)
			if strings.Count(said, "\n") != 1 || !strings.Contains(said, test.want) {
				b.Errorf("it said\n%s", said)
			}
		})
	}
	b.SameMachine(lab.FW, found, "after starts without capabilities")
}
