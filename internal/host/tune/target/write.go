package target

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"weir/internal/host/tune/arith"
	"weir/internal/host/tune/db"
)

// places lists the files of a family in the order of writing, with what to do with their
// lines.
var places = map[string][]struct{ place, title string }{
	"freebsd": {
		{"loader.conf", "/boot/loader.conf, read when the system starts"},
		{"sysctl.conf", "/etc/sysctl.conf, and sysctl KEY=VALUE to apply it at once"},
		{"rc.conf", "/etc/rc.conf, read when the system starts"},
	},
	"pfsense": {
		{"loader.conf", "/boot/loader.conf.local, read when the system starts"},
		{"sysctl.conf", "System, Advanced, System Tunables: one entry for each line"},
	},
	"opnsense": {
		{"loader.conf", "/boot/loader.conf.local, read when the system starts"},
		{"sysctl.conf", "System, Settings, Tunables: one entry for each line"},
	},
}

// A Setting is one setting for another system.
type Setting struct {
	Place    string        `json:"place"` // loader.conf, sysctl.conf or rc.conf
	Keys     []string      `json:"keys"`  // one for each port if they name a device
	Value    string        `json:"value"`
	Live     bool          `json:"live"`           // written to take effect; otherwise a comment
	Note     string        `json:"note,omitempty"` // why it is only a comment, or not written
	Why      string        `json:"why"`
	Risk     string        `json:"risk,omitempty"`
	Evidence []db.Evidence `json:"evidence"`
	Grade    db.Grade      `json:"grade"`

	family string // its key with N for the device's number
}

// A Plan is what weir would set on another system.
type Plan struct {
	Target   string    `json:"target"`
	FreeBSD  string    `json:"freebsd,omitempty"` // that it is built on, "" if unknown
	Role     db.Role   `json:"role"`
	Settings []Setting `json:"settings"`
	text     string
}

// WriteText prints the lines for the target's files, each with its reason.
func (p *Plan) WriteText(w io.Writer) error {
	_, err := io.WriteString(w, p.text)
	return err
}

// ErrNotAdvised is returned for a key that weir never writes for a target and its inputs.
var ErrNotAdvised = errors.New("weir has no such line for this system, role and driver")

// NewPlan returns the settings for a target, each with its reason. Keys that are named take
// effect although their effect is not proven.
func NewPlan(d *db.DB, t Target, in *Inputs, keys ...string) (*Plan, error) {
	known, err := load()
	if err != nil {
		return nil, err
	}
	p := printer{db: d, known: known, target: t, in: in, keyed: keys, settings: []Setting{}}
	p.head()
	for _, file := range places[t.Family()] {
		if err := p.file(file.place, file.title); err != nil {
			return nil, err
		}
	}
	for _, key := range keys {
		if !slices.ContainsFunc(p.settings, func(s Setting) bool { return slices.Contains(s.Keys, key) || s.family == key }) {
			return nil, fmt.Errorf("%s: %w", key, ErrNotAdvised)
		}
	}
	if len(p.settings) == 0 {
		p.text.WriteString("\n# Nothing to set: " + nothing[in.Role] + ".\n")
	}
	return &Plan{Target: t.Name, FreeBSD: t.Base, Role: in.Role, Settings: p.settings, text: p.text.String()}, nil
}

type printer struct {
	db       *db.DB
	known    *data
	target   Target
	in       *Inputs
	keyed    []string // asked for by name
	text     strings.Builder
	settings []Setting
}

// nothing says why a role may have no settings at all.
var nothing = map[db.Role]string{
	db.Endpoint:  "buffers follow from --link and --rtt, the queue of accept() from --burst",
	db.Hardening: "weir writes no settings of this role for other systems",
}

func (p *printer) head() {
	fmt.Fprintf(&p.text, "# For %s", p.target.Name)
	if p.target.Base == "" {
		p.text.WriteString(", which weir does not know: its keys are not checked, so all\n# lines are comments. Look each up before you use it.\n")
		p.driver()
		p.buffers()
		return
	}
	if p.target.Family() != "freebsd" {
		fmt.Fprintf(&p.text, ", which is built on FreeBSD %s", p.target.Base)
	}
	fmt.Fprintf(&p.text, "; role: %s.\n# Change one thing, measure, and keep what helps.\n", p.in.Role)
	if p.target.Family() == "pfsense" && p.target.Major() >= 12 {
		p.text.WriteString("# Nothing of the list for pfSense 2.4.5 and igb applies here: the options are gone, and\n# the guide says that none is needed.\n")
	}
	p.driver()
	p.buffers()
}

// buffers shows the arithmetic of socket buffers.
func (p *printer) buffers() {
	if p.in.Role != db.Endpoint || !longPath(p.target, p.in) {
		return
	}
	buffer, limit := socketBuffer(p.in), socketLimit(p.in)
	scale := arith.WindowScale(limit)
	fmt.Fprintf(&p.text, "#\n# Bandwidth-delay product: %d bit/s x %v / 8 = %d bytes.\n", p.in.Link, p.in.RTT, arith.BDP(p.in.Link, p.in.RTT))
	fmt.Fprintf(&p.text, "# Buffer of a connection: twice that, in whole pages of 4096 bytes = %d bytes.\n", buffer)
	fmt.Fprintf(&p.text, "# kern.ipc.maxsockbuf: 9/8 of the buffer = %d bytes, as the kernel counts 256 bytes of\n"+
		"# an mbuf with each cluster of 2048 and refuses a buffer beyond (sbreserve_locked()).\n", limit)
	fmt.Fprintf(&p.text, "# Window scale for that: %d, as 65535 x 2^%d = %d.\n", scale, scale, arith.Window(scale))
}

// driver says why a driver has no lines for its queues.
func (p *printer) driver() {
	major := p.target.Major()
	if p.in.Role != db.Forwarder || p.in.Driver == "" || major > 0 && major < p.known.iflibSince() {
		return
	}
	if !p.known.usesIflib(p.target, p.in.Driver) {
		fmt.Fprintf(&p.text, "# Nothing for queues: no public source shows that iflib(9) drives %s", p.in.Driver)
		if major > 0 {
			fmt.Fprintf(&p.text, " on FreeBSD %d", major)
		}
		p.text.WriteString(".\n")
	}
}

// file prints the lines of one place, if there are any.
func (p *printer) file(place, title string) error {
	first := true
	for i := range advice {
		a := &advice[i]
		if a.place != place || a.role != p.in.Role || !a.wanted(p.target, p.in) || a.iflib && !p.known.usesIflib(p.target, p.in.Driver) {
			continue
		}
		if first {
			fmt.Fprintf(&p.text, "\n### %s\n", title)
			first = false
		}
		if err := p.setting(a); err != nil {
			return err
		}
	}
	return nil
}

// setting prints one setting with its reasons. It is a comment if it is the system's
// default, only a guide recommends it, or it is not known to exist.
func (p *printer) setting(a *advised) error {
	r, err := a.reasons(p.db, p.target)
	if err != nil {
		return err
	}
	value := a.setTo(r, p.in)
	fmt.Fprintf(&p.text, "\n# %s\n", cmp.Or(r.Rationale, r.Reason))
	if r.Risk != "" {
		fmt.Fprintf(&p.text, "# Risk: %s\n", r.Risk)
	}
	for _, e := range r.Evidence {
		fmt.Fprintf(&p.text, "# Evidence: %s\n", e)
	}
	set := Setting{Place: a.place, Value: value, Why: cmp.Or(r.Rationale, r.Reason), Risk: r.Risk, Evidence: r.Evidence, Grade: r.Grade()}
	if p.in.Driver != "" {
		set.Grade = r.GradeFor(p.in.Driver)
	}
	first, last := p.known.versions(a.keyName())
	major := p.target.Major()
	switch {
	case major == 0:
		set.Note = "weir does not know this version"
		p.lines(a, value, "#")
	case major < first || major > last:
		set.Note = fmt.Sprintf("Not written: no public source of FreeBSD %d was found to have %s", major, p.key(a, 0))
		fmt.Fprintf(&p.text, "# %s.\n", set.Note)
	case Default(r, p.target) == value:
		set.Note = "The default here"
		fmt.Fprintf(&p.text, "# %s: %s=%s\n", set.Note, p.key(a, 0), value)
	case a.suffices(Default(r, p.target), value):
		set.Note = "The default here is larger, so it stays"
		fmt.Fprintf(&p.text, "# %s: %s=%s\n", set.Note, p.key(a, 0), Default(r, p.target))
	case (!p.named(a) || a.own) && a.comment(r, p.target, p.in) != "":
		set.Note = a.comment(r, p.target, p.in)
		fmt.Fprintf(&p.text, "# %s; to try:\n", set.Note)
		p.lines(a, value, "#")
	default:
		set.Live = true
		p.lines(a, value, "")
	}
	set.Keys, set.family = p.keys(a), p.family(a)
	p.settings = append(p.settings, set)
	return nil
}

// named reports whether a setting was asked for by name: by its key for a port, or with N
// for the number.
func (p *printer) named(a *advised) bool {
	return slices.ContainsFunc(p.keyed, func(key string) bool { return key == p.family(a) || slices.Contains(p.keys(a), key) })
}

func (p *printer) family(a *advised) string {
	return strings.ReplaceAll(a.keyName(), "DRIVER", p.in.Driver)
}

// keys returns a setting's keys, one for each port if they name a device.
func (p *printer) keys(a *advised) []string {
	var keys []string
	for port := range max(1, p.in.Ports) {
		key := p.key(a, port)
		if port > 0 && key == keys[0] {
			break
		}
		keys = append(keys, key)
	}
	return keys
}

// lines prints a setting, once for each port if the key names a device.
func (p *printer) lines(a *advised, value, before string) {
	for _, key := range p.keys(a) {
		if a.place == "sysctl.conf" {
			fmt.Fprintf(&p.text, "%s%s=%s\n", before, key, value)
		} else {
			fmt.Fprintf(&p.text, "%s%s=%q\n", before, key, value)
		}
	}
}

// key returns a setting's key for one port.
func (p *printer) key(a *advised, port int) string {
	key := strings.ReplaceAll(a.keyName(), "DRIVERN", p.in.Driver+strconv.Itoa(port))
	key = strings.ReplaceAll(key, "DRIVER", p.in.Driver)
	return strings.ReplaceAll(key, ".N.", "."+strconv.Itoa(port)+".")
}

// fromForm matches the later values of a default that changed, oldest first: newreno
// (from 14: cubic).
var fromForm = regexp.MustCompile(`\(from ([0-9]+): ([^ )]+)\)`)

// Default returns a setting's default on a target, "" if the database has none. It is
// what the target's version ships, FreeBSD's, or a firewall's in the braces after it.
func Default(r *db.Record, t Target) string {
	if value, found := Shipped(t, r.Key); found {
		return value
	}
	plain, distributions, _ := strings.Cut(r.Default, "{")
	name := map[string]string{"pfsense": "pfSense", "opnsense": "OPNsense"}[t.Family()]
	for _, d := range strings.Split(strings.TrimSuffix(strings.TrimSpace(distributions), "}"), ",") {
		if value, ok := strings.CutPrefix(strings.TrimSpace(d), name+" "); ok && name != "" {
			return value
		}
	}
	value, _, _ := strings.Cut(strings.TrimSpace(plain), " ")
	for _, m := range fromForm.FindAllStringSubmatch(plain, -1) {
		if since, err := strconv.Atoi(m[1]); err == nil && t.Major() >= since {
			value = m[2]
		}
	}
	return strings.TrimRight(value, ",;")
}

// DefaultNumber returns a setting's default on a target, if the database has a number
// without conditions: "8, or the cores" is none.
func DefaultNumber(r *db.Record, t Target) (n uint64, known bool) {
	plain, _, _ := strings.Cut(r.Default, "{")
	if words := strings.Fields(fromForm.ReplaceAllString(plain, "")); len(words) != 1 {
		return 0, false
	}
	n, err := strconv.ParseUint(Default(r, t), 10, 64)
	return n, err == nil
}
