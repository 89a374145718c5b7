package test

import (
	"strings"
	"testing"
	"time"
)

// statements are what users add to rules, by kind. Each is loaded for the first time.
var statements = []struct{ name, options, rules string }{
	{"block", "", "block in on wan0 proto tcp to port 7\n"},
	{"nat-to", "", "match out on wan0 inet from 10.9.0.0/16 nat-to (wan0)\n"},
	{"nat-to pool", "", "match out on wan0 inet from 10.9.0.0/16 nat-to 192.0.2.0/28 source-hash\n"},
	{"binat-to", "", "match on wan0 inet from 10.9.0.1 to any binat-to 192.0.2.7\n"},
	{"rdr-to", "", "pass in on wan0 inet proto tcp to port 80 rdr-to 10.9.0.1\n"},
	{"rdr-to sticky-address", "", "pass in on wan0 inet proto tcp to port 80 rdr-to { 10.9.0.1, 10.9.0.2 } round-robin sticky-address\n"},
	{"rdr-to least-states", "", "pass in on wan0 inet proto tcp to port 80 rdr-to { 10.9.0.1, 10.9.0.2 } least-states\n"},
	{"af-to", "", "pass in on lan0 inet6 to 64:ff9b::/96 af-to inet from (wan0)\n"},
	{"route-to", "", "pass in on lan0 inet proto tcp to port 25 route-to 198.51.100.1\n"},
	{"dup-to", "", "pass in on lan0 inet proto tcp to port 25 dup-to 198.51.100.1\n"},
	{"divert-to", "", "pass in on lan0 inet proto tcp to port 21 divert-to 127.0.0.1 port 8021\n"},
	{"antispoof", "", "antispoof for lan0\n"},
	{"log", "", "block in log on wan0 proto tcp to port 7\n"},
	{"scrub", "", "match in scrub (no-df random-id max-mss 1440)\n"},
	{"scrub reassemble tcp", "", "match in scrub (reassemble tcp)\n"},
	{"synproxy state", "", "pass in on wan0 proto tcp to port 22 synproxy state\n"},
	{"max-src-conn-rate", "table <bad> persist\n", "pass in on wan0 proto tcp to port 22 keep state (max-src-conn-rate 5/30, overload <bad> flush global)\n"},
	{"keep state (if-bound)", "", "pass out on wan0 proto tcp to port 22 keep state (if-bound)\n"},
	{"user", "", "pass out on wan0 proto tcp user root\n"},
	{"urpf-failed", "", "block in from urpf-failed\n"},
	{"state limiter", "state limiter few id 1 limit 100\n", "pass in on lan0 proto tcp to port 22 state limiter few\n"},
	{"table", "table <t> { 198.51.100.0/24 }\n", "block in from <t>\n"},
	{"anchor", "", "anchor \"a\"\n"},
	{"set timeout", "set timeout tcp.established 3600\n", ""},
	{"set optimization", "set optimization aggressive\n", ""},
	{"set limit states", "set limit states 90000\n", ""},
	{"set limit states, four times", "set limit states 400000\n", ""},
	{"set skip", "set skip on lan7\n", ""},
	{"set block-policy", "set block-policy return\n", ""},
	{"set state-policy if-bound", "set state-policy if-bound\n", ""},
	{"set loginterface", "set loginterface wan0\n", ""},
	{"set debug", "set debug info\n", ""},
	{"set hostid", "set hostid 7\n", ""},
	{"set ruleset-optimization", "set ruleset-optimization none\n", ""},
	{"set reassemble no", "set reassemble no\n", ""},
	{"set mark-mask", "set mark-mask 0x07000000\n", ""},
	{"set spread", "set spread lan0 auto\n", ""},
	{"queue", "queue up on wan0 bandwidth 10M default\n", ""},
	{"5000 rules", "", manyRules(5000, 4711)},
}

// BenchmarkReloadStatement measures the first load of each statement that users add to 50 rules. It
// prints ms for each, and whether all programs were loaded anew.
//
//	go test -run '^$' -bench BenchmarkReloadStatement -benchtime 1x ./test
func BenchmarkReloadStatement(b *testing.B) {
	for _, hook := range []string{"tcx", "xdp"} {
		for _, s := range statements {
			b.Run(hook+"/"+s.name, func(b *testing.B) {
				box := weir.Box(b, hook)
				base := manyRules(50, 4711)
				daemon := box.WeirRun(base)
				file := box.Rules(s.options + base + s.rules)
				var took time.Duration
				for b.Loop() {
					begin := time.Now()
					box.Weir("load", file)
					took = time.Since(begin)
				}
				said := daemon.Said()
				b.ReportMetric(float64(took.Microseconds())/1000, "ms")
				anew := 0.0
				if _, why, ok := strings.Cut(said, "all programs are loaded anew"); ok {
					anew = 1
					line, _, _ := strings.Cut(why, "\n")
					b.Log(line)
				}
				b.ReportMetric(anew, "anew")
			})
		}
	}
}
