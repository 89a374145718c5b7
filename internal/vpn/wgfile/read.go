package wgfile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"weir/internal/vpn/key"
)

// File is a tunnel as a file of wg(8) has it.
type File struct {
	Private   key.Secret
	KeyFile   string // that has the private key instead
	Port      uint16 // 0: any
	Addresses []netip.Prefix
	MTU       uint16 // 0: wg-quick chooses
	NoRoute   bool   // Table = off
	Peers     []Peer

	psk   map[string]string // files of preshared keys, by the public key of the peer
	added []added           // routes that commands add
	line  int
}

// Peer is a peer as such a file has it.
type Peer struct {
	Name      string // of a comment "# Name = …"; empty: it has none
	Key       key.Public
	Preshared key.Secret
	Host      string // of its endpoint; empty: none
	Port      uint16
	Allowed   []netip.Prefix
	Keepalive uint16
	NoRoute   bool // commands add routes, and none to its networks

	line int
}

// A Fault is what is wrong in a line. It has no part of a secret.
type Fault struct {
	File string
	Line int
	Text string
}

func (f *Fault) Error() string { return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.Text) }

// mostLine is how many bytes a line may have.
const mostLine = 1 << 20

// byteOrderMark stands in front of what some editors of Windows write.
const byteOrderMark = "\ufeff"

// mostFaults is how many faults are told.
const mostFaults = 10

// reader reads a file.
type reader struct {
	name   string
	strict bool // what weir does not do is a fault
	file   *File
	line   int
	where  string // the section
	title  string // of the peer whose section is read or comes: the next line tells
	whole  bool   // there has been an interface
	said   map[string]bool
	faults []error
	left   []error // what weir does not do
}

// Read reads a file; name is for its faults, which are joined. What weir does not do is one.
func Read(name string, in io.Reader) (*File, error) {
	f, _, err := (&reader{name: name, strict: true}).all(in)
	return f, err
}

// ReadMost reads what weir does, and returns what it leaves out apart from the faults.
func ReadMost(name string, in io.Reader) (f *File, left, err error) {
	return (&reader{name: name}).all(in)
}

func (r *reader) all(in io.Reader) (_ *File, left, err error) {
	r.file, r.said = &File{}, map[string]bool{}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, mostLine) // lists of networks are long
	for lines.Scan() {
		text := lines.Text()
		if r.line++; r.line == 1 {
			text = strings.TrimPrefix(text, byteOrderMark)
		}
		r.read(text)
	}
	if err := lines.Err(); err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", r.name, err)
	}
	r.nameIt()
	if r.file.Private.IsZero() && r.file.KeyFile == "" {
		r.faultf("the interface has no PrivateKey")
	}
	for i := range r.file.Peers {
		if p := &r.file.Peers[i]; p.Key == (key.Public{}) {
			r.line = p.line
			r.faultf("this peer has no PublicKey")
		}
	}
	r.routes()
	return r.file, errors.Join(most(r.left, "lines")...), errors.Join(most(r.faults, "faults")...)
}

// most are the first of faults, with how many more there are.
func most(faults []error, what string) []error {
	if len(faults) <= mostFaults {
		return faults
	}
	return append(faults[:mostFaults], fmt.Errorf("%d more %s", len(faults)-mostFaults, what))
}

func (r *reader) faultf(format string, args ...any) {
	r.faults = append(r.faults, &Fault{r.name, r.line, fmt.Sprintf(format, args...)})
}

// several are words that wg-quick takes several times.
var several = []string{"address", "allowedips", "dns", "preup", "postup", "predown", "postdown"}

// read reads a line.
func (r *reader) read(line string) {
	text, comment, _ := strings.Cut(line, "#")
	if word, value, ok := strings.Cut(comment, "="); ok && strings.EqualFold(strings.TrimSpace(word), "name") {
		r.title = strings.TrimSpace(value)
	}
	text = strings.TrimSpace(text)
	if text == "" {
		return
	}
	if strings.HasPrefix(text, "[") {
		r.section(text)
		return
	}
	word, value, ok := strings.Cut(text, "=")
	word, value = strings.ToLower(strings.TrimSpace(word)), strings.TrimSpace(value)
	if ok && value == "" && word == "allowedips" { // as wg(8) takes it
		return
	}
	if !ok || value == "" {
		r.faultf("a line is WORD = VALUE")
		return
	}
	if r.said[word] && !slices.Contains(several, word) {
		r.faultf("%s is given twice", word)
	}
	r.said[word] = true
	defer r.nameIt()
	var err error
	switch r.where {
	case "interface":
		r.file.line = r.line
		err = r.file.set(word, value)
	case "peer":
		err = r.file.Peers[len(r.file.Peers)-1].set(word, value)
	default:
		err = errors.New("a file begins with [Interface] or [Peer]")
	}
	r.note(err)
}

// note notes what is wrong in the line.
func (r *reader) note(err error) {
	switch {
	case !r.strict && errors.As(err, new(undone)):
		r.left = append(r.left, &Fault{r.name, r.line, err.Error()})
	case err != nil:
		r.faultf("%s", err)
	}
}

// undone is what a line asks for that weir does not do.
type undone string

func (u undone) Error() string { return string(u) }

// nameIt names the peer whose section is read, if a comment in it has a name. One at its end, with
// another section after it, is the name of the next peer.
func (r *reader) nameIt() {
	if n := len(r.file.Peers); r.where == "peer" && r.file.Peers[n-1].Name == "" {
		r.file.Peers[n-1].Name = r.title
	}
	r.title = ""
}

func (r *reader) section(text string) {
	r.said = map[string]bool{}
	switch r.where = strings.ToLower(strings.Trim(text, "[]")); r.where {
	case "interface":
		if r.whole {
			r.faultf("there is an [Interface] already")
		}
		r.whole = true
	case "peer":
		r.file.Peers = append(r.file.Peers, Peer{Name: r.title, line: r.line})
		r.title = ""
	default:
		r.faultf("there is no section %s", text)
	}
}

// set sets what a line of [Interface] says.
func (f *File) set(word, value string) (err error) {
	switch word {
	case "privatekey":
		if f.Private, err = key.ParseSecret(value); err != nil || f.Private.IsZero() {
			return errors.New("PrivateKey is no key") // what it is may be most of one
		}
	case "listenport":
		f.Port, err = number(value)
	case "mtu":
		f.MTU, err = number(value)
	case "address":
		err = prefixes(value, &f.Addresses, false)
	case "table":
		switch value {
		case "auto":
		case "off":
			f.NoRoute = true
		default:
			f.NoRoute = true
			err = undone("weir's routes are in the main table: Table is auto or off")
		}
	case "fwmark":
		if value != "off" && value != "0" {
			err = undone("weir has no FwMark: rules choose by interface (route-to, tag)")
		}
	case "saveconfig":
		if value != "false" {
			err = undone("weir does not write its configuration: SaveConfig = false")
		}
	case "dns":
		err = undone("weir does not set the box's name servers (DNS)")
	case "postup":
		err = f.command(value)
	case "preup", "predown", "postdown":
		err = errNoCommands
	default:
		err = fmt.Errorf("[Interface] has no %q", word)
	}
	return err
}

// set sets what a line of [Peer] says.
func (p *Peer) set(word, value string) (err error) {
	switch word {
	case "publickey":
		if p.Key, err = key.ParsePublic(value); err != nil {
			err = fmt.Errorf("PublicKey: %w", err)
		}
	case "presharedkey":
		if p.Preshared, err = key.ParseSecret(value); err != nil {
			return errors.New("PresharedKey is no key")
		}
	case "allowedips":
		err = prefixes(value, &p.Allowed, true)
	case "endpoint":
		host, port, split := net.SplitHostPort(value)
		if at := strings.LastIndex(value, ":"); split != nil && at > 0 && isIPv6(value[:at]) {
			return fmt.Errorf("%q is no HOST:PORT: an IPv6 address stands in brackets, as in [%s]:%s", value, value[:at], value[at+1:])
		}
		if split != nil || host == "" {
			return fmt.Errorf("%q is no HOST:PORT", value)
		}
		p.Host = host
		if p.Port, err = number(port); err == nil && p.Port == 0 {
			err = errors.New("the port of an endpoint is 1 to 65535")
		}
	case "persistentkeepalive":
		if value != "off" {
			p.Keepalive, err = number(value)
		}
	default:
		err = fmt.Errorf("[Peer] has no %q", word)
	}
	return err
}

func isIPv6(text string) bool {
	a, err := netip.ParseAddr(text)
	return err == nil && a.Is6()
}

func number(text string) (uint16, error) {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return 0, fmt.Errorf("%q is no number from 0 to 65535", text)
	}
	return uint16(n), nil
}

// prefixes reads addresses with the lengths of their prefixes, separated by commas.
func prefixes(text string, all *[]netip.Prefix, mask bool) error {
	for one := range strings.SplitSeq(text, ",") {
		one = strings.TrimSpace(one)
		p, err := netip.ParsePrefix(one)
		if err != nil {
			a, err := netip.ParseAddr(one)
			if err != nil || a.Zone() != "" {
				return fmt.Errorf("%q is no address", one)
			}
			p = netip.PrefixFrom(a, a.BitLen())
		}
		if mask {
			p = p.Masked()
		}
		*all = append(*all, p)
	}
	return nil
}
