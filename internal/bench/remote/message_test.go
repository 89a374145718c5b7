package remote

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/bench/sample"
)

func aRun() Run {
	return Run{Protocol: TCP, Up: true, Connections: 2, Rate: 1e9, Omit: time.Second, Count: 3 * time.Second}
}

// messages are one of each kind.
func messages() []*message {
	run := aRun()
	return []*message{
		{Hello: &hello{Program: "weir"}},
		{Welcome: &welcome{Program: "weir", Limits: DefaultLimits(), Machine: Host{Name: "a", Cores: 4}}},
		{Run: &run},
		{Granted: &granted{Run: run, Cut: []string{"rate"}, Port: 5203}},
		{Refused: &refused{Why: "no"}},
		{Alive: &struct{}{}}, {Ended: &struct{}{}}, {Bye: &struct{}{}},
		{Sample: &sample.Point{At: time.Second, Took: time.Second, Cores: []sample.Core{{ID: 1, Busy: 0.5}}, Drops: map[string]uint64{"no-rule": 3}}},
		{Done: &outcome{Overflow: 7, Ended: "why"}},
	}
}

func TestMessagesComeBack(t *testing.T) {
	var b bytes.Buffer
	for _, m := range messages() {
		if err := writeMessage(&b, m); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range messages() {
		got, err := readMessage(&b)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	if _, err := readMessage(&b); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
}

func TestMessagesRefused(t *testing.T) {
	for name, text := range map[string]string{
		"nothing said":        `{}`,
		"two things":          `{"bye":{},"ended":{}}`,
		"unknown":             `{"sudo":{}}`,
		"no object":           `[1,2]`,
		"other protocol":      `{"run":{"protocol":"icmp","up":true,"connections":1,"count_ns":1000000000}}`,
		"no direction":        `{"run":{"protocol":"tcp","connections":1,"count_ns":1000000000}}`,
		"too many":            `{"run":{"protocol":"tcp","up":true,"connections":1000000,"count_ns":1000000000}}`,
		"negative time":       `{"run":{"protocol":"tcp","up":true,"connections":1,"count_ns":-1}}`,
		"too long":            `{"run":{"protocol":"tcp","up":true,"connections":1,"count_ns":9000000000000000000}}`,
		"UDP without rate":    `{"run":{"protocol":"udp","up":true,"connections":1,"payload":100,"frame":146,"count_ns":1000000000}}`,
		"payload of nothing":  `{"run":{"protocol":"udp","up":true,"connections":1,"rate":1000,"payload":1,"frame":47,"count_ns":1000000000}}`,
		"payload too long":    `{"run":{"protocol":"udp","up":true,"connections":1,"rate":1000,"payload":65000,"frame":65046,"count_ns":1000000000}}`,
		"another payload":     `{"run":{"protocol":"udp","up":true,"connections":1,"rate":1000,"payload":100,"frame":1518,"count_ns":1000000000}}`,
		"frame below payload": `{"run":{"protocol":"udp","up":true,"connections":1,"rate":1000,"payload":100,"frame":64,"count_ns":1000000000}}`,
		"unknown member":      `{"run":{"protocol":"tcp","up":true,"connections":1,"count_ns":1000000000,"sudo":true}}`,
		"unknown in nothing":  `{"bye":{"why":"tired"}}`,
		"said twice":          `{"bye":{},"bye":{}}`,
		"something after it":  `{"bye":{}} {"ended":{}}`,
		"a refused member":    `{"done":{"sent":{"packets":1}}}`,
		"overflow of much":    `{"done":{"overflow":18446744073709551615}}`,
		"overflow below zero": `{"done":{"overflow":-1}}`,
		"no port":             `{"granted":{"run":{"protocol":"tcp","up":true,"connections":2,"count_ns":1000000000},"port":0}}`,
		"a port too high":     `{"granted":{"run":{"protocol":"tcp","up":true,"connections":2,"count_ns":1000000000},"port":65536}}`,
		"core busy twice":     `{"sample":{"cores":[{"busy":2}]}}`,
		"text without end":    `{"refused":{"why":"` + strings.Repeat("x", maxText+1) + `"}}`,
		"limits of nothing":   `{"welcome":{"limits":{}}}`,
		"number not a number": `{"run":{"protocol":"tcp","up":true,"connections":1,"rate":1e999,"count_ns":1000000000}}`,
	} {
		if m, err := parseMessage([]byte(text)); err == nil {
			t.Errorf("%s: taken as %+v", name, m)
		}
	}
	for _, n := range []uint32{0, 1, maxMessage + 1, math.MaxUint32} {
		b := binary.BigEndian.AppendUint32(nil, n)
		if _, err := readMessage(bytes.NewReader(b)); !errors.Is(err, errMessageLength) {
			t.Errorf("a message of %d bytes: %v", n, err)
		}
	}
	if _, err := readMessage(strings.NewReader("\x00\x00\x10\x00{")); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("half a message: %v", err)
	}
}

// TestAnnouncedLengthTakesNoMemory: what counts is what comes.
func TestAnnouncedLengthTakesNoMemory(t *testing.T) {
	head := binary.BigEndian.AppendUint32(nil, maxMessage)
	taken := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := readMessage(bytes.NewReader(head)); err == nil {
				b.Fatal("taken")
			}
		}
	}).AllocedBytesPerOp()
	if taken > 4096 {
		t.Errorf("an announced length takes %d bytes", taken)
	}
}

func TestGrant(t *testing.T) {
	l := Limits{Rate: 1e6, Run: 2500 * time.Millisecond, Session: time.Minute, Data: 1, Connections: 3}
	asked := aRun()
	asked.Connections, asked.Rate = 8, 0
	got, cut, err := l.grant(asked, 1e12)
	if err != nil || got.Connections != 3 || got.Rate != 1e6 || got.Omit+got.Count != 2*time.Second || len(cut) != 2 {
		t.Errorf("granted %+v, cut %q, %v", got, cut, err)
	}
	if got, cut, err := (Limits{Run: time.Minute, Connections: 64}).grant(asked, 1); err != nil || got != asked || len(cut) != 0 {
		t.Errorf("without bounds: %+v, cut %q, %v", got, cut, err)
	}
	// 1 Mbit/s is 125,000 bytes a second.
	for left, want := range map[int64]time.Duration{600e3: 2 * time.Second, 130e3: time.Second, 120e3: 0, 0: 0, -5: 0} {
		got, _, err := l.grant(asked, left)
		if want == 0 {
			if !errors.Is(err, errBudget) {
				t.Errorf("%d bytes left: %+v, %v; want %v", left, got, err, errBudget)
			}
			continue
		}
		if err != nil || got.Omit+got.Count != want || got.check() != nil {
			t.Errorf("%d bytes left: %+v, %v; want %s", left, got, err, want)
		}
	}
	asked.Down = true
	if _, _, err := l.grant(asked, 130e3); !errors.Is(err, errBudget) {
		t.Errorf("both directions with data for one: %v", err)
	}
}

func TestNoMoreThanAsked(t *testing.T) {
	asked := aRun()
	for name, change := range map[string]func(*Run){
		"more connections": func(r *Run) { r.Connections++ },
		"another way":      func(r *Run) { r.Down = true },
		"another protocol": func(r *Run) { r.Protocol = UDP },
		"a higher rate":    func(r *Run) { r.Rate *= 2 },
		"longer":           func(r *Run) { r.Count *= 2 },
		"larger":           func(r *Run) { r.Payload = 100 },
	} {
		g := asked
		change(&g)
		if noMore(&g, &asked) == nil {
			t.Errorf("%s than asked for is accepted", name)
		}
	}
	less := asked
	less.Connections, less.Rate, less.Count = 1, 1e6, time.Second
	if err := noMore(&less, &asked); err != nil {
		t.Errorf("less than asked for: %v", err)
	}
}

func TestPlain(t *testing.T) {
	for in, want := range map[string]string{
		"weir-fw": "weir-fw", "\x1b[2Jgone\r\n": "?[2Jgone??", "über": "über", "\xff\xfe": "??", "a\u202eb": "a?b",
		strings.Repeat("ü", maxText): strings.Repeat("ü", maxText/2),
	} {
		if got := plain(in); got != want {
			t.Errorf("plain(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzMessage(f *testing.F) {
	for _, m := range messages() {
		var b bytes.Buffer
		if err := writeMessage(&b, m); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := readMessage(bytes.NewReader(b))
		if err != nil {
			return
		}
		var again bytes.Buffer
		if err := writeMessage(&again, m); errors.Is(err, errMessageLength) {
			return // JSON of ours can be longer than it came
		} else if err != nil {
			t.Fatalf("%+v was read and cannot be written: %v", m, err)
		}
		got, err := readMessage(&again)
		if err != nil {
			t.Fatalf("%+v was read, and not when written again: %v", m, err)
		}
		if m.Run != nil {
			if run, _, err := DefaultLimits().grant(*got.Run, 1e12); err == nil && run.check() != nil {
				t.Fatalf("granted %+v, which is no run", run)
			}
		}
	})
}
