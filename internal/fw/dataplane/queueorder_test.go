package dataplane

import (
	"slices"
	"testing"
	"time"
)

// A flood from 1,000 ports that send in turn, as those of one program do: they share the line evenly in each tenth of a
// second, and do not all send at once.
func TestQueueFloodInTurn(t *testing.T) {
	const rate, ports, bytes, length = 50_000_000, 1000, 1538, 20 * time.Second
	h := newQueueHarness(t, 100_000, oneClass(rate))
	sparse := &sender{flow: flow{number: 1, host: 1, bytes: 250}, rate: 1_000_000}
	var passed []float64 // bytes in each millisecond
	due, next := 0.0, 0
	for at := time.Duration(0); at < length; at += time.Millisecond {
		before := sparse.passed
		sparse.offer(h, at)
		now := (sparse.passed - before) * 250
		for due += 2 * rate / 8 / 1000; due >= bytes; due -= bytes {
			n, _ := h.send(&flow{number: uint32(100 + next%ports), host: 2, bytes: bytes}, 1)
			now += n * bytes
			next++
		}
		h.tick()
		passed = append(passed, float64(now))
	}
	windows := func(from, ms int) (parts []float64) { // of the rate
		for ; from+ms <= len(passed); from += 10 {
			sum := 0.0
			for _, b := range passed[from : from+ms] {
				sum += b
			}
			parts = append(parts, sum*8000/float64(ms)/rate)
		}
		return parts
	}
	tenths, long := windows(2000, 100), windows(0, 10_000)
	t.Logf("of the rate: 100 ms %.2f to %.2f after 2 s, 10 s %.4f to %.4f", slices.Min(tenths), slices.Max(tenths), slices.Min(long), slices.Max(long))
	if slices.Min(tenths) < 0.5 || slices.Max(tenths) > 1.5 {
		t.Errorf("100 ms carry %.2f to %.2f of the rate, want 0.5 to 1.5", slices.Min(tenths), slices.Max(tenths))
	}
	if slices.Min(long) < 0.99 || slices.Max(long) > 1.01 {
		t.Errorf("10 s carry %.4f to %.4f of the rate, want 0.99 to 1.01", slices.Min(long), slices.Max(long))
	}
	if sparse.passed < sparse.sent {
		t.Errorf("the sparse stream lost %d of %d packets", sparse.sent-sparse.passed, sparse.sent)
	}
}
