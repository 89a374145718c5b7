package ipsec

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"

	"weir/internal/fw/rundir"
)

// A ledger is what weir has given to charon, on disk for the next process: charon has private keys of
// others too, which look alike. It has no secrets.
type ledger struct {
	path string

	Salt  []byte           `json:"salt"` // of the fingerprints
	Keys  map[string]bool  `json:"keys"` // the numbers of private keys
	Given map[string]given `json:"given"`
}

// given is what a tunnel was given as.
type given struct {
	Connection  string `json:"connection"`  // its fingerprint
	Credentials string `json:"credentials"` // likewise
	Key         string `json:"key,omitempty"`
}

const saltSize = 16

func (l *ledger) read() error {
	l.clear()
	err := rundir.ReadJSON(l.path, l)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || l.Keys == nil || l.Given == nil {
		l.clear()
	}
	return err
}

func (l *ledger) clear() {
	l.Salt, l.Keys, l.Given = make([]byte, saltSize), map[string]bool{}, map[string]given{}
	rand.Read(l.Salt) //nolint:errcheck // it never fails
}

func (l *ledger) empty() bool { return len(l.Keys) == 0 && len(l.Given) == 0 }

// write writes the ledger before charon is given what it says, or after that was taken back.
func (l *ledger) write() error {
	if !l.empty() {
		return rundir.WriteJSON(l.path, l)
	}
	err := os.Remove(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
