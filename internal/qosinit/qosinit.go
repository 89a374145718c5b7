package qosinit

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/template"
)

// Limits of a line's rate, in bits per second. Below the least, the smallest class gets
// less than weir can keep.
const (
	LeastRate = 256_000
	MostRate  = 100_000_000_000
)

// A Line is what the queues are for.
type Line struct {
	Interface string
	Down, Up  uint64 // bits per second that it brings
	Kind      *Kind
}

// Check returns what is wrong with a line.
func (l *Line) Check() error {
	switch {
	case l.Interface == "":
		return errors.New("the interface is missing")
	case l.Kind == nil:
		return errors.New("the kind of line is missing")
	}
	return cmp.Or(CheckRate(l.Down), CheckRate(l.Up))
}

// CheckRate returns what is wrong with a rate, in bits per second.
func CheckRate(bits uint64) error {
	if bits < LeastRate || bits > MostRate {
		return fmt.Errorf("a line has from %s to %s", Rate(LeastRate), Rate(MostRate))
	}
	return nil
}

// Fprint writes the configuration.
func (l *Line) Fprint(w io.Writer) error {
	if err := l.Check(); err != nil {
		return err
	}
	return text.Execute(w, struct {
		Interface, About, Link       string
		Down, Up, QueueDown, QueueUp string
		DownShare, UpShare           uint64
	}{
		l.Interface, l.Kind.About, l.Kind.Link, Rate(l.Down), Rate(l.Up),
		Rate(l.Down / 100 * l.Kind.Down), Rate(l.Up / 100 * l.Kind.Up), l.Kind.Down, l.Kind.Up,
	})
}

// Rate prints bits per second in the form of a bandwidth, with at most three decimals.
func Rate(bits uint64) string {
	unit, size := "K", 1_000.0
	switch {
	case bits >= 1_000_000_000:
		unit, size = "G", 1_000_000_000
	case bits >= 1_000_000:
		unit, size = "M", 1_000_000
	}
	s := strconv.FormatFloat(float64(bits)/size, 'f', 3, 64)
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".") + unit
}

var text = template.Must(template.New("qos").Parse(`# Queues for a line to the internet.
#
# The line at {{.Interface}}: {{.About}}; {{.Down}} down, {{.Up}} up.
# The queues get {{.DownShare}} % of what comes in and {{.UpShare}} % of what goes out. So packets wait
# here, where they are sorted, and not in the modem or at the provider. If pings take
# longer while the line is full, give them less. If not, try more.
#
# Use it: put   include "qos.conf"   before the rules of the rule file.

line = "{{.Interface}}"

# One root for each direction. The queues below belong to both, and a share is a share of
# its direction. In each queue hosts share fairly, and then the connections of a host.
queue line on $line    bandwidth {{.QueueUp}} {{.Link}}
queue line on $line in bandwidth {{.QueueDown}} {{.Link}}

# Voice and DNS are small and go first. Next is what people wait for. Each has a most, so
# that nobody can fill the line with it. Bulk waits for everything else.
queue voice       parent line bandwidth 10%, min 5%, max 30% priority 2
queue interactive parent line bandwidth 30%, max 60% priority 1
queue normal      parent line bandwidth 50% default
queue bulk        parent line bandwidth 10%

# Which connections these are. The last rule that matches counts, in both directions of
# the connection. The second queue in parentheses is for acknowledgements without data.
match on $line set queue (normal, interactive)

match on $line proto tcp to port { ssh, 3389, 5900 } set queue interactive
match on $line proto udp to port 60000:61000 set queue interactive            # mosh
match on $line proto udp to port { 3478:3481, 8801:8810, 19302:19309 } set queue interactive  # video calls
match on $line proto { icmp, icmp6 } set queue interactive

match on $line proto { tcp, udp } to port 6881:6889 set queue bulk            # BitTorrent
match on $line dscp le  set queue bulk
match on $line dscp cs1 set queue bulk

match on $line proto { tcp, udp } to port { domain, 853 } set queue voice
match on $line proto udp to port { ntp, 5060:5061 } set queue voice           # SIP
match on $line dscp ef set queue voice
match on $line dscp va set queue voice
`))
