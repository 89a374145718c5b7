package doctor

import (
	"bytes"
	"errors"
	"net/netip"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"weir/internal/host/cpulist"
)

func TestBundle(t *testing.T) {
	want := machines[1].build().s
	var b bytes.Buffer
	if err := WriteBundle(&b, want); err != nil {
		t.Fatal(err)
	}
	got, err := Read(&b)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Prefix{}, netip.Addr{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestForeign checks that a file that is no bundle is refused.
func TestForeign(t *testing.T) {
	const head = `{"format":"weir-doctor-bundle","version":1,"host":{}`
	for name, text := range map[string]string{
		"empty": "", "prose": "The router is slow.\n", "another JSON": `{"format":"x","version":1}`,
		"another version": `{"format":"weir-doctor-bundle","version":2}`,
		"misspelt":        head + `,"interfaces":[{"name":"eth0","kind":"physical","up":true,"mbits":1000}]}`,
		"one sample":      head + `,"seconds":1,"after":{}}`,
		"no time":         head + `,"before":{},"after":{}}`,
		"twice":           head + `,"interfaces":[{"name":"a","kind":"x","up":true},{"name":"a","kind":"x","up":true}]}`,
		"a command":       head + `,"interfaces":[{"name":"eth1;id","kind":"physical","up":true}]}`,
		"an option":       head + `,"interfaces":[{"name":"-a","kind":"physical","up":true}]}`,
		"command below":   head + `,"interfaces":[{"name":"ppp0","kind":"ppp","up":true,"parent":"$(id)"}]}`,
		"command of weir": head + `,"weir":{"state_limit":1,"interfaces":[{"name":"a|b","hook":"xdp"}]}}`,
		"a quote":         head + `,"chains":[{"name":"nftables ip filter a'b","hook":"forward"}]}`,
		"cores":           head + `,"irqs":[{"number":1,"name":"a","affinity":"3-x"}]}`,
		"core -1":         head + `,"cpus":[{"id":-1}]}`,
		"sibling -1":      head + `,"cpus":[{"id":0,"siblings":[0,-1]}]}`,
		"sample of -1":    head + `,"seconds":1,"before":{},"after":{"cpus":{"-1":{}}}}`,
		"softnet of -1":   head + `,"seconds":1,"before":{},"after":{"softnet":{"-1":{}}}}`,
		"interrupt of -1": head + `,"seconds":1,"before":{},"after":{"irqs":{"40":{"-1":3}}}}`,
		"core 8192":       head + `,"cpus":[{"id":8192}]}`,
		"truncated":       head, "half a gzip": "\x1f\x8b\x08",
	} {
		if s, err := Read(strings.NewReader(text)); !errors.Is(err, ErrForeign) {
			t.Errorf("%s: %v, %v", name, s, err)
		}
	}
	if _, err := Read(strings.NewReader(head + `,"interfaces":[{"name":"br-läñ_0.100@x+1","kind":"vlan","up":true}]}`)); err != nil {
		t.Errorf("a name that a shell takes as it is: %v", err)
	}
	if _, err := Read(strings.NewReader(head + "}")); err != nil {
		t.Errorf("the smallest bundle: %v", err)
	}
}

// TestDocumented checks that the description of the form has every name of the form.
func TestDocumented(t *testing.T) {
	text, err := os.ReadFile("../../../docs/doctor-bundle.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[reflect.Type]bool{}
	var walk func(reflect.Type)
	walk = func(typ reflect.Type) {
		switch typ.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			walk(typ.Elem())
			return
		}
		if typ.Kind() != reflect.Struct || seen[typ] || typ.PkgPath() != reflect.TypeFor[Snapshot]().PkgPath() {
			return
		}
		seen[typ] = true
		for i := range typ.NumField() {
			f := typ.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if !strings.Contains(string(text), "`"+name+"`") {
				t.Errorf("docs/doctor-bundle.md lacks `%s` (%s.%s)", name, typ.Name(), f.Name)
			}
			walk(f.Type)
		}
	}
	walk(reflect.TypeFor[Snapshot]())
}

func TestRedact(t *testing.T) {
	s := newBox(1).s
	s.Interfaces = []Interface{
		{Name: "eth0", MAC: "a0:b1:c2:d3:e4:f5", Addresses: []netip.Prefix{netip.MustParsePrefix("192.168.1.1/24"), netip.MustParsePrefix("2a00:1450::1/64"), netip.MustParsePrefix("fe80::1/64")}},
		{Name: "eth0.5", MAC: "a0:b1:c2:d3:e4:f5", Addresses: []netip.Prefix{netip.MustParsePrefix("8.8.4.4/32")}},
	}
	s.Routes = []Route{{Interface: "eth0.5", Gateway: netip.MustParseAddr("8.8.8.8")}, {Interface: "eth0", Gateway: netip.MustParseAddr("192.168.1.1")}}
	s.Unreadable = map[string]string{"weir": "dial 192.168.1.1:80 from a0:b1:c2:d3:e4:f5 at 12:34:56"}
	far := netip.MustParseAddrPort("8.8.8.8:53")
	s.After.Weir = &WeirCount{NAT: []NATUse{{Protocol: "udp", Address: netip.MustParseAddr("8.8.4.4"), Far: far, Ports: 20, Low: 1, High: 30}}}
	Redact(s)
	var b bytes.Buffer
	if err := WriteBundle(&b, s); err != nil {
		t.Fatal(err)
	}
	again, err := Read(&b)
	if err != nil {
		t.Fatal(err)
	}
	first := again.Interfaces[0]
	if first.MAC != again.Interfaces[1].MAC || first.MAC == "a0:b1:c2:d3:e4:f5" {
		t.Errorf("MAC addresses %s and %s", first.MAC, again.Interfaces[1].MAC)
	}
	if got := first.Addresses[0]; got.Addr() != again.Routes[1].Gateway || !got.Addr().IsPrivate() || got.Bits() != 24 || got.Addr().String() == "192.168.1.1" {
		t.Errorf("%s stands for 192.168.1.1/24, and %s for the same gateway", got, again.Routes[1].Gateway)
	}
	if again.Routes[0].Gateway.IsPrivate() || again.Routes[0].Gateway.String() == "8.8.8.8" || !first.Addresses[2].Addr().IsLinkLocalUnicast() {
		t.Errorf("%+v, %+v", again.Routes, first.Addresses)
	}
	if u := again.After.Weir.NAT[0]; u.Address != again.Interfaces[1].Addresses[0].Addr() || u.Far.Addr() != again.Routes[0].Gateway || u.Far.Port() != 53 {
		t.Errorf("%+v", u)
	}
	if why := again.Unreadable["weir"]; strings.Contains(why, "192.168") || strings.Contains(why, "a0:b1") || !strings.Contains(why, "12:34:56") {
		t.Errorf("the text %q", why)
	}
}

func TestCPULists(t *testing.T) {
	for list, mask := range map[string]string{"": "0", "0": "1", "0-3": "f", "1,3": "a", "0-31": "ffffffff", "32": "1,00000000", "0,35-36": "18,00000001"} {
		cpus, err := cpulist.Parse(list)
		if err != nil || cpulist.Format(cpus) != list || cpulist.FormatMask(cpus) != mask {
			t.Errorf("%q: %v, %v, %q, mask %s; want %s", list, cpus, err, cpulist.Format(cpus), cpulist.FormatMask(cpus), mask)
		}
		if back, err := cpulist.ParseMask(mask); err != nil || cpulist.Format(back) != list {
			t.Errorf("mask %s: %v, %v", mask, back, err)
		}
	}
	for _, list := range []string{"x", "3-1", "1,,2", "-1", "0-99999"} {
		if cpus, err := cpulist.Parse(list); err == nil {
			t.Errorf("%q: %v", list, cpus)
		}
	}
}

// TestExample checks that the example in the form's description is a valid bundle with
// the finding that it is meant to show.
func TestExample(t *testing.T) {
	text, err := os.ReadFile("../../../docs/doctor-bundle.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "```json\n")
	example, _, found := strings.Cut(rest, "```")
	s, err := Read(strings.NewReader(example))
	if !found || err != nil {
		t.Fatalf("found %v: %v", found, err)
	}
	r, err := Examine(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	const want = "cpu3 is full of softirq: queue 1 of eth1 carries 90 % of the packets; 3 cores idle"
	if r.Verdict.Sentence != want || r.Status() != 3 {
		t.Errorf("%q, status %d; want %q", r.Verdict.Sentence, r.Status(), want)
	}
}
