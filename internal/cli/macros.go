package cli

import (
	"strings"

	"weir/pf/source"
)

const macrosUsage = "define a macro, as `macro=value`; a definition in the file does not change it; may be given again for others"

const withoutUsage = "load the file although weir ignores some of it; the only `construct` is queues: queue, altq, set queue, dnpipe, dnqueue"

// macrosFlag holds the macros that -D sets.
type macrosFlag []source.Macro

// Set adds macro=value.
func (f *macrosFlag) Set(s string) error {
	m, err := source.ParseMacro(s)
	if err != nil {
		return err
	}
	*f = append(*f, m)
	return nil
}

// String returns the macros as they were set.
func (f *macrosFlag) String() string {
	var all []string
	for _, m := range *f {
		all = append(all, m.Name+"="+m.Value)
	}
	return strings.Join(all, " ")
}

// Type returns the placeholder for a macro in help texts.
func (f *macrosFlag) Type() string { return "macro=value" }
