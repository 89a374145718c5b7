package doctor

import (
	"embed"
	"fmt"
	"strings"
)

// pages has a page for each check, named by the check's ID.
//
//go:embed pages/*.md
var pages embed.FS

// Explain returns the page of a check: what it looks at, when it finds something, and
// what to do. The error names the check if it does not exist.
func Explain(id string) (string, error) {
	id = strings.ToUpper(id)
	for _, c := range Checks() {
		if c.ID != id {
			continue
		}
		page, err := pages.ReadFile("pages/" + id + ".md")
		if err != nil {
			return "", fmt.Errorf("the page of %s is missing: %w", id, err)
		}
		return fmt.Sprintf("# %s: %s\n\nReads: %s.\n\n%s", c.ID, c.Title, strings.Join(c.Reads, ", "), page), nil
	}
	return "", fmt.Errorf("there is no check %q; weir doctor --list names them", id)
}
