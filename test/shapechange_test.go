package test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"weir/internal/fw/view"
	"weir/internal/lab"
	"weir/test/lib"
)

// slowHost6 is far's IPv6 address behind the delay line.
const slowHost6 = "2001:db8:18::2"

// payload6 is the part of payload with IPv6.
const payload6 = 1428.0 / 1538

// slowIPv6 lets IPv6 use the delay line.
func slowIPv6(b *lib.Box) {
	b.Address(lab.WAN, "slow0", "2001:db8:18::1/126")
	b.Address(lib.Far, "slow0", slowHost6+"/126")
	b.IP(lib.Far, "-6 route replace default via 2001:db8:18::1 dev slow0")
	b.IP(lab.FW, "route add 2001:db8:18::/126 via "+wanHost6)
}

// arrivals are what a device has received over time.
type arrivals struct {
	at    []time.Time
	bytes []float64 // on an Ethernet line, until then
}

// countArrivals counts what arrives by a device without Ethernet headers, until stop is called.
func countArrivals(b *lib.Box, host, device string) (stop func() *arrivals) {
	b.Helper()
	a, end, done := new(arrivals), make(chan struct{}), make(chan error, 1)
	go func() {
		done <- b.Do(host, func() error {
			for {
				text, err := os.ReadFile("/proc/thread-self/net/dev")
				if err != nil {
					return err
				}
				now := time.Now()
				for line := range strings.Lines(string(text)) {
					name, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
					if name != device {
						continue
					}
					var bytes, packets float64
					if _, err := fmt.Sscan(rest, &bytes, &packets); err != nil {
						return err
					}
					a.at, a.bytes = append(a.at, now), append(a.bytes, bytes+38*packets)
				}
				select {
				case <-end:
					return nil
				case <-time.After(10 * time.Millisecond):
				}
			}
		})
	}()
	return func() *arrivals {
		b.Helper()
		close(end)
		if err := <-done; err != nil || len(a.at) == 0 {
			b.Fatalf("count what arrives: %v", err)
		}
		return a
	}
}

// index returns the first count at or after a time.
func (a *arrivals) index(at time.Time) int {
	for i := range a.at {
		if !a.at[i].Before(at) {
			return i
		}
	}
	return len(a.at) - 1
}

// rate returns the bit/s between two times.
func (a *arrivals) rate(from, to time.Time) float64 {
	i, k := a.index(from), a.index(to)
	return (a.bytes[k] - a.bytes[i]) * 8 / a.at[k].Sub(a.at[i]).Seconds()
}

// highest returns the highest bit/s of any 250 ms that lie between two times.
func (a *arrivals) highest(from, to time.Time) (most float64) {
	for i := a.index(from); a.at[i].Add(250 * time.Millisecond).Before(to); i++ {
		if k := a.index(a.at[i].Add(250 * time.Millisecond)); a.at[k].Sub(a.at[i]) < 300*time.Millisecond { // else the counter was late
			most = max(most, (a.bytes[k]-a.bytes[i])*8/a.at[k].Sub(a.at[i]).Seconds())
		} else if k == len(a.at)-1 {
			break
		}
	}
	return most
}

// Classes come and go under traffic. Pings lose nothing, the connections make no burst, and a second later the line
// has its new rate.
func shapedOtherClasses(b *lib.Box) {
	more := strings.Replace(shapeRules, "queue rest parent", "queue guest parent up bandwidth 5M\nqueue rest parent", 1)
	fewer := strings.NewReplacer("wan0 bandwidth 50M", "wan0 bandwidth 20M", "queue voice parent up bandwidth 10M\n", "",
		"pass out on wan0 proto tcp to port 5202 set queue voice\n", "").Replace(shapeRules)
	for tries := 1; ; tries++ {
		port := strconv.Itoa(5205 + tries) // the server of connections that are broken off is of no more use
		rules := func(text string) string { return b.Rules(strings.Replace(text, "port 5201", "port "+port, 1)) }
		b.Listen(lib.Far, uint16(5205+tries), "iperf3", "-s", "-p", port)
		b.Weir("load", rules(shapeRules))
		stop := countArrivals(b, lib.Far, "slow0")
		bulk := b.Start(lab.LAN, "iperf3", "-c", slowHost, "-p", port, "-P", "8", "-C", "cubic", "-t", "60")
		pings := b.FloodEvery(lab.LAN, slowHost, 20*time.Millisecond)
		time.Sleep(3 * time.Second)
		began := time.Now()
		b.Weir("load", rules(more))
		added := time.Now()
		time.Sleep(time.Second)
		before := time.Now()
		b.Weir("load", rules(fewer))
		removed := time.Now()
		time.Sleep(2500 * time.Millisecond)
		a := stop()
		pings.AllAnswered(250)
		bulk.Kill()
		first, steady := a.highest(began, before)/50e6, a.highest(began.Add(-1500*time.Millisecond), began)/50e6
		second := a.highest(removed.Add(50*time.Millisecond), removed.Add(time.Second)) / 20e6
		later := a.rate(removed.Add(time.Second), removed.Add(2500*time.Millisecond)) / 20e6
		b.Logf("loads of %v and %v; the highest 250 ms have %.2f of the rate, %.2f with another class, %.2f without one at another rate; then %.2f",
			added.Sub(began).Round(time.Millisecond), removed.Sub(before).Round(time.Millisecond), steady, first, second, later)
		if first > 1.5 || second > 1.5 || later > 1.08 {
			b.Errorf("with another class the highest 250 ms have %.2f of the rate, with fewer %.2f, and then the line has %.2f", first, second, later)
		}
		if later > leastOfRate {
			return
		}
		if tries == 3 { // a busy machine may send less
			b.Fatalf("a second later the line carries %.2f of its rate", later)
		}
	}
}

// shareRules have hosts behind translation share both directions of the uplink, in one class each.
const shareRules = `
queue up on wan0 bandwidth 20M engine phantom fair host-flow default
queue down on wan0 in bandwidth 20M engine phantom fair host-flow default

set skip on lo
match out on wan0 inet from (lan0:network) nat-to (wan0)
match out on wan0 inet6 from (lan0:network) nat-to (wan0:0)
pass
`

// BBR takes the whole rate and no more, and no more beside CUBIC than its half.
func shapedBBR(b *lib.Box) {
	carries(b, "BBR", 20e6*payload, "-p", "5201", "-C", "bbr", "-t", "4", "-O", "1")
	var rates [2]float64
	var both sync.WaitGroup
	for i, algorithm := range []string{"bbr", "cubic"} {
		both.Go(func() {
			rates[i] = iperf3Rate(b, "-p", strconv.Itoa(5201+i), "-C", algorithm, "-t", "5", "-O", "2")
		})
	}
	both.Wait()
	isRate(b, "BBR and CUBIC", 20e6*payload, rates[0]+rates[1])
	part := rates[0] / (rates[0] + rates[1])
	if b.Logf("BBR has %.2f beside CUBIC", part); part < 0.38 || part > 0.62 {
		b.Errorf("BBR has %.2f of the line beside CUBIC", part)
	}
}

// shapedIPv6 has IPv6 keep within the rate, too, both ways at once. Acknowledgements of the other way need a part of it.
func shapedIPv6(b *lib.Box) {
	var both sync.WaitGroup
	both.Go(func() { carriesTo(b, lab.LAN, slowHost6, "IPv6", 19e6*payload6, "-p", "5201", "-t", "4", "-O", "1") })
	both.Go(func() {
		carriesTo(b, lab.LAN, slowHost6, "IPv6 down", 19e6*payload6, "-p", "5202", "-t", "4", "-O", "1", "-R")
	})
	both.Wait()
}

// shapedHosts has a host with one connection beside another with eight: each has its half, both ways.
func shapedHosts(b *lib.Box) {
	hostsShare(b, slowHost, 0.4, 0.6)
	hostsShare(b, slowHost, 0.4, 0.6, "-R")
}

// thousandRules are those of a line with a thousand queues. The connections to the ports 5201 and 5202 are in
// the first two.
func thousandRules(engine string) string {
	var text strings.Builder
	fmt.Fprintf(&text, "queue up on wan0 bandwidth 50M engine %s\nqueue rest parent up bandwidth 1M default\n", engine)
	for i := range 1000 {
		rate := map[int]string{0: "4M max 4M", 1: "8M max 8M"}[i]
		if rate == "" {
			rate = "30K"
		}
		fmt.Fprintf(&text, "queue c%d parent up bandwidth %s\n", i, rate)
	}
	text.WriteString("set skip on lo\nmatch out on wan0 inet from (lan0:network) nat-to (wan0)\npass\n")
	for i := range 1000 {
		fmt.Fprintf(&text, "pass out on wan0 proto tcp to port %d set queue c%d\n", 5201+i, i)
	}
	return text.String()
}

// holdsAThousand loads a thousand queues. Two of them hold their rates.
func holdsAThousand(b *lib.Box, engine string) {
	began := time.Now()
	b.Weir("load", b.Rules(thousandRules(engine)))
	b.Logf("engine %s: a thousand queues are loaded in %v", engine, time.Since(began).Round(10*time.Millisecond))
	tree := lib.WeirJSON[view.Queues](b, "queues", "--json").Trees[0]
	if len(tree.Queues) != 1002 || tree.Engine != engine {
		b.Fatalf("engine %s has %d queues", tree.Engine, len(tree.Queues))
	}
	var both sync.WaitGroup
	for i, rate := range []float64{4e6, 8e6} {
		both.Go(func() {
			carries(b, fmt.Sprint("of a thousand queues, c", i), rate*payload, "-p", strconv.Itoa(5201+i), "-t", "5", "-O", "2", "-l", "4000")
		})
	}
	both.Wait()
	for i, q := range lib.WeirJSON[view.Queues](b, "queues", "--json").Trees[0].Queues[2:4] {
		if q.Name != fmt.Sprint("c", i) || q.Sent < 1e6 {
			b.Errorf("the queue %s has sent %d bytes", q.Name, q.Sent)
		}
	}
}
