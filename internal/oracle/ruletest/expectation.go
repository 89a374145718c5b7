package ruletest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"weir/pf/diag"
)

// An Expectation is a packet and its expected result. Fields that it does not name may
// have any value.
type Expectation struct {
	Line   int // in its file, where it begins
	In     string
	Packet Packet
	Text   string // of the packet

	Verdict     string // Pass or Block
	Out         Any
	Local       *bool
	NextHop     Any // addresses
	Source      Ends
	Destination Ends
	Answer      *Answer
	Label       *string
	Rule        *string
	At          *Place
	State       *bool
	Log         *bool
	Tag         *string
	Mark        *Mark
	Prio        *uint8
	Queue       *string
	Why         string
}

// Verdicts.
const (
	Pass  = "pass"
	Block = "block"
)

// fields is an expectation in JSON.
type fields struct {
	In          string  `json:"in"`
	Packet      string  `json:"packet"`
	Verdict     string  `json:"verdict"`
	Out         Any     `json:"out"`
	Local       *bool   `json:"local"`
	NextHop     Any     `json:"next_hop"`
	Source      Ends    `json:"source_after"`
	Destination Ends    `json:"destination_after"`
	Answer      *Answer `json:"answer"`
	Label       *string `json:"label"`
	Rule        *string `json:"rule"`
	Line        *Place  `json:"line"`
	State       *bool   `json:"state"`
	Log         *bool   `json:"log"`
	Tag         *string `json:"tag"`
	Mark        *Mark   `json:"mark"`
	Prio        *uint8  `json:"prio"`
	Queue       *string `json:"queue"`
	Why         string  `json:"why"`
}

var fieldNames = []string{
	"in", "packet", "verdict", "out", "local", "next_hop", "source_after", "destination_after", "answer",
	"label", "rule", "line", "state", "log", "tag", "mark", "prio", "queue", "why",
}

// Any is a list of texts; one of them must hold. In JSON a single one needs no list; nil
// is none.
type Any []string

// UnmarshalJSON reads a text or a list of them.
func (a *Any) UnmarshalJSON(data []byte) error {
	if err := json.Unmarshal(inList(data), (*[]string)(a)); err != nil {
		return fmt.Errorf("%s is neither a text nor a list of them", data)
	}
	return nil
}

// inList makes a list of a single JSON text.
func inList(data []byte) []byte {
	if data = bytes.TrimSpace(data); len(data) > 0 && data[0] == '"' {
		return slices.Concat([]byte("["), data, []byte("]"))
	}
	return data
}

// A Place is the line of a rule, perhaps with the file: 12 or "lan.conf:12".
type Place struct {
	File string // empty: any
	Line int
}

// UnmarshalJSON reads a number or a text.
func (p *Place) UnmarshalJSON(data []byte) error {
	*p = Place{}
	if json.Unmarshal(data, &p.Line) == nil {
		return nil
	}
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return errors.New(`a line is a number, or "FILE:NUMBER"`)
	}
	colon := strings.LastIndexByte(text, ':')
	p.File = text[:max(colon, 0)]
	if json.Unmarshal([]byte(text[colon+1:]), &p.Line) != nil {
		return fmt.Errorf(`%q is not a line: expected a number, or "FILE:NUMBER"`, text)
	}
	return nil
}

// A Mark is a packet's mark: a number, or a text as "0x2".
type Mark uint32

// UnmarshalJSON reads a number or a text.
func (m *Mark) UnmarshalJSON(data []byte) error {
	n, err := strconv.ParseUint(strings.Trim(string(data), `"`), 0, 32)
	if err != nil {
		return fmt.Errorf("%s is no mark: it is a number of 32 bits, as 2 or \"0x2\"", data)
	}
	*m = Mark(n)
	return nil
}

// MarshalText returns the mark in hexadecimal.
func (m Mark) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// String returns the mark in hexadecimal.
func (m Mark) String() string { return fmt.Sprintf("%#x", uint32(m)) }

// String returns the text of the place.
func (p Place) String() string {
	if p.File == "" {
		return fmt.Sprint(p.Line)
	}
	return fmt.Sprintf("%s:%d", p.File, p.Line)
}

// parse reads an expectation from its JSON object.
func parse(object []byte, line int) (*Expectation, error) {
	if err := misspelt(object); err != nil {
		return nil, err
	}
	var f fields
	if err := json.Unmarshal(object, &f); err != nil {
		return nil, plainError(err)
	}
	switch {
	case f.Packet == "":
		return nil, errors.New(`"packet" is missing`)
	case f.Verdict == "":
		return nil, fmt.Errorf(`"verdict" is missing: %q or %q`, Pass, Block)
	case f.Verdict != Pass && f.Verdict != Block:
		return nil, fmt.Errorf("the verdict is %q or %q, not %q", Pass, Block, f.Verdict)
	}
	p, err := ParsePacket(f.Packet)
	if err != nil {
		return nil, fmt.Errorf("packet %q: %w", f.Packet, err)
	}
	e := &Expectation{
		Line: line, In: f.In, Packet: *p, Text: f.Packet, Verdict: f.Verdict, Out: f.Out, Local: f.Local,
		Source: f.Source, Destination: f.Destination, Answer: f.Answer, Label: f.Label, Rule: f.Rule,
		At: f.Line, State: f.State, Log: f.Log, Tag: f.Tag, Mark: f.Mark, Prio: f.Prio, Queue: f.Queue, Why: f.Why,
	}
	for i, hop := range f.NextHop {
		a, err := netip.ParseAddr(hop)
		if err != nil {
			return nil, fmt.Errorf("next_hop: %q is not an address", hop)
		}
		f.NextHop[i] = a.String()
	}
	e.NextHop = f.NextHop
	return e, nil
}

// misspelt refuses names of fields that look like a known one: they would never be
// compared. Other names are remarks.
func misspelt(object []byte) error {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(object, &all); err != nil {
		return plainError(err)
	}
	return diag.MisspeltField(all, fieldNames)
}

// plainError returns the message of encoding/json without its Go names.
func plainError(err error) error {
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &kind) && kind.Field != "":
		return fmt.Errorf("%q cannot be a JSON %s", kind.Field, kind.Value)
	case errors.As(err, &kind):
		return fmt.Errorf("an expectation is a JSON object, not a %s", kind.Value)
	}
	return err
}
