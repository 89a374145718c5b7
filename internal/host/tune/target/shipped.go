package target

import (
	_ "embed"
	"fmt"
	"sync"
)

//go:embed shipped.yaml
var shippedText []byte

// shipped is what a version of a firewall sets by itself.
type shipped struct {
	Commit string            `yaml:"commit"`
	Values map[string]string `yaml:"values"`
}

var loadShipped = sync.OnceValues(func() (map[string]shipped, error) {
	all := map[string]shipped{}
	if err := strict(shippedText, &all); err != nil {
		return nil, fmt.Errorf("shipped.yaml: %w", err)
	}
	return all, nil
})

// Shipped returns the value that a target sets by itself for a key.
func Shipped(t Target, key string) (value string, found bool) {
	all, err := loadShipped()
	if err != nil {
		return "", false // a test reads the file
	}
	value, found = all[t.Name].Values[key]
	return value, found
}
