package test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"weir/internal/fw/pktrecord"
	"weir/internal/fw/reason"
	"weir/internal/lab"
	"weir/test/lib"
)

// logConf has each kind of rule that logs; the tests refer to them by line.
const logConf = `set skip on lo
block log all label "rest"
match in log on lan0 proto tcp to port 8000
pass in log (all) on lan0 proto tcp to port 8000 label "web"
pass out log on wan0 proto tcp nat-to (wan0)
pass in on lan0 proto icmp
pass out on wan0 proto icmp nat-to (wan0)
`

// logReads is what weir log prints when it misses nothing from now on.
const logReads = "weir: reading what rules log"

// readLog starts weir log in fw and waits until it misses nothing.
func readLog(b *lib.Box, args ...string) *lib.Process {
	b.Helper()
	p := b.WeirCommand(append([]string{"log"}, args...)...)
	b.AwaitSaid(p, logReads)
	return p
}

// a logged packet is a record as weir log --json prints it.
type logged struct {
	pktrecord.Record
	Packet string `json:"packet"`
}

// records returns what weir log --json has printed so far.
func records(b *lib.Box, p *lib.Process) []logged {
	b.Helper()
	var all []logged
	for line := range strings.Lines(p.Said()) {
		if !strings.HasPrefix(line, "{") || !strings.HasSuffix(line, "}\n") {
			continue
		}
		var r logged
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			b.Fatalf("%s: %v", line, err)
		}
		all = append(all, r)
	}
	return all
}

// of returns the records that a rule, given by its line, has written about packets in a
// direction.
func of(all []logged, line int, direction string) []logged {
	return slices.DeleteFunc(slices.Clone(all), func(r logged) bool {
		return r.Rule == nil || r.Rule.Line != line || r.Direction != direction
	})
}

//	lan ── curl, nmap, ping ──▶ fw ──▶ wan     fw: weir log --json
//
// Rules log what pf's would: the packet that makes a state at every crossing, all packets
// with log (all), and each blocked packet. Incoming packets are logged as they came,
// outgoing ones translated, with the rule's file and line.
func TestLog(t *testing.T) {
	weir.BothAtOnce(t, func(b *lib.Box) {
		file := b.Rules(logConf)
		b.WeirRun(file)
		b.Ping(lab.LAN, wanHost, 2) // neighbours are known
		p, asleep := readLog(b, "--json"), readLog(b)
		asleep.Signal(syscall.SIGSTOP)
		pipe := b.Start(lab.FW, "sh", "-c", fmt.Sprintf("%s log -w - | tcpdump -lnr -", weir))
		b.AwaitSaid(pipe, logReads)
		kept := filepath.Join(t.TempDir(), "log.pcapng")
		readLog(b, "-w", kept)
		b.Tell("pass", func(b *lib.Box) { loggedPass(b, p, filepath.Base(file)) })
		b.Tell("block", func(b *lib.Box) { loggedBlock(b, p) })
		b.Tell("old rules", func(b *lib.Box) { loggedByOldRules(b, p, file) })
		b.Tell("tcpdump", func(b *lib.Box) {
			b.Until(10*time.Second, "tcpdump shows the SYN as it came and as it left", func() bool {
				return strings.Contains(pipe.Said(), "IP "+lanHost+".") && strings.Contains(pipe.Said(), "IP "+fwWAN+".")
			})
		})
		b.Until(10*time.Second, "so does the file", func() bool {
			out, err := b.Try(lab.FW, "tcpdump", "-nr", kept)
			return err == nil && strings.Contains(out, "IP "+lanHost+".") && strings.Contains(out, "IP "+fwWAN+".")
		})
		asleep.Signal(syscall.SIGCONT)
		b.Until(10*time.Second, "the reader that slept has it all", func() bool {
			return strings.Contains(asleep.Said(), "rule 0/(match) ["+filepath.Base(file)+":2]: block in on lan0: "+lanHost)
		})
		for _, r := range records(b, p) {
			if strings.Contains(r.Packet, "ICMP echo") {
				b.Errorf("a ping is logged by %+v: %s", r.Rule, r.Packet)
			}
		}
		if lost := b.Info().Lost.Log; lost != 0 {
			b.Errorf("%d records were lost", lost)
		}
	})
}

// loggedPass tests curl's connection with match log, log (all) and log.
func loggedPass(b *lib.Box, p *lib.Process, file string) {
	b.ServeHello(lab.WAN, 8000)
	if got := b.Run(lab.LAN, "curl", "-sS", "http://"+wanHost+":8000/"); got != "hello\n" {
		b.Errorf("curl got %q", got)
	}
	b.Until(10*time.Second, "both FINs are logged", func() bool {
		all := records(b, p)
		fin := func(r logged) bool { return strings.Contains(r.Packet, "Flags [F") }
		return slices.ContainsFunc(of(all, 4, "in"), fin) && slices.ContainsFunc(of(all, 4, "out"), fin)
	})
	states := b.States("proto", "tcp", "port", "8000")
	if len(states) != 1 {
		b.Fatalf("states of one connection:\n%+v", states)
	}
	all := records(b, p)
	for _, want := range []struct {
		line      int
		direction string
		records   uint64
		first     string // the beginning of the first packet
	}{
		{3, "in", 1, lanHost},
		{4, "in", states[0].Src.Packets, lanHost},
		{4, "out", states[0].Dst.Packets, wanHost + ".8000 > " + lanHost},
		{5, "out", 1, fwWAN},
		{5, "in", 0, ""},
		{2, "in", 0, ""},
	} {
		got := of(all, want.line, want.direction)
		if uint64(len(got)) != want.records {
			b.Errorf("line %d has logged %d packets %s, want %d: %+v", want.line, len(got), want.direction, want.records, got)
			continue
		}
		for i, r := range got {
			// the packet that makes the state, and what log (all) adds
			makes := i == 0 && want.line != 4 || i == 0 && want.direction == "in"
			if r.All == makes || (r.Reason == reason.Rule) != makes || r.Verdict != pktrecord.Pass || filepath.Base(r.Rule.File) != file {
				b.Errorf("line %d, %s, record %d: %+v of %+v", want.line, want.direction, i, r, r.Rule)
			}
		}
		if len(got) > 0 && !strings.HasPrefix(strings.TrimPrefix(got[0].Packet, "IP "), want.first) {
			b.Errorf("line %d, %s: the first packet is %s, want one of %s", want.line, want.direction, got[0].Packet, want.first)
		}
	}
	if web := of(all, 4, "in"); len(web) > 0 && web[0].Rule.Label != "web" {
		b.Errorf("the rule's label is %q", web[0].Rule.Label)
	}
}

// loggedBlock: ports that nmap finds closed are in the log, and so is what the box itself
// may not send.
func loggedBlock(b *lib.Box, p *lib.Process) {
	b.Run(lab.LAN, "nmap", "-n", "-Pn", "-sT", "--max-retries", "0", "-p", "21-25", wanHost)
	for port := 21; port <= 25; port++ {
		want := fmt.Sprintf("> %s.%d:", wanHost, port)
		b.Until(10*time.Second, "the blocked packet to port "+fmt.Sprint(port)+" is logged", func() bool {
			return slices.ContainsFunc(of(records(b, p), 2, "in"), func(r logged) bool {
				return r.Verdict == pktrecord.Drop && r.Reason == reason.Block && r.Interface == "lan0" && strings.Contains(r.Packet, want)
			})
		})
	}
	b.Try(lab.FW, "sh", "-c", "echo hello | socat -t 0 - UDP4:"+wanHost+":9") //nolint:errcheck // not allowed
	b.Until(10*time.Second, "what the box sends is logged", func() bool {
		return slices.ContainsFunc(of(records(b, p), 2, "out"), func(r logged) bool {
			return r.Interface == "wan0" && strings.Contains(r.Packet, fwWAN+".") && strings.Contains(r.Packet, wanHost+".9:")
		})
	})
}

// loggedByOldRules: a state that logs all continues to do so under a ruleset that logs
// nothing. The records name the rule that made it.
func loggedByOldRules(b *lib.Box, p *lib.Process, file string) {
	b.Listen(lab.WAN, 8000, "socat", "-t", "30", "TCP4-LISTEN:8000,fork,reuseaddr", "EXEC:cat")
	gate := filepath.Join(b.TempDir(), "go")
	b.Run(lab.LAN, "mkfifo", gate)
	client := b.Start(lab.LAN, "sh", "-c", "(echo one; read x < "+gate+"; echo two) | socat -t 2 - TCP4:"+wanHost+":8000")
	b.Until(10*time.Second, "the connection stands", func() bool { return strings.Contains(client.Said(), "one") })
	b.Weir("load", b.Rules(strings.ReplaceAll(strings.ReplaceAll(logConf, "log (all) ", ""), "log ", "")))
	b.Until(10*time.Second, "the records of before are read", func() bool { return len(of(records(b, p), 4, "out")) > 0 })
	before := len(records(b, p))
	b.Run(lab.LAN, "sh", "-c", "echo > "+gate)
	if said := client.Wait(10*time.Second, 0); said != "one\ntwo\n" {
		b.Errorf("the client heard %q", said)
	}
	b.Until(10*time.Second, "the old rule logs on", func() bool {
		after := records(b, p)[before:]
		return slices.ContainsFunc(of(after, 4, "in"), func(r logged) bool {
			return r.Rule.Old && r.All && filepath.Base(r.Rule.File) == filepath.Base(file) && r.Length > 52
		})
	})
}

// matchesConf has rules before and behind one with log (matches).
const matchesConf = `set skip on lo
pass
match in log (matches) on lan0 proto { icmp icmp6 }
block in on lan0
match in on lan0 tag A
block in on lan0 proto udp
pass in on lan0 tagged A
pass in on lan0 to 192.0.2.1
`

//	lan ── ping ──▶ fw     fw: weir log --json
//
// A match rule with log (matches) has all rules logged that match behind it, also those that
// do not decide.
func TestLogMatches(t *testing.T) {
	weir.UnderTCX(t, func(b *lib.Box) {
		b.WeirRun(matchesConf)
		p := readLog(b, "--json")
		for _, to := range []string{fwLAN, fwLAN6} {
			b.Run(lab.LAN, "ping", "-n", "-c", "1", "-W", "2", to)
		}
		b.Until(10*time.Second, "the log has four records of each ping", func() bool { return len(records(b, p)) >= 8 })
		b.Run(lab.LAN, "sh", "-c", "echo x | socat -u - UDP4:"+fwLAN+":9") // logged by none
		b.Run(lab.LAN, "ping", "-n", "-c", "1", "-W", "2", fwLAN)
		b.Until(10*time.Second, "the log has four more", func() bool { return len(records(b, p)) >= 12 })
		all := records(b, p)
		for line, want := range map[int]int{3: 3, 4: 3, 5: 3, 7: 3} {
			if got := of(all, line, "in"); len(got) != want {
				b.Errorf("line %d has logged %d packets, want %d", line, len(got), want)
			}
		}
		if len(all) != 12 {
			b.Errorf("there are %d records, want 12:\n%s", len(all), p.Said())
		}
	})
}
