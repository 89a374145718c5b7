package ruletest

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// An Answer is what the sender of a blocked packet is told: nothing, a TCP
// reset, or an ICMP error.
type Answer struct {
	Kind       string // none, rst, icmp or icmp6
	Type, Code uint8  // of icmp and icmp6
}

// Kinds of rejects.
const (
	noAnswer    = "none"
	resetAnswer = "rst"
	icmpAnswer  = "icmp"
	icmp6Answer = "icmp6"
)

// String returns the text of the answer: none, rst, icmp 3/3.
func (a Answer) String() string {
	if a.Kind == icmpAnswer || a.Kind == icmp6Answer {
		return fmt.Sprintf("%s %d/%d", a.Kind, a.Type, a.Code)
	}
	return a.Kind
}

// UnmarshalJSON reads an answer's text; type and code of ICMP may be names.
func (a *Answer) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return fmt.Errorf("%s is not an answer", data)
	}
	kind, message, named := strings.Cut(text, " ")
	*a = Answer{Kind: kind}
	switch kind {
	case noAnswer, resetAnswer:
		if named {
			break
		}
		return nil
	case icmpAnswer, icmp6Answer:
		p := Packet{Proto: map[string]uint8{icmpAnswer: protoICMP, icmp6Answer: protoICMP6}[kind]}
		words := strings.Fields(strings.ReplaceAll(message, "/", " "))
		if len(words) != 2 {
			break
		}
		if err := p.message(words); err != nil {
			return fmt.Errorf("answer %q: %w", text, err)
		}
		a.Type, a.Code = p.Type, p.Code
		return nil
	}
	return fmt.Errorf("%q is not an answer: expected none, rst, icmp TYPE/CODE or icmp6 TYPE/CODE", text)
}

// MarshalText returns the answer as it is written.
func (a Answer) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// AnswerOf returns the answer for the IP packet of a reject; nil is none.
func AnswerOf(packet []byte) Answer {
	switch {
	case packet == nil:
		return Answer{Kind: noAnswer}
	case packet[0]>>4 == 6 && packet[6] == protoICMP6:
		return Answer{Kind: icmp6Answer, Type: packet[40], Code: packet[41]}
	case packet[0]>>4 == 4 && packet[9] == protoICMP:
		return Answer{Kind: icmpAnswer, Type: packet[20], Code: packet[21]}
	case packet[0]>>4 == 4 && packet[9] == protoTCP, packet[0]>>4 == 6 && packet[6] == protoTCP:
		return Answer{Kind: resetAnswer}
	}
	return Answer{Kind: "a packet of " + strconv.Itoa(len(packet)) + " bytes"}
}
