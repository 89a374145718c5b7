package rfc

import (
	"context"

	"weir/internal/bench/tester"
	"weir/internal/bench/traffic"
	"weir/internal/bench/web"
)

// clientSeconds estimates one run of clients.
func clientSeconds(o *Options) float64 { return 1.5 + o.Sustain.Seconds() + 2*o.Ramp.Seconds() }

func heldSeconds(o *Options) float64 {
	return 2 + float64(heldConnections(o))*3e-4 + o.Sustain.Seconds()
}

// floods are the variants in frames per second.
func floods(*Options) []int { return []int{0, 10_000, 100_000} }

// shares are percentages of illegal frames.
func shares(*Options) []int { return []int{10, 50} }

// measureIllegal measures the throughput of legal frames mixed with frames that no rule
// passes.
func measureIllegal(ctx context.Context, b *bench, path string, percent int) (f finding, err error) {
	c := b.stamped(64)
	err = b.with(ctx, path, c, func(r *tester.Tester) error {
		l := tester.Load{Stamps: true, IllegalEvery: uint32(100 / percent)}
		found, err := b.throughput(ctx, r, c.Frame, tolerance, l, &f)
		f.take(&found, found.nothing("over 0.1 % of the legal frames were lost"),
			found.figure("legal frames", "Mpps", (1-float64(percent)/100)/mega), less("illegal frames that passed", "", float64(f.illegal)))
		return err
	})
	return f, err
}

func rfc3511() Standard {
	large64 := func(*Options) []int { return []int{small, 64 << 10} }
	return Standard{
		Name: "rfc3511", Frames: true, Connections: true, Clients: true, Title: "RFC 3511: firewalls",
		About: "frames through rules, connections by TCP, HTTP, a flood of SYNs, traffic that the rules forbid, fragments",
		Tests: []Test{
			{Name: "throughput", Title: "IP throughput", Where: "RFC 3511, section 5.1", unit: "bytes", variants: frameSizes,
				About:   "The highest rate through the rules at which no frame is lost, by search.",
				seconds: searchSeconds, measure: measureThroughput},
			{Name: "capacity", Title: "Concurrent TCP connection capacity", Where: "RFC 3511, section 5.2",
				About:      "Connections that were set up by three frames and by which data then went both ways, at once.",
				unsuitable: onlyStates, seconds: onceSeconds, measure: measureCapacity(traffic.TCP)},
			{Name: "setup", Title: "Maximum TCP connection establishment rate", Where: "RFC 3511, section 5.3",
				About:      "The highest rate, by search, at which every one of up to 16,384 connections is set up and carries data, its frames written by the generator.",
				unsuitable: onlyStates, seconds: stateSeconds, measure: measureConnectionRate(traffic.TCP, "connections set up", "connections were not set up", establish)},
			{Name: "setup-time", Title: "TCP connection set-up by clients", Where: "RFC 3511, section 5.3",
				About:   "Clients connect as fast as they can; how long each connection took to set up.",
				seconds: clientSeconds, measure: measureCPS(false)},
			{Name: "teardown", Title: "Maximum TCP connection tear-down rate", Where: "RFC 3511, section 5.4",
				About:      "The highest rate, by search, at which every reset of up to 16,384 connections crosses.",
				unsuitable: onlyStates, seconds: stateSeconds, measure: measureConnectionRate(traffic.TCP, "connections ended", "ends of connections were lost", tearDown)},
			{Name: "flood", Title: "Denial of service", Where: "RFC 3511, section 5.5", unit: "SYN per second", variants: floods,
				About:   "Clients connect while the generator sends SYNs that nobody completes, each of another connection.",
				seconds: clientSeconds, measure: measureFlood},
			{Name: "transfer", Title: "HTTP transfer rate", Where: "RFC 3511, section 5.6", unit: "bytes", variants: large64,
				About:   "Ten objects by each connection, as fast as they come.",
				seconds: clientSeconds, measure: measureTransfer(false)},
			{Name: "transactions", Title: "Maximum HTTP transaction rate", Where: "RFC 3511, section 5.7",
				About:   "Objects of 1 KiB, a thousand by each connection, as fast as they come.",
				seconds: clientSeconds, measure: measureTransactions},
			{Name: "illegal", Title: "Illegal traffic", Where: "RFC 3511, section 5.8", unit: "% illegal", variants: shares,
				About:      "The highest rate of legal frames with at most 0.1 % loss while others come from a network that the rules forbid.",
				unsuitable: onlyStates, seconds: searchSeconds, measure: measureIllegal},
			{Name: "fragments", Title: "IP fragmentation", Where: "RFC 3511, section 5.9",
				About:   "Datagrams of 2,800 bytes, each in two fragments, between sockets.",
				seconds: clientSeconds, measure: measureFragments},
			{Name: "latency", Title: "Latency of frames", Where: "RFC 3511, section 5.10", unit: "bytes", variants: frameSizes,
				About:   "As RFC 2544's, through the rules.",
				seconds: latencySeconds, measure: measureLatency},
			{Name: "latency-http", Title: "Latency of HTTP", Where: "RFC 3511, section 5.10",
				About:   "Time to the first and the last byte of objects of 1 KiB at half the load that bare routing carries.",
				seconds: clientSeconds, measure: measureResponse(false, small)},
		},
		Differs: []string{
			"Frames of throughput and latency go one way. NAT on and off are the paths with and without -nat; both have the rules of examples/.",
			"Set-up and tear-down rates are those of frames that the generator writes, because sockets on the same machine take many times longer than the firewall. The rates of sockets are shown too.",
			"Before each trial of set-up and tear-down the path is built anew: ended states that still exist would slow it down. The client's reset ends connections, not four frames: no proxy or server takes part.",
			"The flood's rates are fixed. It fills the state table, whose limit is that of the example rules (100,000 states) or conntrack's own. A path with a full table opens no connections, so long and fast floods compare these limits.",
			"Logging is off, as in the example rules.",
		},
	}
}

// secured makes a test for HTTP and one for HTTPS.
func secured(make func(secure bool) Test) []Test { return []Test{make(false), make(true)} }

func word(secure bool, plain, https string) string {
	if secure {
		return https
	}
	return plain
}

func rfc9411() Standard {
	sizes := func(*Options) []int { return []int{small, 64 << 10, large} }
	var tests []Test
	tests = append(tests, secured(func(s bool) Test {
		return Test{Name: word(s, "cps", "https-cps"), Title: "Connections per second with " + word(s, "HTTP", "HTTPS"),
			Where: "RFC 9411, section " + word(s, "7.2", "7.6"), About: "One object of 1 KiB by each connection.",
			seconds: clientSeconds, measure: measureCPS(s)}
	})...)
	tests = append(tests, secured(func(s bool) Test {
		return Test{Name: word(s, "throughput", "https-throughput"), Title: word(s, "HTTP", "HTTPS") + " throughput",
			Where: "RFC 9411, section " + word(s, "7.3", "7.7"), About: "Ten objects by each connection.", unit: "bytes", variants: sizes,
			seconds: clientSeconds, measure: measureTransfer(s)}
	})...)
	tests = append(tests, secured(func(s bool) Test {
		return Test{Name: word(s, "latency", "https-latency"), Title: word(s, "HTTP", "HTTPS") + " transaction latency",
			Where:   "RFC 9411, section " + word(s, "7.4", "7.8"),
			About:   "Time to the first and the last byte of objects of 1 KiB at half of the connections per second that bare routing carries.",
			seconds: clientSeconds, measure: measureResponse(s, small)}
	})...)
	tests = append(tests, secured(func(s bool) Test {
		return Test{Name: word(s, "connections", "https-connections"), Title: "Concurrent connections with " + word(s, "HTTP", "HTTPS"),
			Where:   "RFC 9411, section " + word(s, "7.5", "7.9"),
			About:   "Connections that fetch an object of 1 KiB, stay open for the sustained phase, and fetch another.",
			seconds: heldSeconds, measure: measureHeld(s)}
	})...)
	return Standard{
		Name: "rfc9411", Connections: true, Clients: true, Title: "RFC 9411: network security devices",
		About: "connections per second, throughput, latency and concurrent connections with HTTP and HTTPS",
		Tests: tests,
		Differs: []string{
			"Clients and servers run on the same cores as the firewall. Bare routing shows what they reach alone: they limit any path that does not differ from it.",
			"The requested number of clients works as fast as possible: there is no ramp to a number of connections from an earlier run.",
			"There are no inspection, no lists of threats and no mix of applications (sections 4.2 and 7.1): weir has no such features.",
			"A run with more than 0.001 % of failed transactions, or of connections refused or reset, is shown as invalid and not compared.",
		},
	}
}

func objects() Standard {
	return Standard{
		Name: "web", Clients: true, Title: "Web objects from nginx",
		About: "how long they take to the last byte: the share under 100 ms, and the whole curve",
		Tests: []Test{{
			Name: "objects", Title: "Time to the last byte", Where: "as web servers' logs have it",
			About: "Visitors come at a fixed rate, half of what bare routing carried; each opens a connection and fetches one object of 24 to 350 KiB. " +
				"The time is from when the visitor came to the last byte, connecting included.",
			missing: web.NginxMissing, seconds: clientSeconds, measure: measureObjects,
		}},
		Differs: []string{
			"Visitors do not wait for each other. If all clients are busy, the visitor's wait counts.",
		},
	}
}
