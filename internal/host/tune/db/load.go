package db

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

//go:embed places.yaml records/*.yaml
var files embed.FS

// A DB is the checked database.
type DB struct {
	Records []*Record // in the order of the files
	Places  map[string]Place
}

// Load reads the embedded database. An error is a bug in weir.
func Load() (*DB, error) {
	places, err := readPlaces()
	if err != nil {
		return nil, err
	}
	d := &DB{Places: places}
	entries, err := files.ReadDir("records")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		text, err := files.ReadFile("records/" + e.Name())
		if err != nil {
			return nil, err
		}
		records, err := parse(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.Name(), err)
		}
		for _, r := range records {
			if err := d.check(r); err != nil {
				return nil, fmt.Errorf("%s: %s: %w", e.Name(), r.Key, err)
			}
		}
		d.Records = append(d.Records, records...)
	}
	return d, nil
}

func readPlaces() (map[string]Place, error) {
	text, err := files.ReadFile("places.yaml")
	if err != nil {
		return nil, err
	}
	places := map[string]Place{}
	if err := strict(text, &places); err != nil {
		return nil, fmt.Errorf("places.yaml: %w", err)
	}
	for name, p := range places {
		if slices.Contains([]string{p.Apply, p.ReadBack, p.Revert}, "") {
			return nil, fmt.Errorf("places.yaml: %s: apply, readback and revert have to be there", name)
		}
		if !slices.Contains(persistences, p.Persistence) {
			return nil, fmt.Errorf("places.yaml: %s: persistence %q is none of %q", name, p.Persistence, persistences)
		}
	}
	return places, nil
}

// parse reads the records of one file.
func parse(text []byte) ([]*Record, error) {
	var records []*Record
	if err := strict(text, &records); err != nil {
		return nil, err
	}
	return records, nil
}

// strict reads one YAML document, and refuses unknown members.
func strict(text []byte, into any) error {
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(into); err != nil {
		return err
	}
	if err := d.Decode(new(any)); !errors.Is(err, io.EOF) {
		return errors.New("more than one document")
	}
	return nil
}

// ByKey returns the records with a key; nil if there is none. A key may exist in several
// places.
func (d *DB) ByKey(key string) []*Record {
	var found []*Record
	for _, r := range d.Records {
		if r.Key == key {
			found = append(found, r)
		}
	}
	return found
}

var (
	unitForm   = regexp.MustCompile(`^dev\.([a-z0-9_]+?)\.[0-9%d]+\.`)
	hwUnitForm = regexp.MustCompile(`^hw\.(vtnet)\.[0-9]+\.`)
	cardForm   = regexp.MustCompile(`^nic\..+\.([a-z0-9-]+)$`)
	driverForm = regexp.MustCompile(`^hw\.(em|ix|ixl)\.`)
)

// Match returns the records for a key as files write it; nil if there is none. It matches
// the key itself, the key with N for a device's number or without it, and the key of another driver of
// the same family. For one of several options it returns the record of them all. If
// several patterns match, the longest wins.
func (d *DB) Match(key string) []*Record {
	names := []string{key}
	if m := unitForm.FindStringSubmatch(key); m != nil {
		rest := key[len(m[0]):]
		names = append(names, "dev."+m[1]+".N."+rest, "dev.igb.N."+rest, "dev.DRIVER.N."+rest)
	}
	if m := hwUnitForm.FindStringSubmatch(key); m != nil { // one card, as hw.vtnet for all; other drivers have no such keys
		names = append(names, "hw."+m[1]+"."+key[len(m[0]):])
	}
	if m := cardForm.FindStringSubmatch(key); m != nil {
		names = append(names, "nic.DEV."+m[1])
	}
	names = append(names, driverForm.ReplaceAllString(key, "hw.igb."))
	for _, name := range names {
		if records := d.ByKey(name); records != nil {
			return records
		}
	}
	if strings.HasPrefix(key, "-") {
		return d.matchOption(key)
	}
	return d.matchPattern(key)
}

// matchOption returns the records for several options of ifconfig that include the key.
func (d *DB) matchOption(key string) []*Record {
	var found []*Record
	for _, r := range d.Records {
		if slices.Contains(strings.Fields(r.Key), key) {
			found = append(found, r)
		}
	}
	return found
}

// matchPattern returns, for each system, the records with the longest pattern that
// matches a key. In a pattern, * matches any characters. A pattern without dots matches
// names without dots only: hw.bce.tso_enable is no service.
func (d *DB) matchPattern(key string) []*Record {
	key = strings.ReplaceAll(key, "/", "_") // of an interface like eth0.100
	longest := map[string]*Record{}
	for _, r := range d.Records {
		if !r.Pattern() {
			continue
		}
		if fits, err := path.Match(r.Key, key); err != nil || !fits || strings.Contains(key, ".") && !strings.Contains(r.Key, ".") {
			continue
		}
		if l := longest[r.System]; l == nil || len(r.Key) > len(l.Key) {
			longest[r.System] = r
		}
	}
	var found []*Record
	for _, system := range slices.Sorted(maps.Keys(longest)) {
		found = append(found, longest[system])
	}
	return found
}

// Dotted writes a key with dots, as people do. Linux's files may have slashes; a dot then
// belongs to an interface's name.
func Dotted(key string) string {
	if first := strings.IndexAny(key, "./"); first < 0 || key[first] == '.' {
		return key
	}
	return Swapped(key)
}

// Swapped turns dots into slashes and slashes into dots: net.ipv4.conf.eth0/7.forwarding
// is net/ipv4/conf/eth0.7/forwarding.
func Swapped(key string) string {
	return strings.Map(func(r rune) rune {
		switch r {
		case '/':
			return '.'
		case '.':
			return '/'
		}
		return r
	}, key)
}

// Pattern reports whether a record is about several keys.
func (r *Record) Pattern() bool { return strings.Contains(r.Key, "*") }

// Family reports whether a record is about keys with different meanings. A pattern like
// net.ipv4.conf.*.rp_filter is one setting for each interface, and no family.
func (r *Record) Family() bool {
	return strings.Contains(r.Key[strings.LastIndex(r.Key, ".")+1:], "*")
}

// Place returns where a record's setting is made.
func (d *DB) Place(r *Record) Place { return d.Places[r.Place] }
