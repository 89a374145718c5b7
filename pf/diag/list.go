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
	Error   Severity = iota // it cannot be used
	Warning                 // it can be used, but may not mean what its author thinks
)

// String is "error" or "warning".
func (s Severity) String() string {
	if s == Warning {
		return "warning"
	}
	return "error"
}

// Diagnostic is one error or warning.
type Diagnostic struct {
	Severity  Severity
	Span      token.Span // the text at fault
	Message   string     // lower case, no full stop
	Suggest   string     // the word that was probably meant; may be empty
	Related   []Related
	Construct string // for a warning: a construct that is read but not enforced; otherwise empty
	Remedy    string // with Construct: what else the user can do, for the error; may be empty
	Kind      string // for warnings that may occur often: Fold keeps the first of a kind
}

// Related is a place that explains a diagnostic.
type Related struct {
	Span token.Span
	Note string // may be empty
}

// unenforced reports whether this warns about a construct that is not enforced.
func (d *Diagnostic) unenforced() bool { return d.Severity == Warning && d.Construct != "" }

// Text is the message with the suggestion.
func (d *Diagnostic) Text() string {
	if d.Suggest == "" {
		return d.Message
	}
	return fmt.Sprintf("%s; did you mean %q?", d.Message, d.Suggest)
}

// List holds errors and warnings about a configuration, unordered until Sort. The zero
// value is an empty list.
type List struct {
	Files *token.FileSet // the files of the spans
	Items []Diagnostic

	errors  int // in Items
	dropped int // errors beyond maxKept
	seen    map[key]struct{}
	places  map[string]int // places of each construct that is not enforced
}

// maxKept is how many errors a list keeps. Further ones are only counted.
const maxKept = 100

// key identifies a diagnostic. Without it, a list in a rule would report a fault once for
// each rule that it expands to.
type key struct {
	span    token.Span
	message string
}

// Full reports whether looking for more errors is pointless.
func (l *List) Full() bool { return l.errors >= maxKept }

// Add appends a diagnostic, unless the list has the same one about the same text.
func (l *List) Add(d Diagnostic) {
	if d.Severity == Error && l.Full() {
		l.dropped++
		return
	}
	d.Message = shortened(d.Message)
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

// Messages quote words, which may be as long as the file. Of a longer message this much of
// both ends is kept, in bytes.
const (
	messageStart = 400
	messageEnd   = 200
)

// shortened cuts the middle of a long message.
func shortened(message string) string {
	if len(message) <= messageStart+messageEnd {
		return message
	}
	return strings.ToValidUTF8(message[:messageStart], "") + " … " + strings.ToValidUTF8(message[len(message)-messageEnd:], "")
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

// Unenforced warns that a construct is read but not enforced by this version. construct
// is the user's word for it, such as "route-to". At most 100 places of a construct are
// kept; the rest is counted.
func (l *List) Unenforced(span token.Span, construct string) {
	l.UnenforcedBut(span, construct, "")
}

// UnenforcedBut is Unenforced for constructs that a user can do without: the error of
// Enforce says how.
func (l *List) UnenforcedBut(span token.Span, construct, remedy string) {
	if l.places == nil {
		l.places = make(map[string]int)
	}
	if l.places[construct]++; l.places[construct] > maxKept {
		return
	}
	l.Add(Diagnostic{
		Severity: Warning, Span: span, Construct: construct, Remedy: remedy,
		Message: construct + " is read, but this version does not enforce it",
	})
}

// Enforce turns the warnings about constructs that are not enforced into errors, because
// loading such a configuration would not do what it says.
func (l *List) Enforce() {
	for i := range l.Items {
		if d := &l.Items[i]; d.Construct != "" && d.Severity == Warning {
			d.Severity, d.Message = Error, "this version does not enforce "+d.Construct
			if d.Remedy != "" {
				d.Message += "; " + d.Remedy
			}
			l.errors++
		}
	}
	l.Sort()
}

// Fold keeps one warning of each unenforced construct and of each kind: the first in the
// text, with the number of further places.
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

// more formats a number above 0, in the singular or the plural form.
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

// Sort orders errors before warnings, and each in the order of the text.
func (l *List) Sort() {
	slices.SortStableFunc(l.Items, func(a, b Diagnostic) int {
		return cmp.Or(cmp.Compare(a.Severity, b.Severity),
			cmp.Compare(l.Files.Use(a.Span).Pos, l.Files.Use(b.Span).Pos),
			cmp.Compare(a.Span.Pos, b.Span.Pos))
	})
}

// Err returns nil if the list has no error. Otherwise the error's text is what Fprint
// prints.
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
