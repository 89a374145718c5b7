package audit_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"weir/internal/host/tune/audit"
)

// encoded returns a text in UTF-16 with a byte order mark.
func encoded(text string, order binary.AppendByteOrder) string {
	var b []byte
	for _, unit := range utf16.Encode([]rune("\ufeff" + text)) {
		b = order.AppendUint16(b, unit)
	}
	return string(b)
}

// TestText checks that a file is read as editors of other systems leave it, and that what is
// no text is refused.
func TestText(t *testing.T) {
	const text = "net.a.b=1\n# über\nnet.a.c = 2\n"
	want := []string{"1:net.a.b=1", "3:net.a.c=2"}
	for name, file := range map[string]string{
		"as it is": text, "CRLF": strings.ReplaceAll(text, "\n", "\r\n"), "CR": strings.ReplaceAll(text, "\n", "\r"),
		"a mark": "\ufeff" + text, "UTF-16": encoded(text, binary.LittleEndian), "UTF-16, the other": encoded(text, binary.BigEndian),
		"without an end": strings.TrimSuffix(text, "\n"), "Latin-1": strings.ReplaceAll(text, "ü", "\xfc"),
	} {
		if settings, passed := read(t, file); !slices.Equal(settings, want) || len(passed) > 0 {
			t.Errorf("%s: %v, passed over %v", name, settings, passed)
		}
	}
	long := "net.a.b=1 # " + strings.Repeat("x", 1<<20) + "\nnet.a.c=2\n"
	if settings, _ := read(t, long); len(settings) != 2 {
		t.Errorf("a long line: %v", settings)
	}
	for name, file := range map[string]string{"a program": "\x7fELF\x02\x01\x01\x00\x00net.a.b=1\n", "zeroes": strings.Repeat("\x00", 99)} {
		if _, _, err := audit.Read(bytes.NewReader([]byte(file)), "f", func(string) bool { return true }); !errors.Is(err, audit.ErrNotText) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestCalls checks settings in the languages of scripts, and what only looks like one.
func TestCalls(t *testing.T) {
	known := func(string) bool { return true }
	for text, want := range map[string]audit.Line{
		`sysctl("net.inet.ip.ttl", 226);`:                                    {Key: "net.inet.ip.ttl", Value: "226"},
		`-- ?? -- sysctl("net.inet.carp.preempt", 1);`:                       {Key: "net.inet.carp.preempt", Value: "1", Off: true},
		`sysctl { 'net.ipv4.ip_forward': value => '1' }`:                     {Key: "net.ipv4.ip_forward", Value: "1"},
		`sysctl::value { "net.core.rmem_max": value => "16777216", }`:        {Key: "net.core.rmem_max", Value: "16777216"},
		`#sysctl { 'net.ipv4.ip_forward': ensure => present, value => '0' }`: {Key: "net.ipv4.ip_forward", Value: "0", Off: true},
		`old = sysctl("net.inet.ip.ttl");`:                                   {},
	} {
		lines, _, err := audit.Read(strings.NewReader(text+"\n"), "server.lua", known)
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case want.Key == "" && len(lines) == 0:
		case len(lines) != 1 || lines[0].Key != want.Key || lines[0].Value != want.Value || lines[0].Off != want.Off:
			t.Errorf("%s: %+v", text, lines)
		}
	}
}

// TestComments checks that a command behind the comment mark of a program is off, and that one
// behind root's prompt in a page is not.
func TestComments(t *testing.T) {
	for _, c := range []struct {
		file, text string
		off        bool
	}{
		{"tune.sh", "# sudo sysctl -w net.ipv4.tcp_fack=1\n", true},
		{"rc.local", "#!/bin/sh\n#echo 1 > /proc/sys/net/ipv4/tcp_fack\n", true},
		{"router.nix", "# \"net.ipv4.tcp_fack\" = true;\n", true},
		{"page.md", "# sysctl -w net.ipv4.tcp_fack=1\n", false},
	} {
		lines, _, err := audit.Read(strings.NewReader(c.text), c.file, func(string) bool { return true })
		if err != nil || len(lines) != 1 || lines[0].Off != c.off || lines[0].Value != "1" {
			t.Errorf("%s: %+v, %v; want one line, off: %v", c.file, lines, err, c.off)
		}
	}
}

// TestNoSettings checks that what opens a list in Nix's language, or leaves a value to the kernel, is no setting.
func TestNoSettings(t *testing.T) {
	for _, text := range []string{"boot.kernel.sysctl = {\n", "\"net.ipv4.tcp_fack\" = null;\n"} {
		lines, _, err := audit.Read(strings.NewReader(text), "router.nix", func(string) bool { return true })
		if err != nil || len(lines) > 0 {
			t.Errorf("%q: %+v, %v; want no line", text, lines, err)
		}
	}
}
