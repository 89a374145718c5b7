package daemon

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"weir/internal/fw/dataplane"
	"weir/pf/diag"
	"weir/pf/resolve"
)

var filterHost = &resolve.Host{Interfaces: []resolve.HostInterface{
	{Name: "lo", Addresses: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/8")}},
	{Name: "lan0", Addresses: []netip.Prefix{netip.MustParsePrefix("192.168.1.1/24"), netip.MustParsePrefix("fd00:1::1/64")}},
}}

func end(prefix string) dataplane.CaptureEnd {
	return dataplane.CaptureEnd{Prefix: netip.MustParsePrefix(prefix)}
}

func ports(low, high uint16) dataplane.CaptureEnd {
	return dataplane.CaptureEnd{Ports: true, PortLow: low, PortHigh: high}
}

func TestFilter(t *testing.T) {
	notPorts := ports(80, 80)
	notPorts.PortsNot = true
	outside := ports(10, 20)
	outside.PortsNot = true
	not := end("10.0.0.0/8")
	not.Not = true
	for text, want := range map[string][]dataplane.CaptureFilter{
		"":                                     {{All: true}},
		"all":                                  {{}},
		"inet6":                                {{Family: 6}},
		"inet proto icmp":                      {{Family: 4, Proto: 1}},
		"from 10.0.0.0/8":                      {{Family: 4, Src: end("10.0.0.0/8")}},
		"from ! 10.0.0.0/8 to any":             {{Family: 4, Src: not}},
		"to { 10.0.0.1 2001:db8::1 }":          {{Family: 4, Dst: end("10.0.0.1/32")}, {Family: 6, Dst: end("2001:db8::1/128")}},
		"proto { tcp udp } to port domain":     {{Proto: 6, Dst: ports(53, 53)}, {Proto: 17, Dst: ports(53, 53)}},
		"proto tcp from port != 80":            {{Proto: 6, Src: notPorts}},
		"proto tcp to port >= 1024":            {{Proto: 6, Dst: ports(1024, 65535)}},
		"proto tcp to port > 1024":             {{Proto: 6, Dst: ports(1025, 65535)}},
		"proto tcp to port < 1024":             {{Proto: 6, Dst: ports(0, 1023)}},
		"proto tcp to port <= 1024":            {{Proto: 6, Dst: ports(0, 1024)}},
		"proto tcp to port 10:20":              {{Proto: 6, Dst: ports(10, 20)}},
		"proto tcp to port 10 >< 20":           {{Proto: 6, Dst: ports(11, 19)}},
		"proto tcp to port 10 <> 20":           {{Proto: 6, Dst: outside}},
		"inet from (lan0)":                     {{Family: 4, Src: end("192.168.1.1/32")}},
		"from lan0:network":                    {{Family: 4, Src: end("192.168.1.0/24")}, {Family: 6, Src: end("fd00:1::/64")}},
		"inet6 proto tcp from (lan0) port 999": {{Family: 6, Proto: 6, Src: dataplane.CaptureEnd{Prefix: netip.MustParsePrefix("fd00:1::1/128"), Ports: true, PortLow: 999, PortHigh: 999}}},
	} {
		got, err := parseFilter(text, false, filterHost)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Prefix{})); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

func TestFilterReplies(t *testing.T) {
	got, err := parseFilter("inet proto tcp from 10.0.0.1 to port 80", true, filterHost)
	want := []dataplane.CaptureFilter{
		{Family: 4, Proto: 6, Src: end("10.0.0.1/32"), Dst: ports(80, 80)},
		{Family: 4, Proto: 6, Src: ports(80, 80), Dst: end("10.0.0.1/32")},
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Prefix{})); err != nil || diff != "" {
		t.Errorf("with replies (-want +got): %v\n%s", err, diff)
	}
}

func TestFilterRefusals(t *testing.T) {
	for text, want := range map[string]string{
		"proto tpc":                     "filter:1:",
		"from":                          "filter:1:",
		"proto icmp to port 80":         "filter:1:",
		"from nohost.invalid":           "filter:1:",
		"quick proto tcp":               "write it like this",
		"in":                            "write it like this",
		"on lan0":                       "write it like this",
		"proto tcp flags S/SA":          "write it like this",
		"inet proto icmp icmp-type 8":   "write it like this",
		"tag x":                         "write it like this",
		"tagged x":                      "write it like this",
		"label \"x\"":                   "write it like this",
		"inet nat-to 10.0.0.1":          "filter:1:",
		"all\nblock all":                "write it like this",
		"from <table>":                  "",
		"from ! (lan0)":                 "name one of them",
		"proto tcp to port 10 >< 11":    "",
		"proto tcp to port < 0":         "",
		"from 10.0.0.0/8 to 2001:db8::": "",
	} {
		got, err := parseFilter(text, false, filterHost)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v, %v; want an error with %q", text, got, err, want)
			continue
		}
		var faults *diag.Failure
		if caret := strings.Contains(err.Error(), "^"); caret != errors.As(err, &faults) || caret != strings.HasPrefix(err.Error(), "filter:1:") {
			t.Errorf("%q: the error is\n%v", text, err)
		}
	}
}
