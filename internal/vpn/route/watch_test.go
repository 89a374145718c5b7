package route_test

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/lab"
	"weir/internal/testenv"
	"weir/internal/vpn/route"
)

// What may change the routes of a tunnel is heard, and nothing of the others, however many change.
func TestWatch(t *testing.T) {
	testenv.NeedRoot(t)
	name, topology := fmt.Sprintf("route-%d", os.Getpid()), lab.Topology{Hosts: []lab.Host{{Name: "box"}}}
	l, err := lab.Up(t.Context(), lab.Options{Name: name, Topology: topology, Queues: 1})
	t.Cleanup(func() {
		if _, err := lab.Remove(name, topology); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	run := func(words string) {
		t.Helper()
		if out, err := l.Run(t.Context(), "box", "ip", strings.Fields(words)...); err != nil {
			t.Fatalf("ip %s: %v, %s", words, err, out)
		}
	}
	run("link add wg0 type veth peer name far")
	run("link set far up")
	run("link set wg0 up")
	run("link set lo up")
	through := route.Through{
		Addresses: []netip.Prefix{netip.MustParsePrefix("10.9.0.1/30")}, Networks: []netip.Prefix{netip.MustParsePrefix("10.2.0.0/16"), netip.MustParsePrefix("fd02::/48")},
	}
	var index int
	do := func(what func() error) {
		t.Helper()
		if err := l.Do("box", what); err != nil {
			t.Fatal(err)
		}
	}
	open := func() (w *route.Watch) {
		t.Helper()
		do(func() error {
			i, err := net.InterfaceByName("wg0")
			if err != nil {
				return err
			}
			index = i.Index
			w, err = route.OpenWatch()
			return err
		})
		return w
	}
	w := open()
	ended := make(chan error, 1) // of the one that runs
	go func() { ended <- w.Run() }()
	asked := through
	changed := func() bool { return w.Changed("wg0", index, asked) }
	hold := func() error {
		if err := route.Block(route.Blackholes(through)); err != nil {
			return err
		}
		return route.Lead(index, through.Networks)
	}
	settle := func() {
		t.Helper()
		for end := time.Now().Add(5 * time.Second); changed(); time.Sleep(20 * time.Millisecond) { // of one's own routes
			if do(hold); time.Now().After(end) {
				t.Fatal("the routes of the tunnel change all the time")
			}
		}
	}
	if !changed() {
		t.Error("of a tunnel that nobody has asked for, the routes are known")
	}
	do(hold)
	for _, c := range []struct {
		words string
		want  bool
	}{
		{"route del 10.2.0.0/16 dev wg0", true},
		{"route replace blackhole 10.2.0.0/16 metric 20", true},
		{"route replace 10.2.0.0/16 dev far metric 30", true},
		{"route del blackhole 10.9.0.0/30 metric 300", true},
		{"-6 route del fd02::/48 dev wg0", true},
		{"link set wg0 down", true},
		{"route add 10.2.0.0/16 dev far metric 5", true},
		{"route add 10.2.1.0/24 dev far", false},
		{"route add default dev far", false},
		{"-6 route add default dev far", false},
		{"address add 10.77.0.1/24 dev far", false},
		{"link set far mtu 1400", false},
	} {
		if asked = through; strings.HasPrefix(c.words, "link set wg0") {
			asked.Networks = asked.Networks[:1] // the kernel tells of no route over IPv4 that goes so
		}
		settle()
		run(c.words)
		got := changed()
		for end := time.Now().Add(500 * time.Millisecond); !got && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			got = changed()
		}
		if got != c.want {
			t.Errorf("after ip %s the routes may have changed: %v, want %v", c.words, got, c.want)
		}
		run("link set wg0 up")
		do(hold)
	}
	asked = through
	settle()
	var batch strings.Builder
	for i := range 20_000 { // a flap of a table
		fmt.Fprintf(&batch, "route add 172.%d.%d.%d/32 dev far\n", 16+i>>16, i>>8&0xff, i&0xff)
	}
	file := filepath.Join(t.TempDir(), "batch")
	if err := os.WriteFile(file, []byte(batch.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	run("-batch " + file)
	run("route flush table main dev far proto boot")
	settle() // events that were lost may be of its own
	for range 3 {
		deaf := open()
		isChanged := func() bool { return deaf.Changed("wg0", index, through) }
		if !isChanged() || isChanged() {
			t.Fatal("what nobody has looked for is not known, and then it is")
		}
		run("-batch " + file) // nobody hears these: there is no room for all, nor for what comes after them
		run("route del 10.2.0.0/16 dev wg0")
		run("route flush table main dev far proto boot")
		go func() { ended <- deaf.Run() }()
		for end := time.Now().Add(10 * time.Second); !isChanged(); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("a route of the tunnel went while events were lost, and the routes are known")
			}
		}
		deaf.Close()
		<-ended
		do(hold)
	}
	w.Close()
	if err := <-ended; err == nil || !changed() || !changed() {
		t.Errorf("nothing is heard any more (%v), and the routes are known", err)
	}
	if !(*route.Watch)(nil).Changed("wg0", 1, through) || !new(route.Watch).Changed("wg0", 1, through) {
		t.Error("without a watch the routes are known")
	}
}
