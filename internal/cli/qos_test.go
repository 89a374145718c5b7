package cli

import (
	"strings"
	"testing"
)

// TestQoSQuestions checks that weir qos init asks for what no flag says, and takes what it
// offers for an empty answer.
func TestQoSQuestions(t *testing.T) {
	var asked strings.Builder
	o := &qosInit{up: "40M"}
	if err := o.ask(strings.NewReader("\ncable\n 250M \n"), &asked, "wan0"); err != nil {
		t.Fatal(err)
	}
	if want := (qosInit{iface: "wan0", kind: "cable", down: "250M", up: "40M"}); *o != want {
		t.Errorf("the answers are %+v, want %+v", *o, want)
	}
	for _, question := range []string{"Interface of the line [wan0]: ", "docsis", "Kind of line [unknown]: ", "Rate down"} {
		if !strings.Contains(strings.ToLower(asked.String()), strings.ToLower(question)) {
			t.Errorf("no question has %q:\n%s", question, asked.String())
		}
	}
	if strings.Contains(asked.String(), "Rate up") {
		t.Error("it asks for what a flag says")
	}
	if err := (&qosInit{}).ask(strings.NewReader("wan0\n"), &asked, ""); err == nil {
		t.Error("no error though the answers end")
	}
}
