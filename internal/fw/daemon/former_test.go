package daemon

import (
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"weir/internal/host/netif"
)

// linksOf returns interfaces, each as its name and its addresses. "~" is in front of a tentative address, "-" of a deprecated one.
func linksOf(texts string) (all []netif.Link) {
	for text := range strings.SplitSeq(texts, ";") {
		words := strings.Fields(text)
		if len(words) == 0 {
			continue
		}
		l := netif.Link{Name: words[0]}
		for _, w := range words[1:] {
			l.Addresses = append(l.Addresses, netif.Address{
				Prefix: netip.MustParsePrefix(strings.TrimLeft(w, "~-")), Tentative: w[0] == '~', Deprecated: w[0] == '-',
			})
		}
		all = append(all, l)
	}
	return all
}

// What has taken the place of which address, step by step.
func TestFormerReplaced(t *testing.T) {
	for _, c := range []struct {
		name  string
		steps []string // the machine
		ended string   // by the step, from 0
	}{
		{"another lease", []string{"wan0 192.0.2.10/24", "wan0", "wan0 192.0.2.20/24"}, "2 wan0 192.0.2.10"},
		{"in one step", []string{"wan0 192.0.2.10/24", "wan0 192.0.2.20/24"}, "1 wan0 192.0.2.10"},
		{"the new one before the old one goes", []string{"wan0 192.0.2.10/24", "wan0 192.0.2.10/24 192.0.2.20/24", "wan0 192.0.2.20/24"}, "2 wan0 192.0.2.10"},
		{"the same lease again", []string{"wan0 192.0.2.10/24", "wan0", "wan0 192.0.2.10/24"}, ""},
		{"none any more", []string{"wan0 192.0.2.10/24", "wan0"}, ""},
		{"the interface goes and comes", []string{"wan0 192.0.2.10/24", "", "wan0 192.0.2.20/24"}, "2 wan0 192.0.2.10"},
		{"an address of VRRP comes, goes, comes and goes", []string{"wan0 192.0.2.2/24", "wan0 192.0.2.2/24 192.0.2.1/32", "wan0 192.0.2.2/24", "wan0 192.0.2.2/24 192.0.2.1/32", "wan0 192.0.2.2/24"}, ""},
		{"another family", []string{"wan0 192.0.2.10/24", "wan0 2001:db8::1/64"}, ""},
		{"IPv6", []string{"wan0 2001:db8:1::1/64", "wan0 2001:db8:2::1/64"}, "1 wan0 2001:db8:1::1"},
		{"tentative ones do not count yet", []string{"wan0 2001:db8:1::1/64", "wan0 ~2001:db8:2::1/64", "wan0 2001:db8:2::1/64"}, "2 wan0 2001:db8:1::1"},
		{"link-local ones never do", []string{"wan0 169.254.1.1/16 192.0.2.9/32; lo 127.0.0.1/8", "wan0 192.0.2.9/32 192.0.2.1/24"}, ""},
		{"another interface", []string{"wan0 192.0.2.10/24; wan1", "wan0; wan1 198.51.100.1/24"}, ""},
		{"moved to another interface", []string{"wan0 192.0.2.10/24; wan1", "wan0 192.0.2.20/24; wan1 192.0.2.10/24"}, "1 wan0 192.0.2.10 which is here"},
		{"two old ones", []string{"wan0 192.0.2.10/24", "wan0 192.0.2.10/24 192.0.2.11/24", "wan0", "wan0 192.0.2.20/24"}, "3 wan0 192.0.2.10; 3 wan0 192.0.2.11"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var f former
			var ended []string
			for i, step := range c.steps {
				if !f.look(linksOf(step)) {
					t.Errorf("step %d changes nothing", i)
				}
				for _, a := range f.replaced() {
					text := fmt.Sprintf("%d %s %s", i, a.Interface, a.Addr)
					if f.has(a.Addr) {
						text += " which is here"
					}
					ended = append(ended, text)
				}
				if f.look(linksOf(step)) {
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
	f.look(linksOf("wan0 192.0.2.1/24"))
	for i := range 2 * mostGone {
		f.look(linksOf(fmt.Sprintf("wan0 192.0.2.1/24 10.0.%d.%d/32", i/256, i%256)))
	}
	f.look(linksOf("wan0 192.0.2.1/24"))
	if n := len(f.Known); n != mostGone+1 || f.Known[mostGone].Addr.String() != "10.0.1.255" {
		t.Errorf("%d are known, the last %+v", n, f.Known[n-1])
	}
}

// Which is the first address of an interface, as :0 has it.
func TestFormerFirst(t *testing.T) {
	var f former
	f.look(linksOf("wan0 ~192.0.2.9/24 -192.0.2.10/24 192.0.2.11/24 192.0.2.12/24 fe80::1/64 2001:db8::1/64"))
	first := map[string]bool{}
	for _, a := range f.Known {
		first[a.Addr.String()] = a.First
	}
	if want := map[string]bool{"192.0.2.10": true, "192.0.2.11": true, "192.0.2.12": false, "2001:db8::1": true}; !reflect.DeepEqual(first, want) {
		t.Errorf("got %v, want %v", first, want)
	}
}
