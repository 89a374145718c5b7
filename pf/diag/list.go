package diag

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"weir/pf/token"
)

// Severity says whether a configuration can be used.
type Severity uint8

// Severities.
const (
	Error   Severity = iota // it cannot
	Warning                 // it can, but may not mean what its author thinks
)

// String is "error" or "warning".
func (s Severity) String() string {
	if s == Warning {
		return "warning"
	}
	return "error"
}

// Diagnostic is one thing that there is to say.
type Diagnostic struct {
	Severity  Severity
	Span      token.Span // what is at fault
	Message   string     // lower case, no full stop
	Suggest   string     // the word that was probably meant, or empty
	Related   []Related
	Construct string // a warning: this construct is read and not enforced; else empty
	Kind      string // of a warning of which there may be many: Fold leaves the first of a kind
}

// Related is a place that explains a diagnostic.
type Related struct {
	Span token.Span
	Note string // may be empty
}

// unenforced reports whether this warns of a construct that is not enforced.
func (d *Diagnostic) unenforced() bool { return d.Severity == Warning && d.Construct != "" }

// Text is the message with the suggestion.
func (d *Diagnostic) Text() string {
	if d.Suggest == "" {
		return d.Message
	}
	return fmt.Sprintf("%s; did you mean %q?", d.Message, d.Suggest)
}

// List is what there is to say about a configuration, in no order until Sort.
// The zero value is an empty list that is ready to use.
type List struct {
	Files *token.FileSet // where the spans lie
	Items []Diagnostic

	errors  int // in Items
	dropped int // errors that came when the list was full
	seen    map[key]struct{}
	places  map[string]int // of each construct that is not enforced
}

// maxKept is how many errors a list keeps; more are only counted.
const maxKept = 100

// key is what makes two diagnostics the same: a list in a rule would else
// report a fault once for each rule that it expands to.
type key struct {
	span    token.Span
	message string
}

// Full reports whether there are so many errors that it is no use to look for
// more.
func (l *List) Full() bool { return l.errors >= maxKept }

// Add appends a diagnostic unless the same was said of the same text before.
func (l *List) Add(d Diagnostic) {
	if d.Severity == Error && l.Full() {
		l.dropped++
		return
	}
	k := key{d.Span, d.Message}
	if _, said := l.seen[k]; said {
		return
	}
	if l.seen == nil {
		l.seen = make(map[key]struct{})
	}
	l.seen[k] = struct{}{}
	l.Items = append(l.Items, d)
	if d.Severity == Error {
		l.errors++
	}
}

// Append adds what another list of the same files holds.
func (l *List) Append(other *List) {
	for _, d := range other.Items {
		l.Add(d)
	}
	l.dropped += other.dropped
	for construct, n := range other.places {
		if l.places == nil {
			l.places = make(map[string]int)
		}
		l.places[construct] += n
	}
}

// Errors returns the number of errors so far.
func (l *List) Errors() int { return l.errors + l.dropped }

// Errorf appends an error about the text of span.
func (l *List) Errorf(span token.Span, format string, args ...any) {
	l.Add(Diagnostic{Severity: Error, Span: span, Message: fmt.Sprintf(format, args...)})
}

// Warnf appends a warning about the text of span.
func (l *List) Warnf(span token.Span, format string, args ...any) {
	l.Add(Diagnostic{Severity: Warning, Span: span, Message: fmt.Sprintf(format, args...)})
}

// Unenforced warns that a construct of the language is read, but that this
// version does not do what it says. construct is what a user calls it, such as
// "route-to"; of each construct at most 100 places are kept, the rest counted.
func (l *List) Unenforced(span token.Span, construct string) {
	if l.places == nil {
		l.places = make(map[string]int)
	}
	if l.places[construct]++; l.places[construct] > maxKept {
		return
	}
	l.Add(Diagnostic{
		Severity: Warning, Span: span, Construct: construct,
		Message: construct + " is read, but this version does not enforce it",
	})
}

// Enforce turns the warnings of constructs that are not enforced into errors:
// to load such a configuration would not do what it says.
func (l *List) Enforce() {
	for i := range l.Items {
		if d := &l.Items[i]; d.Construct != "" && d.Severity == Warning {
			d.Severity, d.Message = Error, "this version does not enforce "+d.Construct
			l.errors++
		}
	}
	l.Sort()
}

// Fold leaves one warning of each construct that is not enforced, and of each
// kind: the first in the text, which says how many places more there are.
func (l *List) Fold() {
	l.Sort()
	constructs, kinds := make(map[string]bool), make(map[string]int)
	l.Items = slices.DeleteFunc(l.Items, func(d Diagnostic) bool {
		again := d.Construct != "" && constructs[d.Construct] || d.Kind != "" && kinds[d.Kind] > 0
		constructs[d.Construct] = true
		kinds[d.Kind]++
		return again
	})
	for i := range l.Items {
		d := &l.Items[i]
		switch {
		case d.Construct != "":
			d.Message += more(l.places[d.Construct]-1, " (nor in %d other place)", " (nor in %d other places)")
		case d.Kind != "":
			d.Message += more(kinds[d.Kind]-1, " (and %d more like it)", " (and %d more like it)")
		}
	}
}

// more puts a number above 0 into the format for it.
func more(n int, one, several string) string {
	switch {
	case n < 1:
		return ""
	case n == 1:
		return fmt.Sprintf(one, n)
	}
	return fmt.Sprintf(several, n)
}

// HasErrors reports whether the configuration is refused.
func (l *List) HasErrors() bool { return l.errors > 0 }

// Sort puts errors before warnings, and each in the order of the text.
func (l *List) Sort() {
	slices.SortStableFunc(l.Items, func(a, b Diagnostic) int {
		return cmp.Or(cmp.Compare(a.Severity, b.Severity),
			cmp.Compare(l.Files.Use(a.Span).Pos, l.Files.Use(b.Span).Pos),
			cmp.Compare(a.Span.Pos, b.Span.Pos))
	})
}

// Err is nil if the list holds no error, else an error whose text is what
// Fprint prints.
func (l *List) Err() error {
	if !l.HasErrors() {
		return nil
	}
	return &Failure{List: *l}
}

// Failure is a refused configuration as an error.
type Failure struct{ List List }

// Error returns all errors, with source lines, without a final newline.
func (f *Failure) Error() string { return f.List.String() }

// String is what Fprint prints, without a final newline.
func (l *List) String() string {
	var b strings.Builder
	_ = l.Fprint(&b) // a Builder does not fail
	return strings.TrimSuffix(b.String(), "\n")
}
