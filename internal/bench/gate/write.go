package gate

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"weir/internal/quantity"
)

// WriteJSON writes the result for programs.
func (r *Result) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(r); err != nil {
		return fmt.Errorf("write the gate's result: %w", err)
	}
	return nil
}

// WriteText prints one line for each ratio, and the notices.
func (r *Result) WriteText(w io.Writer) error {
	var text strings.Builder
	for _, v := range r.Verdicts {
		fmt.Fprintf(&text, "%s at %s flows: recorded %.3f, found %s: %s\n", v.Name(), quantity.Thousands(v.Flows), v.Mpps, list(v.Found), sentence(v, r.Margin))
	}
	for _, n := range r.Notices {
		fmt.Fprintf(&text, "notice: %s\n", n)
	}
	if _, err := io.WriteString(w, text.String()); err != nil {
		return fmt.Errorf("print the gate's result: %w", err)
	}
	return nil
}

func list(values []float64) string {
	if len(values) == 0 {
		return "nothing"
	}
	var all []string
	for _, v := range values {
		all = append(all, fmt.Sprintf("%.3f", v))
	}
	return strings.Join(all, ", ")
}

func sentence(v Verdict, margin float64) string {
	switch v.State {
	case Fine:
		return Fine
	case Slower:
		return fmt.Sprintf("SLOWER: %d runs, each over %.0f %% under it", len(v.Found), margin*100)
	}
	return "not judged"
}
