package remote

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestKeyText(t *testing.T) {
	k := NewKey()
	if got, err := ParseKey(" " + k.String() + "\n"); err != nil || got != k {
		t.Errorf("%s came back as %v, %v", k, got, err)
	}
	for _, text := range []string{"", "secret", keyPrefix, k.String() + "A", k.String()[:len(k.String())-1], strings.ToUpper(k.String()), "weirbench2-" + k.String()[len(keyPrefix):]} {
		if _, err := ParseKey(text); !errors.Is(err, ErrKeyText) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestKeyFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "key")
	if _, err := ReadKey(name); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	made, isNew, err := OpenKey(name)
	if err != nil || !isNew {
		t.Fatalf("made %v, %v", isNew, err)
	}
	if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the new file: %v, %v", info.Mode(), err)
	}
	if k, isNew, err := OpenKey(name); err != nil || isNew || k != made {
		t.Errorf("the second time: %v, %v", isNew, err)
	}
	if err := os.Chmod(name, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadKey(name); !errors.Is(err, errKeyOpen) {
		t.Errorf("a file that others may read: %v", err)
	}
}

// TestRolesHaveTheirOwnKeys: neither side can use the other's certificate as its own.
func TestRolesHaveTheirOwnKeys(t *testing.T) {
	k := NewKey()
	server, err := k.signer(roleServer)
	if err != nil {
		t.Fatal(err)
	}
	client, err := k.signer(roleClient)
	if err != nil {
		t.Fatal(err)
	}
	if server.Equal(client) || string(server.Seed()) == string(k[:]) {
		t.Error("the roles' keys are not their own")
	}
}
