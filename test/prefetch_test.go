package test

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"weir/internal/lab"
	"weir/test/lib"
)

// prefetch turns prefetching on with any number of states.
var prefetch = []string{"--prefetch", "on"}

//	lan ═══ iperf3 -u, TCP ═══▶ wan     fw: weir handles packets in two passes; loads, other
//	                                        tables, take-overs, kill -9, off and on
//
// Packets queued between two passes are not lost, whatever happens to weir, and none
// leaves untranslated: the server sees only the gateway's address.
func TestPrefetchLosesNothing(t *testing.T) {
	b := weir.Box(t, "xdp")
	b.WeirRun(gatewayConf(t), prefetch...)
	b.Until(5*time.Second, "packets are prefetched", func() bool { return b.Info().Prefetching })
	b.Ping(lab.LAN, wanHost, 2) // neighbours are known
	spy := b.Start(lab.WAN, "tcpdump", "-n", "-i", "eth0", "-c", "1", "src", "net", "192.168.0.0/16")
	b.Until(5*time.Second, "tcpdump listens", func() bool { return strings.Contains(spy.Said(), "listening") })
	b.Listen(lab.WAN, 5201, "iperf3", "-s", "-1")
	b.Listen(lab.WAN, 5202, "iperf3", "-s", "-1", "-p", "5202")
	const seconds = "30"
	udp := b.Start(lab.LAN, "iperf3", "-c", wanHost, "-u", "-b", "4M", "-l", "500", "-t", seconds, "-J")
	tcp := b.Start(lab.LAN, "iperf3", "-c", wanHost, "-p", "5202", "-b", "20M", "-t", seconds, "-J")
	_, other, anew := loads(b, gatewayText(t))
	larger := b.Rules(strings.Replace(gatewayText(t), "set limit states 100000", "set limit states 200000", 1))
	for _, file := range []string{other, anew, gatewayConf(t)} {
		b.Weir("load", file)
	}
	b.Weir("load", larger)
	b.Until(5*time.Second, "packets are prefetched over new tables", func() bool { return b.Info().Prefetching })
	b.WeirRun(larger, prefetch...)
	b.WeirRun(larger, "--prefetch", "auto")
	b.Until(5*time.Second, "weir info says that there are too few states", func() bool {
		return strings.Contains(b.Weir("info"), "\nPackets are not prefetched: the states fit into the caches (it begins with 49,152")
	})
	off := b.WeirRun(larger, "--prefetch", "off")
	b.Until(5*time.Second, "cannot prefetch packets", func() bool { i := b.Info(); return !i.Prefetching && i.PrefetchOff == "weir run --prefetch off" })
	off.Kill()
	last := b.WeirRun(larger, prefetch...)
	b.Until(5*time.Second, "packets are prefetched again", func() bool { return b.Info().Prefetching })
	last.Kill()
	if b.Info().Prefetching != true {
		b.Error("the end of the daemon has ended prefetching")
	}
	var report struct {
		End struct {
			Sum struct {
				Packets int `json:"packets"`
				Lost    int `json:"lost_packets"`
			} `json:"sum"`
		} `json:"end"`
	}
	said := udp.Wait(60*time.Second, 0)
	if err := json.Unmarshal([]byte(said), &report); err != nil {
		b.Fatalf("iperf3 -u said %v:\n%s", err, said)
	}
	// a server without time loses packets that have reached it
	if s, late := report.End.Sum, notRead(b); s.Lost > late || s.Packets < 29_000 {
		b.Errorf("iperf3 -u: %d of %d packets lost, %d of them by its own server", s.Lost, s.Packets, late)
	}
	said = tcp.Wait(60*time.Second, 0)
	if !strings.Contains(said, `"sum_received"`) {
		b.Errorf("iperf3 over TCP:\n%s", said)
	}
	spy.Signal(syscall.SIGTERM)
	if said := spy.Wait(5*time.Second, 0); !strings.Contains(said, "0 packets captured") {
		b.Errorf("packets left untranslated:\n%s", said)
	}
}

// notRead returns how many packets did not fit into the sockets of wan.
func notRead(b *lib.Box) int {
	b.Helper()
	var names []string
	for line := range strings.Lines(b.Run(lab.WAN, "cat", "/proc/net/snmp")) {
		words := strings.Fields(line)
		if words[0] != "Udp:" {
			continue
		}
		if names == nil {
			names = words
			continue
		}
		n, err := strconv.Atoi(words[slices.Index(names, "RcvbufErrors")])
		if err != nil {
			b.Fatal(err)
		}
		return n
	}
	b.Fatal("the kernel does not count what sockets had no room for")
	return 0
}
