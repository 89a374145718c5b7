package wgfile

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

const errNoCommands = undone("weir runs no commands for a tunnel: say in rules what they do; only \"wg set %i private-key FILE\", \"wg set %i peer KEY preshared-key FILE\" and \"ip route add NETWORK dev %i\" are understood")

// added is a route that a command adds.
type added struct {
	to   netip.Prefix
	line int
}

// command reads a command of PostUp, if it is one that Write writes: wg reads a key from a file, or ip adds a route.
func (f *File) command(text string) error {
	words, ok := shellWords(text)
	switch {
	case !ok:
	case len(words) > 4 && slices.Equal(words[:3], []string{"wg", "set", "%i"}) && strings.HasPrefix(words[len(words)-1], "/"):
		return f.keyFile(words[3:])
	case len(words) > 1 && words[0] == "ip":
		if slices.Contains([]string{"-4", "-6"}, words[1]) {
			words = slices.Delete(words, 1, 2)
		}
		if len(words) == 6 && slices.Equal(words[1:3], []string{"route", "add"}) && slices.Equal(words[4:], []string{"dev", "%i"}) {
			return f.route(words[3])
		}
	}
	return errNoCommands
}

func (f *File) keyFile(words []string) error {
	switch {
	case len(words) == 2 && words[0] == "private-key":
		f.KeyFile = words[1]
	case len(words) == 4 && words[0] == "peer" && words[2] == "preshared-key":
		if f.psk == nil {
			f.psk = map[string]string{}
		}
		f.psk[words[1]] = words[3]
	default:
		return errNoCommands
	}
	return nil
}

func (f *File) route(to string) error {
	if to == "default" {
		return errNoDefault
	}
	var networks []netip.Prefix
	if err := prefixes(to, &networks, true); err != nil {
		return err
	}
	for _, n := range networks {
		if n.Bits() == 0 {
			return errNoDefault
		}
		f.added = append(f.added, added{n, f.line})
	}
	return nil
}

const errNoDefault = undone("weir makes no default route into a tunnel: use rules with route-to")

// routes finds out which peers' networks routes lead to, where commands add them.
func (r *reader) routes() {
	f := r.file
	for _, a := range f.added {
		if !slices.ContainsFunc(f.Peers, func(p Peer) bool { return slices.Contains(p.Allowed, a.to) }) {
			r.line = a.line
			r.note(undone(fmt.Sprintf("no peer has %s among its AllowedIPs: weir makes no route there", a.to)))
		}
	}
	if !f.NoRoute || len(f.added) == 0 {
		return // weir makes the routes to all networks, or none
	}
	for i := range f.Peers {
		p, led, near := &f.Peers[i], 0, 0
		var without []netip.Prefix
		for _, n := range p.Allowed {
			switch {
			case n.Bits() == 0:
			case slices.ContainsFunc(f.added, func(a added) bool { return a.to == n }):
				led++
			case f.connected(n):
				near++
			default:
				without = append(without, n)
			}
		}
		p.NoRoute = len(without) > 0 || led == 0 && near > 0
		if len(without) > 0 && led > 0 {
			r.line = p.line
			r.note(undone(fmt.Sprintf("no command adds a route to %s: weir makes routes to all networks of a peer, or to none", without[0])))
		}
	}
}

// connected reports whether a network is inside one of the interface's own, to which no command needs to add a route.
func (f *File) connected(n netip.Prefix) bool {
	return slices.ContainsFunc(f.Addresses, func(a netip.Prefix) bool { return a.Bits() <= n.Bits() && a.Contains(n.Addr()) })
}

// shellWords returns the words of a command, if a shell would do nothing with it but take off quotes.
func shellWords(text string) (words []string, ok bool) {
	var word strings.Builder
	in := false // a word
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == ' ' || c == '\t':
			if in {
				words = append(words, word.String())
				word.Reset()
			}
			in = false
			continue
		case c == '\'' || c == '"':
			end := strings.IndexByte(text[i+1:], c)
			if end < 0 {
				return nil, false
			}
			inner := text[i+1:][:end]
			if c == '"' && strings.ContainsAny(inner, "$`\\!") {
				return nil, false
			}
			word.WriteString(inner)
			i += end + 1
		case c == '\\' && i+1 < len(text):
			i++
			word.WriteByte(text[i])
		case strings.IndexByte("$`&|;<>()*?[]{}~!\\", c) >= 0:
			return nil, false
		default:
			word.WriteByte(c)
		}
		in = true
	}
	if in {
		words = append(words, word.String())
	}
	return words, true
}
