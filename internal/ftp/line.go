package ftp

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
)

// maxLine is the longest line of a control connection in bytes, with its end. Paths may be
// 4,096 bytes long.
const maxLine = 8192

var (
	errAddress = errors.New("not an address with a port")
	errTarget  = errors.New("the data connection is for another host, or for a port below 1024")
)

// command returns the first word of a client's line, in upper case, and the rest.
func command(line string) (word, rest string) {
	word, rest, _ = strings.Cut(strings.TrimRight(line, "\r\n"), " ")
	return strings.ToUpper(word), strings.TrimSpace(rest)
}

// code returns the code of a server's line if it ends a reply; 0 if the reply goes on
// (RFC 959, 4.2).
func code(line string) int {
	if len(line) < 4 || line[3] == '-' {
		return 0
	}
	n, err := strconv.Atoi(line[:3])
	if err != nil || n < 100 {
		return 0
	}
	return n
}

// parsePort reads the argument of PORT: h1,h2,h3,h4,p1,p2.
func parsePort(text string) (netip.AddrPort, error) {
	words := strings.Split(text, ",")
	if len(words) != 6 {
		return netip.AddrPort{}, errAddress
	}
	var b [6]byte
	for i, word := range words {
		n, err := strconv.ParseUint(strings.TrimSpace(word), 10, 8)
		if err != nil {
			return netip.AddrPort{}, errAddress
		}
		b[i] = byte(n)
	}
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[:4])), uint16(b[4])<<8|uint16(b[5])), nil
}

// formatPort is the opposite of parsePort.
func formatPort(at netip.AddrPort) string {
	a := at.Addr().As4()
	return fmt.Sprintf("%d,%d,%d,%d,%d,%d", a[0], a[1], a[2], a[3], at.Port()>>8, at.Port()&0xff)
}

// parseEPRT reads the argument of EPRT: |1|address|port|, with 2 for IPv6 (RFC 2428, 2).
func parseEPRT(text string) (netip.AddrPort, error) {
	if len(text) < 2 {
		return netip.AddrPort{}, errAddress
	}
	words := strings.Split(text, text[:1])
	if len(words) != 5 || words[0] != "" || words[4] != "" {
		return netip.AddrPort{}, errAddress
	}
	addr, err := netip.ParseAddr(words[2])
	port, portErr := strconv.ParseUint(words[3], 10, 16)
	if err != nil || portErr != nil || addr.Zone() != "" || addr.Is4() != (words[1] == "1") || addr.Is6() != (words[1] == "2") {
		return netip.AddrPort{}, errAddress
	}
	return netip.AddrPortFrom(addr, uint16(port)), nil
}

func formatEPRT(at netip.AddrPort) string {
	family := 1
	if at.Addr().Is6() {
		family = 2
	}
	return fmt.Sprintf("|%d|%s|%d|", family, at.Addr(), at.Port())
}

// The address of a reply 227 in parentheses, as in RFC 959, and with blanks between its numbers.
var (
	inParentheses = regexp.MustCompile(`\( *(\d+(?: *, *\d+){5}) *\)`)
	withBlanks    = regexp.MustCompile(`(?:^|[^\d,])(\d+(?: *, *\d+){5})(?:[^\d,]|$)`)
)

// parsePASV finds the address in a reply 227. Servers put different texts around it, in which
// there may be numbers, too (RFC 959, 4.2; RFC 1123, 4.1.2.6). The surest form counts.
func parsePASV(line string) (netip.AddrPort, error) {
	text := line[4:]
	all := firstGroups(inParentheses, text)
	all = append(all, strings.FieldsFunc(text, func(r rune) bool { return r != ',' && (r < '0' || r > '9') })...)
	all = append(all, firstGroups(withBlanks, text)...)
	for _, one := range all {
		if at, err := parsePort(one); err == nil {
			return at, nil
		}
	}
	return netip.AddrPort{}, errAddress
}

// firstGroups returns what the group of an expression has matched, each time.
func firstGroups(x *regexp.Regexp, text string) (all []string) {
	for _, found := range x.FindAllStringSubmatch(text, -1) {
		all = append(all, found[1])
	}
	return all
}

// parseEPSV finds the port in a reply 229: (|||port|) (RFC 2428, 3).
func parseEPSV(line string) (uint16, error) {
	from := strings.IndexByte(line, '(')
	end := strings.LastIndexByte(line, ')')
	if from < 0 || end < from+6 {
		return 0, errAddress
	}
	words := strings.Split(line[from+1:end], line[from+1:from+2])
	if len(words) != 5 || words[0]+words[1]+words[2]+words[4] != "" {
		return 0, errAddress
	}
	port, err := strconv.ParseUint(words[3], 10, 16)
	if err != nil {
		return 0, errAddress
	}
	return uint16(port), nil
}
