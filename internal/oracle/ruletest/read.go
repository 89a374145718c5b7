package ruletest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// maxFaults is how many faults of a file are reported.
const maxFaults = 10

// Faults are the errors of a file of expectations, a line each.
type Faults []string

// Error returns the faults, each with its place.
func (f Faults) Error() string {
	if more := len(f) - maxFaults; more > 0 {
		return strings.Join(f[:maxFaults], "\n") + fmt.Sprintf("\nand %d more", more)
	}
	return strings.Join(f, "\n")
}

// Read reads expectations: a JSON array of objects, or objects one after the other. name
// is the file's name in messages. It returns Faults if the contents are wrong.
func Read(name string, data []byte) ([]*Expectation, error) {
	var all []*Expectation
	var faults Faults
	objects := split(data)
	line, counted := 1, 0
	for object, offset, err := objects(); !errors.Is(err, io.EOF); object, offset, err = objects() {
		offset = max(offset, counted) // the decoder knows the place of a fault
		line += bytes.Count(data[counted:offset], []byte("\n"))
		counted = offset
		var e *Expectation
		if err == nil {
			e, err = parse(object, line)
		}
		if err != nil {
			faults = append(faults, fmt.Sprintf("%s:%d:%d: %v", name, line, column(data, offset), err))
		} else {
			all = append(all, e)
		}
		if object == nil {
			break // nothing can be found after text that is no JSON
		}
	}
	if faults == nil && all == nil {
		faults = Faults{name + ":1:1: there is no expectation"}
	}
	if faults != nil {
		return nil, faults
	}
	return all, nil
}

func column(data []byte, offset int) int {
	return offset - bytes.LastIndexByte(data[:offset], '\n')
}

// split returns the JSON values of a file one by one, or those of an array if it is one,
// each with its offset. After the last the error is io.EOF. With any other error there is
// no value, and the offset is that of the fault.
func split(data []byte) func() (value []byte, offset int, err error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	trimmed := bytes.TrimLeft(data, " \t\r\n")
	array := len(trimmed) > 0 && trimmed[0] == '['
	opened := false
	return func() ([]byte, int, error) {
		if array && !opened {
			_, _ = decoder.Token() // the bracket that was seen
			opened = true
		}
		if array && !decoder.More() {
			if _, err := decoder.Token(); err != nil {
				return nil, len(data), unfinished(err)
			}
			array = false
			if rest := bytes.TrimLeft(data[decoder.InputOffset():], " \t\r\n"); len(rest) > 0 {
				return nil, len(data) - len(rest), errors.New("there is text after the array")
			}
			return nil, len(data), io.EOF
		}
		start := skip(data, int(decoder.InputOffset()))
		var value json.RawMessage
		err := decoder.Decode(&value)
		var syntax *json.SyntaxError
		switch {
		case err == nil:
			return value, start, nil
		case errors.As(err, &syntax):
			return nil, min(max(int(syntax.Offset)-1, 0), len(data)), err
		case errors.Is(err, io.EOF) && array:
			return nil, len(data), unfinished(err)
		case errors.Is(err, io.ErrUnexpectedEOF):
			return nil, len(data), unfinished(err)
		}
		return nil, len(data), err
	}
}

func unfinished(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the file ends before its JSON does")
	}
	return err
}

// skip returns the offset of the next value: after white space and a comma.
func skip(data []byte, offset int) int {
	for offset < len(data) && strings.IndexByte(" \t\r\n,", data[offset]) >= 0 {
		offset++
	}
	return offset
}
