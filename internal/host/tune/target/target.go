package target

import (
	"bytes"
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
)

//go:embed targets.yaml
var targetsText []byte

//go:embed keys.yaml
var keysText []byte

// A Target is a system that settings are written for.
type Target struct {
	Name string // family-version
	Base string // FreeBSD that it is built on; "" if unknown
}

// Family returns freebsd, pfsense or opnsense.
func (t Target) Family() string {
	family, _, _ := strings.Cut(t.Name, "-")
	return family
}

// Major returns the major version of its FreeBSD, 0 if unknown.
func (t Target) Major() int {
	major, _, _ := strings.Cut(t.Base, ".")
	n, err := strconv.Atoi(major)
	if err != nil {
		return 0
	}
	return n
}

var families = []string{"freebsd", "pfsense", "opnsense"}

var versionForm = regexp.MustCompile(`^[0-9]+(\.[0-9]+){0,2}$`)

// Find returns the target with a name. An unknown version of a known family has no base.
// Any other unknown name is an error.
func Find(name string) (Target, error) {
	all, err := load()
	if err != nil {
		return Target{}, err
	}
	var known []string
	for _, t := range all.targets {
		if t.Name == name {
			return t, nil
		}
		known = append(known, t.Name)
	}
	family, version, _ := strings.Cut(name, "-")
	if slices.Contains(families, family) && versionForm.MatchString(version) {
		return Target{Name: name}, nil
	}
	return Target{}, fmt.Errorf("%s: want %s", name, strings.Join(known, ", "))
}

// A Source is where keys of one major version of FreeBSD were found.
type Source struct {
	Repo    string `yaml:"repo"`
	Path    string `yaml:"path"`
	Commit  string `yaml:"commit"`
	FreeBSD int    `yaml:"freebsd"`
}

// data is the contents of both files.
type data struct {
	targets []Target
	sources map[string]Source
	keys    map[string][]string // their sources, oldest first
	drivers map[string][]string // drivers based on iflib(9), with their sources
}

var load = sync.OnceValues(func() (*data, error) {
	var d data
	if err := strict(targetsText, &d.targets); err != nil {
		return nil, fmt.Errorf("targets.yaml: %w", err)
	}
	var file struct {
		Sources map[string]Source   `yaml:"sources"`
		Keys    map[string][]string `yaml:"keys"`
		Drivers map[string][]string `yaml:"drivers"`
	}
	if err := strict(keysText, &file); err != nil {
		return nil, fmt.Errorf("keys.yaml: %w", err)
	}
	d.sources, d.keys, d.drivers = file.Sources, file.Keys, file.Drivers
	return &d, nil
})

func strict(text []byte, into any) error {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	return decoder.Decode(into)
}

// versions returns the first and the last major version in which a key was found, 0 if it
// was found nowhere.
func (d *data) versions(key string) (first, last int) { return d.span(d.keys[key]) }

// span returns the first and the last major version of sources, 0 without sources.
func (d *data) span(sources []string) (first, last int) {
	for _, name := range sources {
		v := d.sources[name].FreeBSD
		if first == 0 || v < first {
			first = v
		}
		last = max(last, v)
	}
	return first, last
}

// usesIflib reports whether iflib(9) drives a driver's cards on a target. If the target's
// version is unknown, it reports whether it does on any.
func (d *data) usesIflib(t Target, driver string) bool {
	first, last := d.span(d.drivers[driver])
	major := t.Major()
	return first > 0 && (major == 0 || first <= major && major <= last)
}

// An Iflib is what is known about iflib(9) and a driver.
type Iflib struct {
	Drives bool // it drives the driver's cards on the target
	Oldest int  // oldest major version of FreeBSD in which it was found to, 0 for none
	Since  int  // first major version in which drivers have keys of iflib(4)
}

// FindIflib returns what is known about iflib(9) and a driver on a target.
func FindIflib(t Target, driver string) (Iflib, error) {
	known, err := load()
	if err != nil {
		return Iflib{}, err
	}
	i := Iflib{Drives: known.usesIflib(t, driver)}
	i.Oldest, _ = known.span(known.drivers[driver])
	i.Since = known.iflibSince()
	return i, nil
}

// iflibSince returns the first major version with keys of iflib(4).
func (d *data) iflibSince() int {
	first, _ := d.versions("dev.DRIVER.N.iflib.override_nrxqs")
	return first
}
