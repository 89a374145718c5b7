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
