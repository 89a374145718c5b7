package reason

import (
	"encoding/json"
	"errors"
	"testing"
)

func TestNamesParseBack(t *testing.T) {
	for _, r := range All() {
		got, err := Parse(r.String())
		if err != nil || got != r {
			t.Errorf("Parse(%q) = %v, %v; want %d", r.String(), got, err, r)
		}
		if r.Text() == "" {
			t.Errorf("%v has no text", r)
		}
	}
	if _, err := Parse("lost"); !errors.Is(err, ErrUnknown) {
		t.Errorf("Parse of a name outside the list: %v", err)
	}
}

func TestPassesComeFirst(t *testing.T) {
	if !State.IsPass() || !Marked.IsPass() || Block.IsPass() || Internal.IsPass() {
		t.Error("the border between passes and drops is wrong")
	}
	if got := Reason(250).String(); got != "reason-250" {
		t.Errorf("beyond the list: %q", got)
	}
}

func TestJSON(t *testing.T) {
	text, err := json.Marshal(NoRule)
	if err != nil || string(text) != `"no-rule"` {
		t.Fatalf("%s, %v", text, err)
	}
	var r Reason
	if err := json.Unmarshal(text, &r); err != nil || r != NoRule {
		t.Errorf("%v, %v", r, err)
	}
	if err := json.Unmarshal([]byte(`"lost"`), &r); !errors.Is(err, ErrUnknown) {
		t.Errorf("unknown name: %v", err)
	}
}
