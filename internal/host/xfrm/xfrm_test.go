package xfrm_test

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/vishvananda/netns"

	"weir/internal/host/xfrm"
	"weir/internal/testenv"
)

// inNamespace moves the test's thread into a network namespace of its own, and returns what runs ip
// there. The thread ends with the test.
func inNamespace(t *testing.T) (ip func(words string)) {
	t.Helper()
	testenv.NeedRoot(t)
	runtime.LockOSThread()
	name := fmt.Sprintf("wxfrm%d", os.Getpid())
	run := func(words ...string) {
		t.Helper()
		if out, err := exec.Command("ip", words...).CombinedOutput(); err != nil {
			t.Fatalf("ip %s: %v: %s", strings.Join(words, " "), err, out)
		}
	}
	run("netns", "add", name)
	t.Cleanup(func() { run("netns", "del", name) })
	there, err := netns.GetFromName(name)
	if err == nil {
		err = errors.Join(netns.Set(there), there.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := xfrm.Policies(); errors.Is(err, xfrm.ErrNone) {
		testenv.SkipOutside(t, "%v", err)
	}
	return func(words string) {
		t.Helper()
		run(append([]string{"-n", name}, strings.Fields(words)...)...)
	}
}

// What ip adds is read as ip means it.
func TestPolicies(t *testing.T) {
	ip := inNamespace(t)
	ip("xfrm policy add src 192.168.1.0/24 dst 10.9.0.0/16 proto tcp sport 7 dport 80 dir out priority 5 tmpl src 1.2.3.4 dst 1.2.3.5 proto esp mode tunnel")
	ip("xfrm policy add src fd00::/8 dst fd09::/48 proto ipv6-icmp type 128 dir fwd action block mark 5 mask 0xff")
	ip("xfrm policy add src 0.0.0.0/0 dst 10.1.0.0/16 dev lo dir in")
	ip("xfrm policy add src 0.0.0.0/0 dst 10.2.0.0/16 dir out tmpl proto esp level use tmpl proto comp level use")
	ip("xfrm policy add src 0.0.0.0/0 dst 10.3.0.0/16 dir out tmpl src 1.2.3.4 dst 1.2.3.5 proto esp mode tunnel tmpl proto comp level use mode transport if_id 42")
	got, defaults, err := xfrm.Policies()
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(got, func(a, b xfrm.Policy) int { return a.Dst.Addr().Compare(b.Dst.Addr()) })
	selector := func(src, dst string) xfrm.Selector {
		return xfrm.Selector{Src: netip.MustParsePrefix(src), Dst: netip.MustParsePrefix(dst)}
	}
	want := []xfrm.Policy{
		{Selector: selector("0.0.0.0/0", "10.1.0.0/16"), Direction: xfrm.In},
		{Selector: selector("0.0.0.0/0", "10.2.0.0/16"), Direction: xfrm.Out, Templates: 2},
		{Selector: selector("0.0.0.0/0", "10.3.0.0/16"), Direction: xfrm.Out, Templates: 2, Required: 1, IfID: 42},
		{Selector: selector("192.168.1.0/24", "10.9.0.0/16"), Direction: xfrm.Out, Priority: 5, Templates: 1, Required: 1},
		{Selector: selector("fd00::/8", "fd09::/48"), Direction: xfrm.Forward, Block: true},
	}
	want[0].Ifindex = 1
	want[3].Proto, want[3].Sport, want[3].SportMask, want[3].Dport, want[3].DportMask = 6, 7, 0xffff, 80, 0xffff
	want[4].Proto, want[4].Sport, want[4].SportMask, want[4].Mark, want[4].MarkMask = 58, 128, 0xffff, 5, 0xff
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(xfrm.Policy{}, "Index"), cmpopts.EquateComparable(netip.Prefix{})); diff != "" {
		t.Errorf("policies (-want +got):\n%s", diff)
	}
	if defaults != (xfrm.Defaults{}) {
		t.Errorf("defaults %+v", defaults)
	}
	ip("xfrm policy setdefault in block out block")
	if _, defaults, err = xfrm.Policies(); err != nil || defaults != (xfrm.Defaults{BlockIn: true, BlockOut: true}) {
		t.Errorf("defaults %+v, %v", defaults, err)
	}
}

// Every change is heard, also that a policy ends by itself.
func TestWatch(t *testing.T) {
	ip := inNamespace(t)
	w, err := xfrm.Watch()
	if err != nil {
		t.Fatal(err)
	}
	heard := make(chan error)
	go func() {
		for err == nil {
			err = w.Next()
			heard <- err
		}
	}()
	hears := func(what string) {
		t.Helper()
		select {
		case err := <-heard:
			if err != nil {
				t.Fatal(err)
			}
		case <-time.After(5 * time.Second):
			t.Errorf("nothing is heard of: %s", what)
		}
	}
	for _, change := range []string{
		"xfrm policy add src 10.1.0.0/16 dst 10.2.0.0/16 dir out action block",
		"xfrm policy update src 10.1.0.0/16 dst 10.2.0.0/16 dir out",
		"xfrm policy del src 10.1.0.0/16 dst 10.2.0.0/16 dir out",
		"xfrm policy setdefault fwd block",
		"xfrm policy add src 10.1.0.0/16 dst 10.2.0.0/16 dir out action block limit time-hard 1",
	} {
		ip(change)
		hears(change)
	}
	hears("the end of the last one")
	w.Close()
	if err := <-heard; err == nil {
		t.Error("a closed watcher goes on")
	}
}
