package doctor

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/testenv"
)

const splitText = `Active ixgbe interfaces:

eth4 [On]

The rx_num for ixgbe is: 2 (default)

multi-queue affinity for ixgbe interfaces:


irq | cpu | queue


210 0 TxRx-0

218 2 TxRx-1

Running fw ctl affinity -l now shows the following:

eth3: CPU 0

fw_0: CPU 5

fw_1: CPU 7

fw_2: CPU 3

fw_3: CPU 1

fw_4: CPU 4

fw_5: CPU 6

Interface eth4: has multi queue enabled`

// TestSplit reads the two tables.
func TestSplit(t *testing.T) { checkSplit(t, splitText) }

// TestSplitInProse reads the tables from a page of prose around them.
func TestSplitInProse(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(testenv.Shared(t, "documents"), "004_*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%q, %v", files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	checkSplit(t, string(text))
}

// TestSplitVariants reads tables of other boxes: other names, other core numbers, one
// more driver, a program.
func TestSplitVariants(t *testing.T) {
	for name, c := range map[string]struct{ text, sentence, command string }{
		"instances leave a core free": {
			"eth0: CPU 0\neth1: CPU 0\nfw_0: CPU 3\nfw_1: CPU 2\n",
			"cpu0 does the work of eth0 and eth1, so it fills first: 1 of 3 cores receive, and 2 run firewall instances", "fw ctl affinity -s -i eth1 1",
		},
		"sixteen cores, slots in the names": {
			"Active ixgbe interfaces:\neth1-05 [On]\neth1-06 [Off]\n\nActive igb interfaces:\neth2-01 [Off]\n\nThe rx_num for ixgbe is: 4\n\nmulti-queue affinity for ixgbe interfaces:\n\n" +
				"irq | cpu | queue\n92 0 TxRx-0\n100 2 TxRx-1\n108 4 TxRx-2\n116 6 TxRx-3\nMgmt: CPU 8\neth2-01: CPU 8\nfw_0: CPU 15\nfw_1: CPU 14\nfw_2: CPU 13\nfwd: CPU 9 10 11\nvpnd: CPU 8\nInterface eth1-05: has multi queue enabled\n",
			"cpu8 does the work of Mgmt and eth2-01, so it fills first: 5 of 8 cores receive, and 3 run firewall instances", "cpmq set rx_num ixgbe 5",
		},
		"an instance where it receives": {
			"Mgmt: CPU 0\nLan1: CPU 1\nfw_0: CPU 3\nfw_1: CPU 2\nfw_2: CPU 1\nmpdaemon: CPU 2 3\n",
			"cpu1 does the work of Lan1 and fw_2, so it fills first: 2 of 4 cores receive, and 3 run firewall instances", "cpconfig",
		},
	} {
		r := examine(t, c.text)
		if v := r.Verdict; v.Check != "SPLIT-1" || v.Sentence != c.sentence {
			t.Errorf("%s: %+v", name, v)
			continue
		}
		if !slices.ContainsFunc(r.Findings[0].Remedies, func(r Remedy) bool { return r.Command == c.command }) {
			t.Errorf("%s: no %q in %+v", name, c.command, r.Findings[0].Remedies)
		}
	}
	apart := examine(t, "eth0: CPU 0\neth1: CPU 1\nfw_0: CPU 3\nfw_1: CPU 2\n")
	if len(apart.Findings) > 0 {
		t.Errorf("each its own core: %+v", apart.Findings)
	}
}

func checkSplit(t *testing.T, text string) {
	t.Helper()
	r := examine(t, text)
	const want = "cpu0 does the work of queue 0 of eth4 and eth3, so it fills first: 2 of 8 cores receive, and 6 run firewall instances"
	if v := r.Verdict; v.Check != "SPLIT-1" || v.Severity != Warning || v.Sentence != want {
		t.Errorf("%+v", v)
	}
	wantTable := []string{
		"cpu0: queue 0 of eth4, eth3", "cpu1: fw_3", "cpu2: queue 1 of eth4", "cpu3: fw_2", "cpu4: fw_4", "cpu5: fw_0", "cpu6: fw_5", "cpu7: fw_1",
	}
	if diff := cmp.Diff(wantTable, r.Findings[0].Evidence); diff != "" {
		t.Error(diff)
	}
}

func examine(t *testing.T, text string) *Report {
	t.Helper()
	s, err := Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	r, err := Examine(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func findingOf(r *Report, id string) *Finding {
	i := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.Check == id })
	if i < 0 {
		return nil
	}
	return &r.Findings[i]
}

const pfText = `Status: Enabled for 3 days 04:05:06              Debug: err

Hostid:   0x1234abcd
Checksum: 0xc52f181a29e81c7d83300aac4e4003ce

Interface Stats for em0               IPv4             IPv6
  Bytes In                          123456                0
  Packets In
    Passed                             100                0
    Blocked                            100                0

State Table                          Total             Rate
  current entries                    %d               
  half-open tcp                          1               
  searches                           12345            0.0/s
  inserts                              678            0.0/s
Counters
  match                                700            0.0/s
  memory                               %d            0.0/s
`

func TestPF(t *testing.T) {
	for _, c := range []struct {
		states, memory int
		limit          string
		says           string
		severity       Severity
	}{
		{42, 0, "states        hard limit   100000\ntables        hard limit     1000\n", "Nothing was found", Notice},
		{99000, 0, "--- -sm ---\nstates        hard limit   100000\n--- -st ---\ntcp.first                   120s\nadaptive.start            60000 states\n", "99,000 of 100,000 (99 %)", Critical},
		{42, 7, "", "pf has dropped 7 packets", Warning},
	} {
		r := examine(t, fmt.Sprintf(pfText, c.states, c.memory)+c.limit)
		if !strings.Contains(r.Verdict.Sentence, c.says) || r.Verdict.Severity != c.severity {
			t.Errorf("%+v", r.Verdict)
		}
		i := slices.IndexFunc(r.Checks, func(j CheckResult) bool { return j.ID == "PF-1" })
		if c.limit == "" != (len(r.Checks[i].Why) > 0) {
			t.Errorf("limits %q: %+v", c.limit, r.Checks[i])
		}
	}
}

// TestPFVerbose reads the further lines of pfctl -vsi on FreeBSD and OpenBSD, and the
// first line of a kernel without ALTQ.
func TestPFVerbose(t *testing.T) {
	const freeBSD = "No ALTQ support in kernel\nALTQ related functions disabled\nStatus: Enabled for 25 days 16:23:32          Debug: Urgent\n\n" +
		"Hostid:   0x68d01842\nChecksum: 0x1d921dc03c175342eebc265ff2573361\n\n" +
		"State Table                          Total             Rate\n  current entries                    99000               \n  searches                         5165885            2.3/s\n" +
		"Source Tracking Table\n  current entries                        7               \n  searches                               0            0.0/s\n" +
		"Counters\n  match                            3177960            1.4/s\n  memory                                 0            0.0/s\n" +
		"Limit Counters\n  max states per rule                    0            0.0/s\n  overload table insertion               0            0.0/s\n" +
		"Syncookies\n  mode                      never\n  active                    inactive\n  highwater                 25 %\n  halfopen states           0\n" +
		"states        hard limit   100000\neth-anchors   hard limit      512\ntcp.first                   120s\nfrag                         60s\ninterval                     10s\n"
	const openBSD = "Status: Enabled for 0 days 01:57:48              Debug: err\n\nState Table                          Total             Rate\n  current entries                    99000\n  half-open tcp                          0\n" +
		"Source Tracking Table                Total             Rate\n  current entries                        0\nFragments                            Total             Rate\n  current entries                        5\n" +
		"Counters\n  match                                 86            0.0/s\nAdaptive Syncookies Watermarks\n  start                              25000 states\n  end                                12500 states\nstates        hard limit   100000\n"
	for name, text := range map[string]string{"FreeBSD": freeBSD, "OpenBSD": openBSD} {
		r := examine(t, text)
		if v := r.Verdict; v.Severity != Critical || len(r.Findings) != 1 || !strings.Contains(v.Sentence, "99,000 of 100,000 (99 %)") {
			t.Errorf("%s: %+v", name, r.Findings)
		}
	}
}

func TestSysctls(t *testing.T) {
	linux := examine(t, "kernel.osrelease = 6.12.1\nsysctl: permission denied on key 'fs.protected_fifos'\nkernel.domainname =\nnet.ipv4.ip_forward = 0\n"+
		"net.ipv4.conf.lan0.forwarding = 0\nnet.ipv4.conf.wan0/7.forwarding = 0\nnet.ipv4.conf.all.forwarding = 0\n")
	if f := findingOf(linux, "FWD-1"); f == nil || f.Severity != Notice || !strings.Contains(strings.Join(f.Evidence, " "), "lan0, wan0.7") {
		t.Errorf("%+v", linux.Verdict)
	}
	bsd := examine(t, "kern.osrelease: 12.3-STABLE\nnet.inet.ip.forwarding: 1\nnet.inet.ip.redirect: 1\nnet.inet.ip.intr_queue_drops: 812\nnet.inet.ip.intr_queue_maxlen: 256\n"+
		"dev.ix.0.%desc: Intel(R) PRO/10GbE\ndev.ix.0.queue0.rx_packets: 9000000\ndev.ix.0.queue1.rx_packets: 100000\nhw.pci.enable_msix: 0\n")
	for _, id := range []string{"BSD-1", "BSD-2", "BSD-3"} {
		if findingOf(bsd, id) == nil {
			t.Errorf("no %s in %+v", id, bsd.Findings)
		}
	}
	good := examine(t, "net.inet.ip.forwarding: 1\nnet.inet.ip.redirect: 0\nnet.inet6.ip6.forwarding: 1\nnet.inet6.ip6.redirect: 0\n")
	if len(good.Findings) > 0 {
		t.Errorf("%+v", good.Findings)
	}
	for release, want := range map[string]int{"13.2-RELEASE": 2, "14.1-RELEASE-p3": 1, "15.0-CURRENT": 1, "": 1} {
		text := "net.inet.ip.forwarding: 1\nnet.inet.ip.redirect: 1\nnet.inet6.ip6.forwarding: 1\nnet.inet6.ip6.redirect: 1\n"
		if release != "" {
			text += "kern.osrelease: " + release + "\n"
		}
		r := examine(t, text)
		judged := r.Checks[slices.IndexFunc(r.Checks, func(j CheckResult) bool { return j.ID == "BSD-1" })]
		if len(r.Findings) != want || (len(judged.Why) > 0) != (release == "") {
			t.Errorf("FreeBSD %q: want %d findings: %+v, %+v", release, want, r.Findings, judged)
		}
	}
	// IPv4 is checked even if the kernel, or the selection of lines, has no IPv6.
	for text, want := range map[string]State{
		"kern.osrelease: 13.2-RELEASE\nnet.inet.ip.forwarding: 1\nnet.inet.ip.redirect: 0\nnet.inet6.ip6.redirect: 0\n":                              Fine,
		"kern.osrelease: 13.2-RELEASE\nnet.inet.ip.forwarding: 1\nnet.inet.ip.redirect: 0\nnet.inet6.ip6.redirect: 1\n":                              Fine,
		"kern.osrelease: 13.2-RELEASE\nnet.inet.ip.forwarding: 1\nnet.inet.ip.redirect: 0\n":                                                         Fine,
		"kern.osrelease: 13.2-RELEASE\nnet.inet.ip.forwarding: 1\nnet.inet.ip.redirect: 1\n":                                                         Found,
		"kern.osrelease: 13.2-RELEASE\nnet.inet.ip.redirect: 0\nnet.inet6.ip6.redirect: 0\n":                                                         Unreadable,
		"kern.osrelease: 13.2-RELEASE\nnet.inet6.ip6.forwarding: 1\nnet.inet6.ip6.redirect: 0\n":                                                     Unreadable,
		"kern.osrelease: 13.2-RELEASE\nnet.inet.ip.forwarding: 1\nnet.inet.ip.redirect: 0\nnet.inet6.ip6.forwarding: 1\nnet.inet6.ip6.redirect: 1\n": Found,
	} {
		r := examine(t, text)
		judged := r.Checks[slices.IndexFunc(r.Checks, func(j CheckResult) bool { return j.ID == "BSD-1" })]
		if judged.State != want {
			t.Errorf("%q: %+v, want %s", text, judged, want)
		}
		if unsaid := !strings.Contains(text, "ip6.redirect: 0") && !strings.Contains(text, "ip6.forwarding"); unsaid != (len(judged.Why) > 0) && want != Unreadable {
			t.Errorf("%q does not say that IPv6 was not judged: %+v", text, judged)
		}
	}
	full := examine(t, "net.netfilter.nf_conntrack_count = 250000\nnet.netfilter.nf_conntrack_max = 262144\nnet.netfilter.nf_conntrack_buckets = 262144\n")
	if f := findingOf(full, "CT-1"); f == nil || f.Severity != Warning {
		t.Errorf("%+v", full.Findings)
	}
}

// TestByteOrderMark checks that a byte order mark makes no difference in any form,
// compressed or not.
func TestByteOrderMark(t *testing.T) {
	const mark = "\ufeff"
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write([]byte(mark + `{"format": "weir-doctor-bundle", "version": 1}`)); err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		mark + `{"format": "weir-doctor-bundle", "version": 1}`, packed.String(),
		mark + "net.ipv4.ip_forward = 1\n", mark + fmt.Sprintf(pfText, 1, 0), mark + splitText,
	} {
		if _, err := Read(strings.NewReader(text)); err != nil {
			t.Errorf("%.40q: %v", text, err)
		}
	}
	if _, err := Read(strings.NewReader(mark + mark + "net.ipv4.ip_forward = 1\n")); !errors.Is(err, ErrForeign) {
		t.Errorf("two marks: %v", err)
	}
}

// TestAlmost checks that a text with a single foreign line is refused as a whole.
func TestAlmost(t *testing.T) {
	for name, text := range map[string]string{
		"sysctls of two systems":           "net.ipv4.ip_forward = 1\nkern.osrelease: 12.3\n",
		"sysctls and a word":               "net.ipv4.ip_forward = 1\nhello\n",
		"no sysctl":                        "net.ipv4.ip_forward 1\n",
		"a table and a word":               strings.Replace(splitText, "fw_2: CPU 3", "fw_2: CPU three", 1),
		"a queue of nobody":                strings.Replace(splitText, "eth4 [On]", "eth4 [Off]", 1),
		"another title":                    strings.Replace(splitText, "irq | cpu | queue", "irq, cpu, queue", 1),
		"pf and a word":                    fmt.Sprintf(pfText, 1, 0) + "whatever\n",
		"pf without its table":             "Status: Enabled for 3 days 04:05:06              Debug: err\n",
		"pf that ends before its table":    pfText[:strings.Index(pfText, "State Table")],
		"pf that ends in its table":        fmt.Sprintf(pfText[:strings.Index(pfText, "  half-open")], 1),
		"pf that ends before its counters": fmt.Sprintf(pfText[:strings.Index(pfText, "Counters")], 1),
		"pf that ends at its counters":     fmt.Sprintf(pfText[:strings.Index(pfText, "  match")], 1),
		"pf without its states":            "Status: Disabled\nState Table\nCounters\n  match    7   0.0/s\n",
		"pf's other counters alone":        "Status: Disabled\nState Table\n  current entries   7\nLimit Counters\n  overload table insertion   0   0.0/s\n",
		"an interface's core alone":        "eth0: CPU 0\n",
		"interfaces without instances":     "eth0: CPU 0\neth1: CPU 1\n",
		"instances without interfaces":     "fw_0: CPU 1\nfw_1: CPU 2\n",
		"prose with such a line":           "I found that one core was busy.\neth0: CPU 0\n",
		"rows without their title":         "Active ixgbe interfaces:\neth4 [On]\n210 0 TxRx-0\n",
		"a title without rows":             "Active ixgbe interfaces:\neth4 [On]\nirq | cpu | queue\n",
		"iperf":                            "[  3]  0.0-59.9 sec   402 GBytes  57.7 Gbits/sec\n",
		"prose":                            "The verdict is: the router is slow.\n",
	} {
		if s, err := Read(strings.NewReader(text)); !errors.Is(err, ErrForeign) {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
	}
}
