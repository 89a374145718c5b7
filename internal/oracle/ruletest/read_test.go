package ruletest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"weir/internal/oracle/model"
)

const one = `{"in": "lan0", "packet": "udp 192.0.2.1:1 > 192.0.2.2:2", "verdict": "pass"}`

func TestReadForms(t *testing.T) {
	for name, test := range map[string]struct {
		text  string
		lines []int
	}{
		"array":             {"[\n" + one + ",\n\n" + one + "]\n", []int{2, 4}},
		"a line each":       {one + "\n\n" + one + "\n", []int{1, 3}},
		"without a newline": {one, []int{1}},
		"on one line":       {one + one, []int{1, 1}},
	} {
		all, err := Read("x", []byte(test.text))
		if err != nil || len(all) != len(test.lines) {
			t.Errorf("%s: %d expectations, %v", name, len(all), err)
			continue
		}
		for i, e := range all {
			if e.Line != test.lines[i] || e.Packet.DPort != 2 {
				t.Errorf("%s: expectation %d: %+v", name, i, e)
			}
		}
	}
}

func TestReadFaults(t *testing.T) {
	for text, want := range map[string]string{
		"":                     "x:1:1: there is no expectation",
		"[]":                   "x:1:1: there is no expectation",
		"[" + one:              "x:1:78: the file ends before its JSON does",
		one + "\n{":            "x:2:2: the file ends before its JSON does",
		"[" + one + "]\n\n{}":  "x:3:1: there is text after the array",
		"\n  {\"in\": lan0}":   "x:2:10: invalid character 'l' looking for beginning of value",
		one + "\n{\"in\": x}":  "x:2:8: invalid character 'x' looking for beginning of value",
		"7":                    "x:1:1: an expectation is a JSON object, not a number",
		`{"in": 7, "out": "x"`: "x:1:21: the file ends before its JSON does",
	} {
		_, err := Read("x", []byte(text))
		var faults Faults
		if !errors.As(err, &faults) || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// Reading takes time in proportion to the file.
func TestReadMany(t *testing.T) {
	const n = 50_000
	data := []byte(strings.Repeat(one+"\n", n))
	start := time.Now()
	all, err := Read("x", data)
	if err != nil || len(all) != n || all[n-1].Line != n {
		t.Fatalf("%d expectations, %v", len(all), err)
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
}

// The model reads the same from a packet's bytes as its text says.
func TestPacketBytes(t *testing.T) {
	for _, text := range []string{
		"tcp 192.0.2.1:4000 > 192.0.2.2:80 SAEW", "tcp [2001:db8::1]:4000 > [2001:db8::2]:80 -", "udp 192.0.2.1:4000 > 192.0.2.2:80",
		"udp [2001:db8::1]:4000 > [2001:db8::2]:80", "icmp 192.0.2.1 > 192.0.2.2 unreach needfrag", "icmp 192.0.2.1 > 192.0.2.2 8",
		"icmp6 2001:db8::1 > 2001:db8::2 echoreq", "icmp6 2001:db8::1 > 2001:db8::2 1/4", "icmp6 fe80::1 > ff02::1 neighbrsol",
		"gre 192.0.2.1 > 192.0.2.2 tos 0xfc", "udp [2001:db8::1]:4000 > [2001:db8::2]:80 tos 16", "sctp 192.0.2.1:1 > 192.0.2.2:2", "esp 2001:db8::1 > 2001:db8::2", "255 192.0.2.1 > 192.0.2.2",
	} {
		p, err := ParsePacket(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		b := p.Bytes()
		l4 := 20
		if p.Src.Is6() {
			l4 = 40
		} else if sum := model.Sum(b[:20]); sum != 0 {
			t.Errorf("%s: the IP header's sum is off by %#x", text, sum)
		}
		switch p.Proto {
		case protoTCP, protoUDP, protoICMP6:
			if sum := model.PseudoSum(p.Src, p.Dst, p.Proto, b[l4:]); sum != 0 {
				t.Errorf("%s: the sum is off by %#x", text, sum)
			}
		case protoICMP:
			if sum := model.Sum(b[l4:]); sum != 0 {
				t.Errorf("%s: the sum is off by %#x", text, sum)
			}
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, text := range []string{one, "[" + one + "," + one + "]", `{"packet": "icmp 192.0.2.1 > 192.0.2.2 3/3", "verdict": "block", "answer": "icmp 3/3", "line": "a:1"}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		all, err := Read("x", data)
		if (err == nil) != (len(all) > 0) {
			t.Fatalf("%d expectations with %v", len(all), err)
		}
		for _, e := range all {
			if b := e.Packet.Bytes(); len(b) < 20 || e.Line < 1 {
				t.Fatalf("%+v: %x", e, b)
			}
		}
	})
}
