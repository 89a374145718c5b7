package test

import (
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"weir/internal/fw/view"
	"weir/internal/lab"
	"weir/test/lib"
)

// A line of 15 Mbit/s, says the file.
const autorateRules = `
queue up on wan0 bandwidth 15M
queue first parent up bandwidth 10% min 20%
queue rest parent up bandwidth 90% default

set skip on lo
match out on wan0 inet from (lan0:network) nat-to (wan0)
pass
`

// modem is the queue behind weir, in bytes: a second at 8 Mbit/s.
const modem = 1_000_000

//	lan ──▶ fw: queues ──▶ wan: 20, 8, 20 Mbit/s and a modem's queue ══ 30 ms ══ far: iperf3 -s
//
// The line slows down beside a bulk connection. With autorate, pings do not wait in the modem's queue
// for long, and the queues get the line's rate, also when it is back. Without it they wait for hundreds
// of milliseconds. From the next load on packets wait in the kernel's queue, as a modem's was seen.
func TestAutorate(t *testing.T) {
	weir.FarUnderTCX(t, func(b *lib.Box) {
		b.DelayLine(lab.WAN, "slow0", lib.Far, "slow0", 30*time.Millisecond)
		b.Address(lab.WAN, "slow0", "198.18.0.1/29")
		b.Address(lib.Far, "slow0", slowHost+"/29", "198.18.0.3/29", "198.18.0.4/29")
		b.IP(lib.Far, "route replace default via 198.18.0.1 dev slow0")
		b.IP(lab.FW, "route add 198.18.0.0/29 via "+wanHost)
		b.SlowLine(lab.WAN, "slow0", 20, modem)
		daemon := b.WeirRun(autorateRules)
		b.Listen(lib.Far, 5201, "iperf3", "-s")
		b.Tell("by hand", rateByHand)
		b.Tell("by a load", func(b *lib.Box) { rateByLoad(b, daemon) })
		b.SlowLine(lab.WAN, "slow0", 8, modem)
		var without float64
		b.Tell("without", func(b *lib.Box) {
			bulk := b.Start(lab.LAN, "iperf3", "-c", slowHost, "-P", "8", "-t", "5")
			time.Sleep(3 * time.Second)
			without = loadedPing(b, 20)
			bulk.Wait(10*time.Second, 0)
		})
		b.Tell("with", func(b *lib.Box) { autorateFollows(b, without) })
	})
}

// A rate is set, shown and taken back.
func rateByHand(b *lib.Box) {
	b.Weir("qos", "rate", "wan0", "4M")
	if text := b.Weir("queues"); !strings.Contains(text, "rate set by hand: 4M of 15M") {
		b.Errorf("weir queues prints\n%s", text)
	}
	tree := lib.WeirJSON[view.Queues](b, "queues", "--json").Trees[0]
	if tree.Rate != 500_000 || tree.OfRules != 1_875_000 || tree.SetBy != "by hand" {
		b.Errorf("weir queues --json shows %+v", tree)
	}
	b.Weir("qos", "rate", "wan0", "out", "rules")
	if text := b.Weir("queues"); strings.Contains(text, "rate set") {
		b.Errorf("weir queues prints\n%s", text)
	}
	if said, status := b.WeirStatus("qos", "rate", "wan0", "in", "4M"); status != 1 || !strings.Contains(said, "the rules define no queues there") {
		b.Errorf("status %d: %s", status, said)
	}
}

// A file that differs only in rates is loaded without programs. A rate that was set by hand ends.
func rateByLoad(b *lib.Box, daemon *lib.Process) {
	b.Weir("qos", "rate", "wan0", "4M")
	before := strings.Count(daemon.Said(), "replaced in place")
	began := time.Now()
	b.Weir("load", b.Rules(strings.Replace(autorateRules, "15M", "12M", 1)))
	b.Logf("other rates are loaded in %v", time.Since(began))
	tree := lib.WeirJSON[view.Queues](b, "queues", "--json").Trees[0]
	if tree.Rate != 1_500_000 || tree.OfRules != 1_500_000 || tree.SetBy != "" || tree.Queues[1].Name != "first" {
		b.Errorf("after a load with 12M: %+v", tree)
	}
	b.Weir("load", b.Rules(autorateRules))
	b.Until(5*time.Second, "the daemon says that both loads were in place", func() bool {
		return strings.Count(daemon.Said(), "replaced in place") == before+2
	})
}

func autorateFollows(b *lib.Box, without float64) {
	log := filepath.Join(b.TempDir(), "log.csv")
	b.SlowLine(lab.WAN, "slow0", 20, modem)
	follower := b.WeirCommand("qos", "autorate", "-i", "wan0", "--probe", slowHost+",198.18.0.3,198.18.0.4",
		"--up-min", "2M", "--up-max", "30M", "--log", log)
	time.Sleep(time.Second)
	bulk := b.Start(lab.LAN, "iperf3", "-c", slowHost, "-P", "8", "-t", "60")
	time.Sleep(6 * time.Second)
	b.SlowLine(lab.WAN, "slow0", 8, modem)
	time.Sleep(4 * time.Second)
	loaded := loadedPing(b, 60)
	if loaded > 100 || without < 2*loaded {
		b.Errorf("a ping takes %.0f ms on the slower line, and %.0f ms without autorate", loaded, without)
	}
	rateIs(b, 2.5, 10)
	b.Logf("a ping takes %.0f ms, and %.0f ms without autorate", loaded, without)
	b.SlowLine(lab.WAN, "slow0", 20, modem)
	back := time.Now()
	for lineRate(b) < 13e6 && time.Since(back) < lib.Scaled(35*time.Second) {
		time.Sleep(500 * time.Millisecond)
	}
	b.Logf("the line is used again after %v", time.Since(back))
	rateIs(b, 13, 24)
	bulk.Kill()
	follower.Signal(syscall.SIGTERM)
	follower.Wait(5*time.Second, 0)
	if tree := lib.WeirJSON[view.Queues](b, "queues", "--json").Trees[0]; tree.Rate != tree.OfRules || tree.SetBy != "" {
		b.Errorf("after autorate: %+v", tree)
	}
	checkAutorateLog(b, log)
	b.Weir("load", b.Rules(autorateRules))
	const measured = "a queue was measured behind wan0"
	if tree := lib.WeirJSON[view.Queues](b, "queues", "--json").Trees[0]; tree.Engine != "queue" || !strings.HasPrefix(tree.Why, measured) {
		b.Errorf("autorate has seen packets wait; after the next load: engine %s: %s; want queue: %s", tree.Engine, tree.Why, measured)
	}
}

// lineRate returns the rate of the queues, in bit/s.
func lineRate(b *lib.Box) float64 {
	return float64(lib.WeirJSON[view.Queues](b, "queues", "--json").Trees[0].Rate) * 8
}

// rateIs checks the rate that autorate has set, in Mbit/s.
func rateIs(b *lib.Box, least, most float64) {
	b.Helper()
	tree := lib.WeirJSON[view.Queues](b, "queues", "--json").Trees[0]
	if rate := float64(tree.Rate) * 8 / 1e6; rate < least || rate > most || tree.SetBy != "by autorate" {
		b.Errorf("the rate is %.2fM, set %s; want %.3gM to %.3gM", rate, tree.SetBy, least, most)
	} else {
		b.Logf("the rate is %.2fM", rate)
	}
}

// checkAutorateLog checks that the log can be read, and says why the rate went down and up.
func checkAutorateLog(b *lib.Box, path string) {
	b.Helper()
	file, err := os.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	lines, err := csv.NewReader(file).ReadAll()
	if err != nil {
		b.Fatal(err)
	}
	reasons := make(map[string]int)
	for _, line := range lines[1:] {
		reasons[line[5]]++
		if rate, err := strconv.ParseFloat(line[2], 64); err != nil || rate < 2 || rate > 30 {
			b.Errorf("the log has the rate %s", line[2])
		}
	}
	if len(lines) < 30 || reasons["delay"] == 0 || reasons["load"] == 0 || lines[0][2] != "up_rate" {
		b.Errorf("the log has %d lines, by reason %v, and begins with %v", len(lines), reasons, lines[0])
	}
	b.Logf("%d lines: %v", len(lines), reasons)
	if b.Failed() {
		for _, line := range lines {
			b.Log(strings.Join(line, ","))
		}
	}
}

var pingTime = regexp.MustCompile(`time=([0-9.]+) ms`)

// loadedPing returns the median of pings, in milliseconds. Those without an answer count as long.
func loadedPing(b *lib.Box, n int) float64 {
	b.Helper()
	out, _ := b.Try(lab.LAN, "ping", "-i", "0.05", "-c", fmt.Sprint(n), "-W", "2", slowHost) //nolint:errcheck // some may be lost
	var times []float64
	for _, m := range pingTime.FindAllStringSubmatch(out, -1) {
		if ms, err := strconv.ParseFloat(m[1], 64); err == nil {
			times = append(times, ms)
		}
	}
	for len(times) < n {
		times = append(times, 2000)
	}
	slices.Sort(times)
	return times[n/2]
}
