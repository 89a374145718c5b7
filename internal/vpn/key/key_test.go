package key

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/testenv"
)

// A secret key is written nowhere, whatever writes the value that holds it.
func TestSecretIsNotPrinted(t *testing.T) {
	s := NewPrivate()
	holder := struct{ Key Secret }{s}
	b, err := json.Marshal(holder)
	if err != nil {
		t.Fatal(err)
	}
	raw := s.Reveal()
	for _, text := range []string{
		string(b), fmt.Sprint(s), fmt.Sprintf("%v %+v %#v %s %q %x %d", s, s, s, s, s, s, s), fmt.Sprintf("%v %+v %#v", holder, holder, &holder),
	} {
		if !strings.Contains(text, hidden) || strings.Contains(text, fmt.Sprint(raw[1])+" ") || strings.Contains(text, fmt.Sprintf("%x", raw[:4])) {
			t.Errorf("a secret key is written as %s", text)
		}
	}
}

// wg(8) makes the same public key, and reads what is written.
func TestAsWG(t *testing.T) {
	testenv.NeedProgram(t, "wg")
	path := filepath.Join(t.TempDir(), "key")
	s := NewPrivate()
	if err := WriteFile(path, s); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(path, s); err == nil {
		t.Error("a key was written over another")
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c := exec.Command("wg", "pubkey")
	c.Stdin = f
	out, err := c.CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != s.Public().String() {
		t.Errorf("wg pubkey: %v, %s; ours is %s", err, out, s.Public())
	}
	out, err = exec.Command("wg", "genkey").CombinedOutput()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ParseSecret(strings.TrimSpace(string(out))); err != nil {
		t.Errorf("a key of wg's: %v", err)
	}
	again, err := ReadFile(path)
	if err != nil || again != s {
		t.Errorf("what was read is not what was written: %v", err)
	}
}

func TestFilesThatAreRefused(t *testing.T) {
	dir := t.TempDir()
	good := filepath.Join(dir, "good")
	if err := WriteFile(good, NewPreshared()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for path, want := range map[string]string{
		filepath.Join(dir, "none"):              "no such file",
		dir:                                     "no regular file",
		write("open", string(text), 0o640):      "chmod 600",
		write("short", string(text[4:]), 0o600): "32 bytes",
		write("long", strings.Repeat(string(text), 9), 0o600):   "32 bytes",
		write("zero", strings.Repeat("A", 43)+"=\n", 0o600):     "32 bytes",
		write("empty", "", 0o600):                               "32 bytes",
		write("words", "not a key, but of its length\n", 0o600): "32 bytes",
	} {
		_, err := ReadFile(path)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		} else if strings.Contains(err.Error(), string(text[8:20])) {
			t.Errorf("the error has part of the key: %v", err)
		}
	}
}
