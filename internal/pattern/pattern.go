package pattern

import (
	"regexp"
	"sync"
)

// A Pattern is a regular expression. Its methods are those of regexp.Regexp.
type Pattern struct {
	text     string
	once     sync.Once
	compiled *regexp.Regexp
}

// New returns the pattern of an expression. Its first use panics if the expression is wrong.
func New(text string) *Pattern { return &Pattern{text: text} }

func (p *Pattern) get() *regexp.Regexp {
	p.once.Do(func() { p.compiled = regexp.MustCompile(p.text) })
	return p.compiled
}

// MatchString reports whether s has a match.
func (p *Pattern) MatchString(s string) bool { return p.get().MatchString(s) }

// FindStringSubmatch returns the first match and its parts.
func (p *Pattern) FindStringSubmatch(s string) []string { return p.get().FindStringSubmatch(s) }

// FindStringIndex returns where the first match begins and ends.
func (p *Pattern) FindStringIndex(s string) []int { return p.get().FindStringIndex(s) }

// FindAllString returns the first n matches; all if n is negative.
func (p *Pattern) FindAllString(s string, n int) []string { return p.get().FindAllString(s, n) }

// FindAllStringSubmatch returns the first n matches and their parts; all if n is negative.
func (p *Pattern) FindAllStringSubmatch(s string, n int) [][]string {
	return p.get().FindAllStringSubmatch(s, n)
}

// ReplaceAllString replaces all matches.
func (p *Pattern) ReplaceAllString(s, by string) string { return p.get().ReplaceAllString(s, by) }

// ReplaceAllStringFunc replaces all matches by what f returns for them.
func (p *Pattern) ReplaceAllStringFunc(s string, f func(string) string) string {
	return p.get().ReplaceAllStringFunc(s, f)
}

// Split returns what is between the first n-1 matches; between all if n is negative.
func (p *Pattern) Split(s string, n int) []string { return p.get().Split(s, n) }
