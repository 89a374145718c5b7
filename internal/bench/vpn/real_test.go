package vpn

import (
	"bytes"
	"strings"
	"testing"

	"weir/internal/testenv"
)

// TestRun measures everything, very briefly. How fast it is is no matter here.
func TestRun(t *testing.T) {
	testenv.NeedRoot(t)
	for _, program := range []string{"iperf3", "ping"} {
		testenv.NeedProgram(t, program)
	}
	o := Defaults()
	o.Runs, o.Seconds, o.Flows = 1, 1, 1
	o.name, o.Command, o.Program = "weir-test-vpn", "weir bench vpn", testenv.BuildWeir(t)
	d, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	testenv.NothingLeft(t, o.name)
	var b bytes.Buffer
	for _, err := range []error{d.WriteHTML(&b), d.WriteText(&b, 100), d.WriteJSON(&b)} {
		if err != nil {
			t.Error(err)
		}
	}
	responses := 0
	for _, m := range d.Measurements {
		if strings.HasPrefix(m.Name, CaseRPM) {
			responses++
		}
		if v := m.Runs.Median(); v <= 0 {
			t.Errorf("%s: %v", m.Name, v)
		}
	}
	const engines = 2
	if others := len(d.Measurements) - responses; others != 2*(len(o.tasks())-1-engines) || responses > engines { // a run of a second may have no answer
		t.Errorf("%d measurements, of which %d of round trips", len(d.Measurements), responses)
	}
}
