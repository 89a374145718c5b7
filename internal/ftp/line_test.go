package ftp

import (
	"net/netip"
	"testing"
)

func TestParsePort(t *testing.T) {
	for text, want := range map[string]string{
		"192,168,1,10,4,1":     "192.168.1.10:1025",
		"10, 0, 0, 1, 255,255": "10.0.0.1:65535",
		"0,0,0,0,0,0":          "0.0.0.0:0",
		"192,168,1,10,4":       "",
		"192,168,1,10,4,1,1":   "",
		"192,168,1,256,4,1":    "",
		"192,168,1,-1,4,1":     "",
		"192.168.1.10,4,1":     "",
		"":                     "",
	} {
		got, err := parsePort(text)
		compare(t, text, got, err, want)
		if err == nil && text[3] == ',' && formatPort(got) != text {
			t.Errorf("%q is written as %q", text, formatPort(got))
		}
	}
}

func TestParseEPRT(t *testing.T) {
	for text, want := range map[string]string{
		"|1|132.235.1.2|6275|":                "132.235.1.2:6275",
		"|2|1080::8:800:200C:417A|5282|":      "[1080::8:800:200c:417a]:5282",
		"!1!10.0.0.1!21!":                     "10.0.0.1:21",
		"|1|1080::8:800:200C:417A|5282|":      "",
		"|2|10.0.0.1|5282|":                   "",
		"|2|fe80::1%eth0|5282|":               "",
		"|1|10.0.0.1|65536|":                  "",
		"|1|10.0.0.1|1|x":                     "",
		"|1|10.0.0.1|":                        "",
		"|":                                   "",
		"":                                    "",
		"|1|10.0.0.1 port 80; pass all #|80|": "",
		"|2|1080::8:800:200C:417A\npass quick|5282|": "",
	} {
		got, err := parseEPRT(text)
		compare(t, text, got, err, want)
	}
}

func compare(t *testing.T, text string, got netip.AddrPort, err error, want string) {
	t.Helper()
	if want == "" && err == nil || want != "" && (err != nil || got.String() != want) {
		t.Errorf("%q is read as %v, %v; want %q", text, got, err, want)
	}
}

// Replies of servers in use: RFC 959's, vsftpd, ProFTPD, IIS, some without parentheses.
func TestParsePASV(t *testing.T) {
	for line, want := range map[string]string{
		"227 Entering Passive Mode (192,0,2,1,200,13)\r\n":  "192.0.2.1:51213",
		"227 Entering Passive Mode (192,0,2,1,200,13).\r\n": "192.0.2.1:51213",
		"227 Entering Passive Mode 192,0,2,1,200,13\r\n":    "192.0.2.1:51213",
		"227 =192,0,2,1,200,13\r\n":                         "192.0.2.1:51213",
		"227 ok, 192,0,2,1,200,13\r\n":                      "192.0.2.1:51213",
		"227 Entering Passive Mode. 192,0,2,1,200,13\r\n":   "192.0.2.1:51213",
		"227 Mode 2: 192,0,2,1,200,13\r\n":                  "192.0.2.1:51213",
		"227 2nd try (192,0,2,1,200,13) of 3\r\n":           "192.0.2.1:51213",
		"227 5, 192,0,2,1,200,13\r\n":                       "192.0.2.1:51213",
		"227 1,2,3 (192, 0, 2, 1, 200, 13)\r\n":             "192.0.2.1:51213",
		"227 (1,2) 300,1,1,1,1,1 192,0,2,1,200,13\r\n":      "192.0.2.1:51213",
		"227 =192, 0, 2, 1, 200, 13\r\n":                    "192.0.2.1:51213",
		"227 1,192,0,2,1,200,13\r\n":                        "",
		"227 Entering Passive Mode 4\r\n":                   "",
		"227 Entering Passive Mode\r\n":                     "",
		"227 Entering Passive Mode (192,0,2,1,200)\r\n":     "",
		"227 Entering Passive Mode (192,0,2,1,200,300)\r\n": "",
		"227 (|||51213|)\r\n":                               "",
	} {
		got, err := parsePASV(line)
		compare(t, line, got, err, want)
	}
}

func TestParseEPSV(t *testing.T) {
	for line, want := range map[string]uint16{
		"229 Entering Extended Passive Mode (|||6446|)\r\n": 6446,
		"229 Passive (!!!6446!) now\r\n":                    6446,
		"229 (|||65536|)\r\n":                               0,
		"229 (|1|10.0.0.1|6446|)\r\n":                       0,
		"229 (|||6446)\r\n":                                 0,
		"229 ()\r\n":                                        0,
		"229 )(\r\n":                                        0,
	} {
		got, err := parseEPSV(line)
		if got != want || (err == nil) != (want != 0) {
			t.Errorf("%q is read as %d, %v; want %d", line, got, err, want)
		}
	}
}

func TestCode(t *testing.T) {
	for line, want := range map[string]int{"220 hello\r\n": 220, "220-hello\r\n": 0, " more\r\n": 0, "99\r\n": 0, "227": 0, "227 \r\n": 227, "\r\n": 0} {
		if got := code(line); got != want {
			t.Errorf("%q has code %d, want %d", line, got, want)
		}
	}
}
