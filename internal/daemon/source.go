package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Source is the text of a ruleset. It is resolved anew whenever the machine
// changes: interfaces come and go, and groups with them.
type Source struct {
	Name    string // for messages; "" for the built-in ruleset
	Text    string
	Builtin bool
}

// builtinRules let nothing through and nobody in but for the administrator;
// the implicit passes keep the box on its networks.
const builtinRules = `block
pass in proto tcp to self port %d
`

func builtin(management uint16) Source {
	return Source{Text: fmt.Sprintf(builtinRules, management), Builtin: true}
}

// readSource reads the rule file of a start.
func readSource(cfg *Config) (Source, error) {
	text, err := os.ReadFile(cfg.File)
	if cfg.Optional && errors.Is(err, fs.ErrNotExist) {
		return builtin(cfg.Management), nil
	}
	if err != nil {
		return Source{}, fmt.Errorf("read the rules: %w", err)
	}
	return Source{Name: cfg.File, Text: string(text)}, nil
}
