package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"weir/internal/api"
)

// Source is the text of a ruleset. It is resolved anew whenever the machine
// changes: interfaces come and go, and groups with them.
type Source struct {
	Name    string // as the user called it, for diagnostics
	Path    string // absolute, for records; api.Builtin for the built-in ruleset
	Text    string
	Builtin bool
}

// builtinRules let nothing through and nobody in but for the administrator; the
// implicit passes keep the box on its networks. What the box's programs say to
// each other over lo comes from nowhere else: a database or a resolver that
// died with the rules would lock the administrator out too.
const builtinRules = `set skip on lo
block
pass in proto tcp to self port %d
`

func builtin(management uint16) Source {
	return Source{Name: api.Builtin, Path: api.Builtin, Text: fmt.Sprintf(builtinRules, management), Builtin: true}
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
	path, err := filepath.Abs(cfg.File)
	if err != nil {
		return Source{}, fmt.Errorf("find the rule file's folder: %w", err)
	}
	return Source{Name: cfg.File, Path: path, Text: string(text)}, nil
}

// path is what records call a file that messages call name.
func (s *Source) path(name string) string {
	if name == s.Name {
		return s.Path
	}
	return name
}
