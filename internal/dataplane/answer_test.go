package dataplane

import (
	"fmt"

	"weir/internal/bpfload"
	"weir/internal/model"
)

// noAnswers forgets what answers were given.
func (h *harness) noAnswers() {
	h.tb.Helper()
	cpus := must(bpfload.CPUs())(h.tb)
	m := h.dp.objects.Maps["answers"]
	empty := make([][]byte, cpus)
	for i := range empty {
		empty[i] = make([]byte, m.ValueSize())
	}
	check(h.tb, m.Put(uint32(0), empty))
	none := must(newPerCPU[xdpCounter]())(h.tb)
	for i := range answeredCount {
		check(h.tb, h.dp.tables.maps[mapAnswerCounters].Put(uint32(i), none))
	}
}

// differAnswers compares how many answers there were, and were not.
func (t *twin) differAnswers() string {
	t.tb.Helper()
	a := must(t.dp.View().Answers())(t.tb)
	got := model.Answers{RST: a.RST.Packets, ICMP: a.ICMP.Packets, Limit: a.Limited.Packets, Not: a.Failed.Packets}
	if want := t.model.Answers(); want != got {
		return fmt.Sprintf("answers, model: %+v, dataplane: %+v", want, got)
	}
	return ""
}

// refusing rules answer in every way that there is.
const refusing = `
block return
block return-rst (ttl 9) in proto tcp to port 81
block return-icmp (host-unr, addr-unr) in proto { tcp, udp } to port 82
block drop in proto { tcp, udp } to port 83
`

// What senders of blocked packets hear.
func testAnswers(h *harness) {
	h.noAnswers()
	h.plays([]play{
		{"resets", refusing, []step{
			{"xdp lan", "tcp 192.168.1.10:4000 > 198.51.100.9:80 S seq 7", "forward block lan tcp 198.51.100.9:80 > 192.168.1.10:4000 RA ack 8 win 0"},
			{"tcx lan", "tcp 192.168.1.10:4000 > 198.51.100.9:80 S seq 4294967295 len 10", "forward block lan tcp 198.51.100.9:80 > 192.168.1.10:4000 RA ack 10 win 0"},
			{"xdp lan", "tcp 192.168.1.10:4000 > 198.51.100.9:80 SF seq 7 len 2", "forward block lan tcp 198.51.100.9:80 > 192.168.1.10:4000 RA ack 11 win 0"},
			{"xdp wan", "tcp 198.51.100.9:80 > 192.168.1.10:4000 A seq 7 ack 99 len 10", "forward block wan tcp 192.168.1.10:4000 > 198.51.100.9:80 R seq 99 win 0"},
			{"tcx lan", "tcp [fd00:1::10]:4000 > [2001:db8:9::1]:81 S seq 7", "forward block lan tcp [2001:db8:9::1]:81 > [fd00:1::10]:4000 RA ack 8 win 0 ttl 9"},
			{"xdp lan", "tcp 192.168.1.10:4000 > 198.51.100.9:80 R seq 7", "drop block"},
			{"xdp lan", "tcp 192.168.1.10:4000 > 198.51.100.9:80 RA seq 7 ack 1", "drop block"},
			{"xdp lan", "udp 192.168.1.10:4000 > 198.51.100.9:80", "forward block lan icmp 192.168.1.1 > 192.168.1.10 type 3 code 3 quote udp 192.168.1.10:4000 > 198.51.100.9:80"},
			{"xdp lan", "icmp 192.168.1.10 > 198.51.100.9 type 8 id 3", "forward block lan icmp 192.168.1.1 > 192.168.1.10 type 3 code 3 quote icmp 192.168.1.10 > 198.51.100.9 type 8 id 3"},
			{"xdp lan", "tcp 192.168.1.10:4000 > 198.51.100.9:82 R seq 7", "forward block lan icmp 192.168.1.1 > 192.168.1.10 type 3 code 1 quote tcp 192.168.1.10:4000 > 198.51.100.9:82 R seq 7"},
			{"out wan", "tcp 203.0.113.2:4000 > 198.51.100.9:80 S seq 7", "forward block tcp 198.51.100.9:80 > 203.0.113.2:4000 RA ack 8 win 0"},
			{"out wan", "udp [2001:db8:113::2]:4000 > [2001:db8:9::1]:80", "forward block icmp6 2001:db8:9::1 > 2001:db8:113::2 type 1 code 4 quote udp [2001:db8:113::2]:4000 > [2001:db8:9::1]:80"},
			{"xdp lan", "udp 192.168.1.10:4000 > 192.168.1.1:80", "forward block lan icmp 192.168.1.1 > 192.168.1.10 type 3 code 3 quote udp 192.168.1.10:4000 > 192.168.1.1:80"},
			{"xdp lan", "tcp 192.168.1.10:4000 > 198.51.100.9:80 S seq 7 frag 0+ id 9 len 12", "forward block lan tcp 198.51.100.9:80 > 192.168.1.10:4000 RA ack 20 win 0"},
			{"xdp lan", "udp 192.168.1.10:4000 > 198.51.100.9:80 opts 8", "forward block lan icmp 192.168.1.1 > 192.168.1.10 type 3 code 3 quote udp 192.168.1.10:4000 > 198.51.100.9:80 opts 8"},
			{"xdp lan", "udp 192.168.1.10:4000 > 192.168.1.255:80", "drop block"},
			{"xdp lan", "icmp 192.168.1.10 > 198.51.100.9 type 3 code 3 quote udp 198.51.100.9:5 > 192.168.1.10:9", "drop block"},
			{"xdp lan", "icmp6 fd00:1::10 > 2001:db8:9::1 type 137", "drop block"},
			{"xdp lan", "icmp6 fd00:1::10 > 2001:db8:9::1 type 200", "forward block lan icmp6 fd00:1::1 > fd00:1::10 type 1 code 4 quote icmp6 fd00:1::10 > 2001:db8:9::1 type 200"},
		}},
	})
}
