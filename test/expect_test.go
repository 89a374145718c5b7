package test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/fw/view"
	"weir/internal/lab"
	"weir/internal/oracle/ruletest"
	"weir/internal/testenv"
	"weir/pf/resolve"
	"weir/test/lib"
)

//	wan ── frames ──▶ igb0 ┐
//	    ── frames ──▶ igb1 ├ fw: rules.debug ── what leaves, and what is answered ──▶ wan
//	    ── frames ──▶ …    ┘
//
// A gateway's rules as pfSense writes them, in force: each packet of the file of expectations
// is sent, and what becomes of it is what the file says.
func TestExpectations(t *testing.T) {
	folder := filepath.Join(testenv.Shared(t, "pf-cases"), "pfsense")
	var texts [3]string
	for i, name := range []string{"rules.debug", "host.json", "expect.json"} {
		data, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		texts[i] = string(data)
	}
	weir.BothAtOnce(t, func(b *lib.Box) { expects(b, texts[0], texts[1], texts[2], 25) })
}

// The same for routers as others write them: an OPNsense, a pfSense with several uplinks,
// 1:1 NAT and a captive portal, a home router of OpenBSD, and the FreeBSD Handbook's gateway.
func TestExpectationsOfRouters(t *testing.T) {
	for _, router := range []struct {
		name, hook string
		least      int
	}{
		{"opnsense", "xdp", 30}, {"multiwan", "tcx", 20}, {"openbsd", "xdp", 20}, {"handbook", "tcx", 17},
	} {
		t.Run(router.name, func(t *testing.T) {
			g := testenv.ReadGolden(t, filepath.Join("../internal/oracle/ruletest/testdata", router.name+".txtar"))
			weir.AtOnce(t, []string{router.hook}, func(b *lib.Box) {
				expects(b, g.Section("rules"), g.Section("host"), g.Section("expect"), router.least)
			})
		})
	}
}

// machine is a host of a file of expectations, built in fw. All its links lead to wan, where a
// device of the same name stands for all hosts behind the link.
type machine struct {
	*lib.Box
	wires   map[string]*lib.Frames
	macs    map[string]net.HardwareAddr // of fw's own devices
	counted map[string]uint64           // the packets of the rules with each label, until now
	sent    map[string]bool             // protocols and ends of packets that may have states
}

// stationMAC sends the frames.
const stationMAC = "02:77:65:00:09:09"

// expects runs rules on the machine they are for, and sends it the packets of a file of
// expectations: those that come in, and hold for the model. At least so many do.
func expects(b *lib.Box, rules, description, expectations string, least int) {
	b.Helper()
	host := &resolve.Host{}
	if err := json.Unmarshal([]byte(description), host); err != nil {
		b.Fatal(err)
	}
	all, err := ruletest.Read("expect", []byte(expectations))
	if err != nil {
		b.Fatal(err)
	}
	set, list := resolve.Load("rules", []byte(rules), host)
	if set == nil {
		b.Fatal(list.Err())
	}
	report, err := ruletest.NewRunner(set, host, ruletest.Described(host)).Run("expect", all)
	if err != nil {
		b.Fatal(err)
	}
	m := newMachine(b, host, rules+expectations)
	b.WeirRun(b.Rules(unwatched(rules) + rules))
	for table, entries := range host.Tables {
		args := []string{"table", "add", "-t", table}
		for _, e := range entries {
			text, err := e.MarshalText()
			if err != nil {
				b.Fatal(err)
			}
			args = append(args, string(text))
		}
		b.Weir(args...)
	}
	m.counted = m.counts()
	sent := 0
	for _, r := range report.Results {
		if len(r.Failures) == 0 && m.wires[r.Expectation.In] != nil && r.Expectation.Packet.Mark == 0 {
			sent++
			m.send(r)
		}
	}
	if sent < least {
		b.Errorf("%d packets were sent, want %d", sent, least)
	}
}

// hop is a gateway in a rule, with its interface.
var hop = regexp.MustCompile(`\( *\w+ +([0-9.]+) *\)`)

// unwatched returns the options with which no gateway of the rules is watched: nobody answers.
func unwatched(rules string) (options string) {
	for _, m := range hop.FindAllStringSubmatch(rules, -1) {
		if line := "set gateway " + m[1] + " monitor none\n"; !strings.Contains(options, line) {
			options += line
		}
	}
	return options
}

// newMachine builds a host. Each address in the texts that lies on a link is a neighbour, with
// a MAC address of its own.
func newMachine(b *lib.Box, host *resolve.Host, texts string) *machine {
	b.Helper()
	m := &machine{Box: b, wires: map[string]*lib.Frames{}, macs: map[string]net.HardwareAddr{}, sent: map[string]bool{}}
	b.IP(lab.FW, "link del lan0", "link del wan0")
	for i := range host.Interfaces {
		if link := &host.Interfaces[i]; !strings.HasPrefix(link.Name, "lo") {
			m.link(link)
		}
	}
	for i := range host.Interfaces {
		link := &host.Interfaces[i]
		for _, gateway := range link.Default {
			b.IP(lab.FW, fmt.Sprintf("route replace default via %s dev %s", gateway, link.Name))
		}
	}
	for _, word := range regexp.MustCompile(`[0-9.]{7,}|[0-9a-f]+:[0-9a-f:]+`).FindAllString(texts, -1) {
		addr, err := netip.ParseAddr(word)
		for i := range host.Interfaces {
			if link := &host.Interfaces[i]; err == nil && m.wires[link.Name] != nil && isNeighbour(link, addr) {
				b.IP(lab.FW, fmt.Sprintf("neigh replace %s lladdr %s dev %s nud permanent", addr, macOf(addr), link.Name))
			}
		}
	}
	return m
}

// link makes a link, or the VLAN "igb1.30" of one if the kernel has VLANs.
func (m *machine) link(link *resolve.HostInterface) {
	m.Helper()
	parent, vlan, tagged := strings.Cut(link.Name, ".")
	if tagged && lib.Has(lib.VLAN) {
		for _, host := range []string{lab.FW, lab.WAN} {
			m.IP(host, fmt.Sprintf("link add link %s name %s type vlan id %s", parent, link.Name, vlan))
		}
	} else {
		m.Wire(link.Name, lab.WAN, link.Name)
	}
	for _, a := range link.Addresses {
		m.IP(lab.FW, fmt.Sprintf("addr add %s dev %s%s", a, link.Name, map[bool]string{true: " nodad"}[a.Addr().Is6()]))
	}
	m.IP(lab.WAN, "link set "+link.Name+" up")
	m.IP(lab.FW, "link set "+link.Name+" up")
	m.wires[link.Name] = m.Frames(lab.WAN, link.Name)
	err := m.Do(lab.FW, func() error {
		own, err := net.InterfaceByName(link.Name)
		if err == nil {
			m.macs[link.Name] = own.HardwareAddr
		}
		return err
	})
	if err != nil {
		m.Fatal(err)
	}
}

func isNeighbour(link *resolve.HostInterface, addr netip.Addr) bool {
	return slices.ContainsFunc(link.Addresses, func(p netip.Prefix) bool { return p.Contains(addr) }) &&
		!slices.ContainsFunc(link.Addresses, func(p netip.Prefix) bool { return p.Addr() == addr })
}

// macOf returns the MAC address of a neighbour.
func macOf(addr netip.Addr) net.HardwareAddr {
	b := addr.AsSlice()
	return append(net.HardwareAddr{0x02, byte(len(b))}, b[len(b)-4:]...)
}

// became is what a packet becomes.
type became struct {
	out     string // where it leaves; "": nowhere
	to      net.HardwareAddr
	ip      []byte
	replied []byte // the IP packet that its sender gets
}

// send sends a packet and compares what becomes of it.
func (m *machine) send(r *ruletest.Result) {
	m.Helper()
	e := r.Expectation
	ends := strings.Join(strings.Fields(e.Text)[:4], " ")
	if m.sent[ends] {
		m.Weir("flush", "states", "--force", "-q")
	}
	m.sent[ends] = true
	for _, w := range m.wires {
		for w.Next(0) != nil { // from before
		}
	}
	mac, _ := net.ParseMAC(stationMAC)
	etherType := uint16(0x0800)
	if e.Packet.Src.Is6() {
		etherType = 0x86dd
	}
	frame := binary.BigEndian.AppendUint16(slices.Concat(m.macs[e.In], mac), etherType)
	m.wires[e.In].Send(append(frame, e.Packet.Bytes()...))
	if wrong := compare(r, m.await(r)); wrong != "" {
		m.Errorf("expectation %d, %s, in by %s: %s", e.Line, e.Text, e.In, wrong)
	}
	if e.Label == nil || r.Outcome.Reason != "rule" && r.Outcome.Reason != "block" {
		return // martians are dropped before the rules
	}
	before := m.counted[*e.Label]
	if m.counted = m.counts(); m.counted[*e.Label] == before {
		m.Errorf("expectation %d, %s, in by %s: no rule with the label %q counted it", e.Line, e.Text, e.In, *e.Label)
	}
}

// label is the label of a rule.
var label = regexp.MustCompile(`label "([^"]*)"`)

// counts returns how many packets the rules with each label have counted.
func (m *machine) counts() map[string]uint64 {
	m.Helper()
	all := map[string]uint64{}
	for _, r := range lib.WeirJSON[[]view.Rule](m.Box, "rules") {
		for _, l := range label.FindAllStringSubmatch(r.Text, -1) {
			all[l[1]] += r.Packets
		}
	}
	return all
}

// await looks for the packet, and for a reply to its sender, as long as one is expected, or a
// moment to see that there is none.
func (m *machine) await(r *ruletest.Result) (got became) {
	m.Helper()
	patience := 150 * time.Millisecond
	leaves := r.Outcome.Verdict == ruletest.Pass && r.Outcome.Out != "" && !r.Outcome.NoRoute
	answered := r.Expectation.Answer != nil && r.Expectation.Answer.Kind != "none"
	if leaves || answered {
		patience = lib.Scaled(2 * time.Second)
	}
	for end := time.Now().Add(patience); time.Now().Before(end); {
		for name, w := range m.wires {
			for frame := w.Next(0); frame != nil; frame = w.Next(0) {
				got.take(r.Expectation, name, frame)
			}
		}
		if leaves && got.out != "" || answered && got.replied != nil {
			return got
		}
		time.Sleep(5 * time.Millisecond)
	}
	return got
}

// take looks at a frame: is it the packet, or a reply to it?
func (s *became) take(e *ruletest.Expectation, device string, frame []byte) {
	ip := frame[14:]
	proto, _, dst, ok := packetEnds(ip)
	icmp := proto == 1 || proto == 58
	switch {
	case !ok:
	case device == e.In && dst.Addr() == e.Packet.Src && (proto == e.Packet.Proto || icmp):
		s.replied = ip
	case proto == e.Packet.Proto && (!icmp || ip[icmpAt(ip)] == e.Packet.Type):
		s.out, s.to, s.ip = device, net.HardwareAddr(frame[:6]), ip
	}
}

func icmpAt(ip []byte) int {
	if ip[0]>>4 == 6 {
		return 40
	}
	return 20
}

// packetEnds returns a packet's protocol and ends. Without ports these are 0.
func packetEnds(ip []byte) (proto uint8, src, dst netip.AddrPort, ok bool) {
	var from, to netip.Addr
	var rest []byte
	switch {
	case len(ip) >= 24 && ip[0] == 0x45:
		proto, from, to, rest = ip[9], netip.AddrFrom4([4]byte(ip[12:16])), netip.AddrFrom4([4]byte(ip[16:20])), ip[20:]
	case len(ip) >= 44 && ip[0]>>4 == 6:
		proto, from, to, rest = ip[6], netip.AddrFrom16([16]byte(ip[8:24])), netip.AddrFrom16([16]byte(ip[24:40])), ip[40:]
	default:
		return 0, src, dst, false
	}
	var sport, dport uint16
	if proto == 6 || proto == 17 || proto == 132 {
		sport, dport = binary.BigEndian.Uint16(rest), binary.BigEndian.Uint16(rest[2:])
	}
	return proto, netip.AddrPortFrom(from, sport), netip.AddrPortFrom(to, dport), true
}

// compare returns what is not as expected, or "".
func compare(r *ruletest.Result, got became) string {
	e := r.Expectation
	_, src, dst, _ := packetEnds(got.ip)
	hop := func(a string) bool { return macOf(netip.MustParseAddr(a)).String() == got.to.String() }
	switch {
	case e.Verdict == ruletest.Block && got.out != "":
		return fmt.Sprintf("it left by %s, %s > %s", got.out, src, dst)
	case e.Answer != nil && ruletest.AnswerOf(got.replied) != *e.Answer:
		return fmt.Sprintf("it was answered by %s, want %s", ruletest.AnswerOf(got.replied), *e.Answer)
	case e.Verdict == ruletest.Block:
		return ""
	case r.Outcome.Out == "" && got.out != "":
		return "it is for the box, and left by " + got.out
	case r.Outcome.Out == "":
		return ""
	case got.out == "":
		return "it did not leave"
	case e.Out != nil && !slices.Contains(e.Out, got.out):
		return fmt.Sprintf("it left by %s, want %s", got.out, e.Out)
	case e.NextHop != nil && !slices.ContainsFunc(e.NextHop, hop):
		return fmt.Sprintf("it left to %s, want %s", got.to, e.NextHop)
	case e.Source != nil && !e.Source.Hold(src):
		return fmt.Sprintf("its source is %s, want %s", src, e.Source)
	case e.Destination != nil && !e.Destination.Hold(dst):
		return fmt.Sprintf("its destination is %s, want %s", dst, e.Destination)
	}
	return ""
}
