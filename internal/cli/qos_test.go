package cli

import (
	"bufio"
	"strings"
	"testing"

	"weir/internal/qosinit"
)

// TestQoSQuestions checks that weir qos init asks for what no flag says, takes what it
// offers for an empty answer, and asks again after a wrong one.
func TestQoSQuestions(t *testing.T) {
	var asked strings.Builder
	o := &qosInit{up: "40M"}
	a := &answerer{lines: bufio.NewScanner(strings.NewReader("\nisdn\ncable\n\n 250M \n")), prompts: &asked}
	line, err := o.read(a, func() string { return "wan0" })
	if err != nil {
		t.Fatal(err)
	}
	if want := (qosinit.Line{Interface: "wan0", Kind: qosinit.KindOf("cable"), Down: 250e6, Up: 40e6}); *line != want {
		t.Errorf("the line is %+v, want %+v", *line, want)
	}
	for question, times := range map[string]int{
		"Interface of the line [wan0]: ": 1, "DOCSIS": 2, "Kind of line [unknown]: ": 2, "Rate down, such as 100M: ": 2, "Rate up": 0,
	} {
		if n := strings.Count(asked.String(), question); n != times {
			t.Errorf("it asks %q %d times, want %d:\n%s", question, n, times, asked.String())
		}
	}
}
