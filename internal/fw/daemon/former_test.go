package daemon

import (
	"fmt"
	"net/netip"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/host/netif"
)

// linksOf returns interfaces, each as its name and its addresses. "~" is in front of a tentative address, "-" of a deprecated one, "+" of
// a temporary one.
func linksOf(texts string) (all []netif.Link) {
	for text := range strings.SplitSeq(texts, ";") {
		words := strings.Fields(text)
		if len(words) == 0 {
			continue
		}
		l := netif.Link{Name: words[0]}
		for _, w := range words[1:] {
			l.Addresses = append(l.Addresses, netif.Address{
				Prefix: netip.MustParsePrefix(strings.TrimLeft(w, "~-+")), Tentative: w[0] == '~', Deprecated: w[0] == '-', Temporary: w[0] == '+',
			})
		}
		all = append(all, l)
	}
	return all
}

// What has taken the place of which address, step by step. Each is a second after the one before, and "31s" lets that time go by.
func TestFormerReplaced(t *testing.T) {
	for _, c := range []struct {
		name  string
		steps []string // the machine
		ended string   // by the step, from 0
	}{
		{"another lease", []string{"wan0 192.0.2.10/24", "wan0", "wan0 192.0.2.20/24"}, "2 wan0 192.0.2.10"},
		{"in one step", []string{"wan0 192.0.2.10/24", "wan0 192.0.2.20/24"}, "1 wan0 192.0.2.10"},
		{"the new one before the old one goes", []string{"wan0 192.0.2.10/24", "wan0 192.0.2.10/24 192.0.2.20/24", "wan0 192.0.2.20/24", "29s", "2s"}, "4 wan0 192.0.2.10"},
		{"the same lease again", []string{"wan0 192.0.2.10/24", "wan0", "wan0 192.0.2.10/24", "31s"}, ""},
		{"the same lease again, beside an alias", []string{"wan0 192.0.2.10/24", "wan0 192.0.2.10/24 192.168.100.2/24", "wan0 192.168.100.2/24", "29s", "wan0 192.168.100.2/24 192.0.2.10/24", "31s"}, ""},
		{"another lease, beside an alias", []string{"wan0 192.0.2.10/24", "wan0 192.0.2.10/24 192.168.100.2/24", "wan0 192.168.100.2/24", "wan0 192.168.100.2/24 192.0.2.20/24"}, "3 wan0 192.0.2.10"},
		{"none any more", []string{"wan0 192.0.2.10/24", "wan0", "31s"}, ""},
		{"the interface goes and comes", []string{"wan0 192.0.2.10/24", "", "wan0 192.0.2.20/24"}, "2 wan0 192.0.2.10"},
		{"an address of VRRP comes, goes, comes and goes", []string{"wan0 192.0.2.2/24", "wan0 192.0.2.2/24 192.0.2.1/32", "wan0 192.0.2.2/24", "31s", "wan0 192.0.2.2/24 192.0.2.1/32", "wan0 192.0.2.2/24", "31s"}, ""},
		{"two addresses of VRRP come one by one, and go likewise, and again", []string{"wan0 192.0.2.2/24", "wan0 192.0.2.2/24 192.0.2.1/32", "wan0 192.0.2.2/24 192.0.2.1/32 192.0.2.3/32",
			"wan0 192.0.2.2/24 192.0.2.3/32", "wan0 192.0.2.2/24", "3600s", "wan0 192.0.2.2/24 192.0.2.3/32", "wan0 192.0.2.2/24 192.0.2.3/32 192.0.2.1/32", "31s"}, ""},
		{"back to an old lease, the new one first", []string{"wan0 192.0.2.10/24", "wan0 192.0.2.10/24 192.0.2.20/24", "wan0 192.0.2.20/24", "wan0 192.0.2.20/24 192.0.2.10/24", "wan0 192.0.2.10/24", "29s", "2s"}, "6 wan0 192.0.2.20"},
		{"another family", []string{"wan0 192.0.2.10/24", "wan0 2001:db8::1/64", "31s"}, ""},
		{"IPv6", []string{"wan0 2001:db8:1::1/64", "wan0 2001:db8:2::1/64"}, "1 wan0 2001:db8:1::1"},
		{"a temporary address beside one of VRRP", []string{"wan0 2001:db8::2/64 2001:db8::1/128", "wan0 2001:db8::2/64 2001:db8::1/128 +2001:db8::f0/64",
			"wan0 2001:db8::2/64 +2001:db8::f0/64", "31s", "wan0 2001:db8::2/64 +2001:db8::f0/64 +2001:db8::f1/64", "31s"}, ""},
		{"a temporary address after another", []string{"wan0 2001:db8::2/64 +2001:db8::f0/64", "wan0 2001:db8::2/64 +2001:db8::f1/64"}, "1 wan0 2001:db8::f0"},
		{"tentative ones do not count yet", []string{"wan0 2001:db8:1::1/64", "wan0 ~2001:db8:2::1/64", "wan0 2001:db8:2::1/64"}, "2 wan0 2001:db8:1::1"},
		{"link-local ones never do", []string{"wan0 169.254.1.1/16 192.0.2.9/32; lo 127.0.0.1/8", "wan0 192.0.2.9/32 192.0.2.1/24"}, ""},
		{"another interface", []string{"wan0 192.0.2.10/24; wan1", "wan0; wan1 198.51.100.1/24", "31s"}, ""},
		{"moved to another interface", []string{"wan0 192.0.2.10/24; wan1", "wan0 192.0.2.20/24; wan1 192.0.2.10/24"}, "1 wan0 192.0.2.10 which is here"},
		{"two old ones", []string{"wan0 192.0.2.10/24", "wan0 192.0.2.10/24 192.0.2.11/24", "wan0", "wan0 192.0.2.20/24"}, "3 wan0 192.0.2.10; 3 wan0 192.0.2.11"},
		{"the first one counts, and comes", []string{"first0 192.0.2.10/24", "first0 192.0.2.20/24"}, "1 first0 192.0.2.10"},
		{"the first one counts, and another comes", []string{"first0 192.0.2.10/24 192.0.2.11/24", "first0 192.0.2.11/24", "first0 192.0.2.11/24 192.0.2.20/24", "31s"}, ""},
		{"all count, and another comes", []string{"wan0 192.0.2.10/24 192.0.2.11/24", "wan0 192.0.2.11/24", "wan0 192.0.2.11/24 192.0.2.20/24", "31s"}, "2 wan0 192.0.2.10"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var f former
			var ended []string
			var links string
			now := time.Now()
			for i, step := range c.steps {
				now = now.Add(time.Second)
				if d, err := time.ParseDuration(step); err == nil {
					now = now.Add(d - time.Second)
				} else if links = step; !f.look(linksOf(links), now) {
					t.Errorf("step %d changes nothing", i)
				}
				onlyFirst := func(name string) bool { return name == "first0" }
				all, wait := f.replaced(now, onlyFirst)
				for _, a := range all {
					text := fmt.Sprintf("%d %s %s", i, a.Interface, a.Addr)
					if f.has(a.Addr) {
						text += " which is here"
					}
					ended = append(ended, text)
				}
				if later := f; wait != 0 {
					if all, _ = later.replaced(now.Add(wait), onlyFirst); len(all) == 0 || wait < 0 {
						t.Errorf("step %d: waits for %v in vain", i, wait)
					}
				}
				if f.look(linksOf(links), now) {
					t.Errorf("step %d again: %+v", i, f)
				}
			}
			if got := strings.Join(ended, "; "); got != c.ended {
				t.Errorf("got %q, want %q", got, c.ended)
			}
		})
	}
}

// What is remembered does not grow for ever.
func TestFormerForgets(t *testing.T) {
	var f former
	f.look(linksOf("wan0 192.0.2.1/24"), time.Now())
	for i := range 2 * mostGone {
		f.look(linksOf(fmt.Sprintf("wan0 192.0.2.1/24 10.0.%d.%d/32", i/256, i%256)), time.Now())
	}
	f.look(linksOf("wan0 192.0.2.1/24"), time.Now())
	if n := len(f.Known); n != mostGone+1 || f.Known[mostGone].Addr.String() != "10.0.1.255" {
		t.Errorf("%d are known, the last %+v", n, f.Known[n-1])
	}
}

// Which is the first address of an interface, as :0 has it.
func TestFormerFirst(t *testing.T) {
	var f former
	f.look(linksOf("wan0 ~192.0.2.9/24 -192.0.2.10/24 192.0.2.11/24 192.0.2.12/24 fe80::1/64 2001:db8::1/64"), time.Now())
	first := map[string]bool{}
	for _, a := range f.Known {
		first[a.Addr.String()] = a.First
	}
	if want := map[string]bool{"192.0.2.10": true, "192.0.2.11": true, "192.0.2.12": false, "2001:db8::1": true}; !reflect.DeepEqual(first, want) {
		t.Errorf("got %v, want %v", first, want)
	}
}

// What was recorded by a clock that was ahead does not wait longer.
func TestFormerClock(t *testing.T) {
	now := time.Now()
	ahead := now.Add(24 * time.Hour)
	var f former
	f.look(linksOf("wan0 192.0.2.1/24"), ahead)
	f.look(linksOf("wan0 192.0.2.1/24 192.0.2.2/24"), ahead)
	f.look(linksOf("wan0 192.0.2.2/24"), ahead)
	f.notAfter(now)
	if all, wait := f.replaced(now, func(string) bool { return false }); len(all) != 0 || wait != returnPatience {
		t.Errorf("%+v, and waits for %v", all, wait)
	}
}

// The time that addresses need grows with their number, and not with its square.
func TestFormerMany(t *testing.T) {
	took := func(n int) time.Duration {
		l := netif.Link{Name: "wan0"}
		for i := range n {
			l.Addresses = append(l.Addresses, netif.Address{Prefix: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), 32)})
		}
		var f former
		f.look([]netif.Link{l}, time.Now())
		best := time.Hour
		for range 5 {
			start := threadTime(t)
			f.look([]netif.Link{l}, time.Now())
			best = min(best, threadTime(t)-start)
		}
		return best
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if few, many := took(1000), took(32_000); many > 4*32*few { // 32 times as long if each is looked at once, 1,024 if with each other
		t.Errorf("1,000 addresses: %v, 32,000: %v", few, many)
	}
}

// threadTime is how long this thread has worked: what waits for a core does not count.
func threadTime(t *testing.T) time.Duration {
	t.Helper()
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now); err != nil {
		t.Fatal(err)
	}
	return time.Duration(now.Nano())
}
