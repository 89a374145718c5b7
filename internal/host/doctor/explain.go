package doctor

import (
	"embed"
	"fmt"
	"slices"
	"strings"
)

// Explained is a check with its page.
type Explained struct {
	ID    string   `json:"id"`
	Title string   `json:"title"`
	Reads []string `json:"reads"`
	Page  string   `json:"page"` // as [Explain] returns it, in Markdown
}

// ExplainedCheck returns a check with its page. The error names the check if it does not exist.
func ExplainedCheck(id string) (Explained, error) {
	page, err := Explain(id)
	for _, c := range Checks() {
		if c.ID == strings.ToUpper(id) {
			return Explained{ID: c.ID, Title: c.Title, Reads: c.reads(), Page: page}, err
		}
	}
	return Explained{}, err
}

// reads returns what a check reads, with the kernel's log if messages of it are its own.
func (c *Check) reads() []string {
	if slices.ContainsFunc(logRules, func(r logRule) bool { return r.check == c.ID }) {
		return append(slices.Clone(c.Reads), "log")
	}
	return c.Reads
}

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
		return fmt.Sprintf("# %s: %s\n\nReads: %s.\n\n%s", c.ID, c.Title, strings.Join(c.reads(), ", "), page), nil
	}
	return "", fmt.Errorf("there is no check %q; weir doctor --list names them", id)
}
