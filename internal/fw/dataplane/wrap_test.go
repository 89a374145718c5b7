package dataplane

// Sequence numbers wrap. Steps of 10⁹ bytes fit a 16-bit window scaled by 14. After three
// of them, what the handshake allowed would be in the future again.
func testSequenceNumbersWrap(h *harness) {
	const there, back = "tcp 192.168.1.10:4000 > 198.51.100.9:80 ", "tcp 198.51.100.9:80 > 192.168.1.10:4000 "
	h.plays([]play{
		{"a long download", "pass", []step{
			{"xdp lan", there + "S seq 0 wscale 14", "forward rule wan " + there + "S wscale 14 ttl 63"},
			{"xdp wan", back + "SA seq 0 ack 1 wscale 14", "forward state lan " + back + "SA ack 1 wscale 14 ttl 63"},
			{"xdp lan", there + "A seq 1 ack 1", "forward state wan " + there + "A seq 1 ack 1 ttl 63"},
			{"xdp wan", back + "A seq 1 ack 1", "forward state lan " + back + "A seq 1 ack 1 ttl 63"},
			{"xdp lan", there + "A seq 1000000000 ack 1 len 9", "forward state wan " + there + "A seq 1000000000 ack 1 len 9 ttl 63"},
			{"xdp wan", back + "A seq 1 ack 1000000009", "forward state lan " + back + "A seq 1 ack 1000000009 ttl 63"},
			{"xdp lan", there + "A seq 2000000000 ack 1 len 9", "forward state wan " + there + "A seq 2000000000 ack 1 len 9 ttl 63"},
			{"xdp wan", back + "A seq 1 ack 2000000009", "forward state lan " + back + "A seq 1 ack 2000000009 ttl 63"},
			{"xdp lan", there + "A seq 3000000000 ack 1 len 9", "forward state wan " + there + "A seq 3000000000 ack 1 len 9 ttl 63"},
			{"xdp wan", back + "A seq 1 ack 3000000009", "forward state lan " + back + "A seq 1 ack 3000000009 ttl 63"},
			{"xdp lan", there + "A seq 4000000000 ack 1 len 9", "forward state wan " + there + "A seq 4000000000 ack 1 len 9 ttl 63"},
			{"xdp lan", there + "A seq 1000000000 ack 1 len 9", "drop state-mismatch"},
		}},
	})
}
