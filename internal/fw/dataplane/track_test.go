package dataplane

// TCP connections: windows, flags, phases.
func testTrack(h *harness) {
	const (
		rules = "block\npass in on lan0\npass out on wan0"
		c     = "tcp 192.168.1.10:4000 > 198.51.100.9:80 " // the client's
		s     = "tcp 198.51.100.9:80 > 192.168.1.10:4000 " // the server's
		cOut  = "forward state wan " + c
		sOut  = "forward state lan " + s
		id    = "6 192.168.1.10:4000 > 198.51.100.9:80 "
	)
	open := []step{
		{"xdp lan", c + "S seq 100", "forward rule wan " + c + "S seq 100 ttl 63"},
		{"xdp wan", s + "SA seq 500 ack 101", sOut + "SA seq 500 ack 101 ttl 63"},
		{"xdp lan", c + "A seq 101 ack 501", cOut + "A seq 101 ack 501 ttl 63"},
		{"states", "", id + "tcp.established 2:2 2/1"},
	}
	after := func(steps ...step) []step { return append(open[:len(open):len(open)], steps...) }
	h.plays([]play{
		{"phases until it is closed", rules, after(
			step{"xdp lan", c + "FA seq 101 ack 501", cOut + "FA seq 101 ack 501 ttl 63"},
			step{"states", "", id + "tcp.closing 3:2 3/1"},
			step{"xdp wan", s + "A seq 501 ack 102", sOut + "A seq 501 ack 102 ttl 63"},
			step{"states", "", id + "tcp.closing 4:2 3/2"},
			step{"xdp wan", s + "FA seq 501 ack 102", sOut + "FA seq 501 ack 102 ttl 63"},
			step{"states", "", id + "tcp.finwait 4:3 3/3"},
			step{"xdp lan", c + "A seq 102 ack 502", cOut + "A seq 102 ack 502 ttl 63"},
			step{"states", "", id + "tcp.closed 4:4 4/3"},
			step{"wait", "90", ""},
			step{"xdp wan", s + "A seq 502 ack 102", "drop block"},
		)},
		{"established lasts 24 hours", rules, after(
			step{"wait", "86399", ""},
			step{"xdp wan", s + "A seq 501 ack 101", sOut + "A seq 501 ack 101 ttl 63"},
		)},
		// the server still has an older connection of these ports, and says so
		{"a stalled handshake", rules, []step{
			{"xdp lan", c + "S seq 100", "forward rule wan " + c + "S seq 100 ttl 63"},
			{"xdp wan", s + "A seq 900000 ack 700000", "forward state-mismatch wan " + c + "R seq 700000 win 0"},
			{"tcx wan", s + "A seq 900000 ack 700000", "forward state-mismatch wan " + c + "R seq 700000 win 0"},
			{"xdp wan", s + "SA seq 900000 ack 700000", "forward state-mismatch wan " + c + "R seq 700000 win 0"},
			{"xdp wan", s + "RA seq 900000 ack 700000", "drop state-mismatch"},
			{"states", "", id + "tcp.first 1:0 1/0"},
			{"xdp lan", c + "S seq 100", cOut + "S seq 100 ttl 63"},
			{"xdp wan", s + "SA seq 500 ack 101", sOut + "SA seq 500 ack 101 ttl 63"},
			{"xdp wan", s + "A seq 900000 ack 700000", "drop state-mismatch"},
		}},
		{"a stalled handshake with the box", rules, []step{
			{"xdp lan", "tcp 192.168.1.10:4000 > 192.168.1.1:80 S seq 100", "up local done"},
			{"out lan", "tcp 192.168.1.1:80 > 192.168.1.10:4000 A seq 900000 ack 700000", "forward state-mismatch tcp 192.168.1.10:4000 > 192.168.1.1:80 R seq 700000 win 0"},
		}},
		{"opening is 30 s", rules, []step{
			{"xdp lan", c + "S seq 100", "forward rule wan " + c + "S seq 100 ttl 63"},
			{"xdp wan", s + "SA seq 500 ack 101", sOut + "SA seq 500 ack 101 ttl 63"},
			{"states", "", id + "tcp.opening 2:1 1/1"},
			{"wait", "30", ""},
			{"xdp wan", s + "SA seq 500 ack 101", "drop block"},
		}},
		{"data beyond the window", rules, after(
			step{"xdp wan", s + "A seq 501 ack 101 len 1000", sOut + "A seq 501 ack 101 len 1000 ttl 63"},
			step{"xdp wan", s + "A seq 67000 ack 101 len 1000", "drop state-mismatch"},
			step{"xdp wan", s + "A seq 65036 ack 101 len 1000", sOut + "A seq 65036 ack 101 len 1000 ttl 63"},
			step{"xdp wan", s + "A seq 65037 ack 101 len 1000", "drop state-mismatch"},
		)},
		{"data before the window", rules, after(
			step{"xdp lan", c + "A seq 101 ack 501 len 100", cOut + "A seq 101 ack 501 len 100 ttl 63"},
			step{"xdp lan", c + "A seq 101 ack 501 len 100", cOut + "A seq 101 ack 501 len 100 ttl 63"},
			step{"xdp lan", c + "A seq 4294901962 ack 501 len 1", cOut + "A seq 4294901962 ack 501 len 1 ttl 63"},
			step{"xdp lan", c + "A seq 4294901961 ack 501 len 1", "drop state-mismatch"},
		)},
		{"acknowledging what was never sent", rules, after(
			step{"xdp lan", c + "A seq 101 ack 200501", "drop state-mismatch"},
			step{"xdp lan", c + "A seq 101 ack 67536", cOut + "A seq 101 ack 67536 ttl 63"},
			step{"xdp lan", c + "A seq 101 ack 67537", "drop state-mismatch"},
		)},
		{"a blind reset", rules, after(
			step{"xdp wan", s + "R seq 505", "drop state-mismatch"},
			step{"states", "", id + "tcp.established 2:2 2/1"},
			step{"xdp wan", s + "R seq 501", sOut + "R seq 501 ttl 63"},
			step{"states", "", id + "tcp.closed 5:5 2/2"},
		)},
		{"a SYN on an established connection changes nothing", rules, after(
			step{"xdp lan", c + "S seq 9000000", cOut + "S seq 9000000 ttl 63"},
			step{"states", "", id + "tcp.established 2:2 $a/1"},
			step{"xdp lan", c + "A seq 101 ack 501", cOut + "A seq 101 ack 501 ttl 63"},
		)},
		{"a SYN on a closed connection opens a new one", rules, after(
			step{"xdp wan", s + "R seq 501", sOut + "R seq 501 ttl 63"},
			step{"xdp lan", c + "S seq 9000000", "forward rule wan " + c + "S seq 9000000 ttl 63"},
			step{"xdp wan", s + "SA seq 7 ack 9000001", sOut + "SA seq 7 ack 9000001 ttl 63"},
			step{"states", "", id + "tcp.opening 2:1 1/1"},
		)},
		{"scaled windows", rules, []step{
			{"xdp lan", c + "S seq 100 win 1000 wscale 7", "forward rule wan " + c + "S seq 100 win 1000 wscale 7 ttl 63"},
			{"xdp wan", s + "SA seq 500 ack 101 win 1000 wscale 2", sOut + "SA seq 500 ack 101 win 1000 wscale 2 ttl 63"},
			{"xdp lan", c + "A seq 101 ack 501 win 1000", cOut + "A seq 101 ack 501 win 1000 ttl 63"},
			{"xdp wan", s + "A seq 127501 ack 101 len 1000", sOut + "A seq 127501 ack 101 len 1000 ttl 63"},
			{"xdp wan", s + "A seq 128500 ack 101 len 1000", "drop state-mismatch"},
		}},
		{"one end offers no scale", rules, []step{
			{"xdp lan", c + "S seq 100 win 1000 wscale 7", "forward rule wan " + c + "S seq 100 win 1000 wscale 7 ttl 63"},
			{"xdp wan", s + "SA seq 500 ack 101 win 1000", sOut + "SA seq 500 ack 101 win 1000 ttl 63"},
			{"xdp lan", c + "A seq 101 ack 501 win 1000", cOut + "A seq 101 ack 501 win 1000 ttl 63"},
			{"xdp wan", s + "A seq 127501 ack 101 len 1000", "drop state-mismatch"},
		}},
		{"taken over in the middle", "pass flags any", []step{
			{"xdp lan", c + "A seq 5000 ack 7000 len 10", "forward rule wan " + c + "A seq 5000 ack 7000 len 10 ttl 63"},
			{"xdp wan", s + "A seq 7000 ack 5010 len 100", sOut + "A seq 7000 ack 5010 len 100 ttl 63"},
			{"xdp lan", c + "A seq 5010 ack 7100", cOut + "A seq 5010 ack 7100 ttl 63"},
		}},
		{"only SYNs make states", rules, []step{
			{"xdp lan", c + "A seq 5000 ack 7000", "drop block"},
			{"xdp lan", c + "SA seq 5000 ack 7000", "drop block"},
			{"states", "", ""},
		}},
		{"a retransmitted SYN", rules, []step{
			{"xdp lan", c + "S seq 100", "forward rule wan " + c + "S seq 100 ttl 63"},
			{"wait", "1", ""},
			{"xdp lan", c + "S seq 100", cOut + "S seq 100 ttl 63"},
			{"xdp wan", s + "SA seq 500 ack 101", sOut + "SA seq 500 ack 101 ttl 63"},
			{"xdp lan", c + "A seq 101 ack 501", cOut + "A seq 101 ack 501 ttl 63"},
		}},
		{"sequence numbers wrap", rules, []step{
			{"xdp lan", c + "S seq 4294967290", "forward rule wan " + c + "S seq 4294967290 ttl 63"},
			{"xdp wan", s + "SA seq 4294967294 ack 4294967291", sOut + "SA seq 4294967294 ack 4294967291 ttl 63"},
			{"xdp lan", c + "A seq 4294967291 ack 4294967295 len 100", cOut + "A seq 4294967291 ack 4294967295 len 100 ttl 63"},
			{"xdp wan", s + "A seq 4294967295 ack 95 len 100", sOut + "A seq 4294967295 ack 95 len 100 ttl 63"},
			{"xdp lan", c + "A seq 95 ack 99 len 1", cOut + "A seq 95 ack 99 len 1 ttl 63"},
		}},
	})
}
