package ipsec

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// fake is a charon without IKE: it has what it is given, and writes down what it is asked for.
type fake struct {
	socket string

	mu       sync.Mutex
	listener net.Listener
	conns    []net.Conn
	asked    []string // commands, each with its name or number
	silent   bool     // it accepts, and never answers
	refuse   string   // a command that it refuses
	slow     string   // a connection whose peer's name it looks up, for ever
	state    string   // of IKE
	bare     bool     // the ends know each other, and there are no keys for packets
	tasks    []string // that it is at
	age      string   // seconds since the ends know each other
	log      []net.Conn

	connections, shared, keys map[string]bool
	up                        []string // names of connections with keys for packets
	pairs                     []string // "FROM TO" of their keys; none: for everything
	begun                     []string // children that were asked for
	data                      map[string]string
	keyIDs                    map[string]string // by what load-key has
}

// newFake starts a charon that listens on a socket of its own.
func newFake(t *testing.T) *fake {
	t.Helper()
	f := &fake{socket: filepath.Join(t.TempDir(), "charon.vici"), keyIDs: map[string]string{}, state: established, age: "60"}
	f.start(t)
	t.Cleanup(f.stop)
	return f
}

// start starts it with nothing.
func (f *fake) start(t *testing.T) {
	t.Helper()
	l, err := net.Listen("unix", f.socket)
	if err != nil {
		t.Fatal(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.listener, f.up, f.asked = l, nil, nil
	f.connections, f.shared, f.keys, f.data = map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]string{}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			f.mu.Lock()
			f.conns = append(f.conns, c)
			f.mu.Unlock()
			go f.serve(c)
		}
	}()
}

// stop ends it and all connections.
func (f *fake) stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.listener.Close()
	for _, c := range f.conns {
		c.Close()
	}
	f.conns, f.log = nil, nil
}

// set says which connections have keys for packets.
func (f *fake) set(up []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.up = up
}

// took returns what was asked for since the last time, without the questions of each second.
func (f *fake) took() (all []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range f.asked {
		switch a {
		case "version ", "get-conns ", "get-shared ", "get-keys ":
		default:
			all = append(all, a)
		}
	}
	f.asked = nil
	slices.Sort(all)
	return all
}

// say sends a line of log to who listens, and reports whether anybody does.
func (f *fake) say(name, id, line string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.log {
		m := value("msg", line)
		m = append(m, value("ikesa-name", name)...)
		m = append(m, value("ikesa-uniqueid", id)...)
		send(c, append([]byte{7, 3, 'l', 'o', 'g'}, m...))
	}
	return f.log != nil
}

// serve answers the packets of vici, as strongSwan's src/libcharon/plugins/vici/README.md has them.
func (f *fake) serve(c net.Conn) {
	defer c.Close()
	for {
		var length [4]byte
		if _, err := io.ReadFull(c, length[:]); err != nil {
			return
		}
		packet := make([]byte, binary.BigEndian.Uint32(length[:]))
		if _, err := io.ReadFull(c, packet); err != nil {
			return
		}
		f.mu.Lock()
		if !f.silent {
			name := string(packet[2 : 2+packet[1]])
			switch packet[0] {
			case 0:
				f.command(c, name, packet[2+packet[1]:])
			case 3, 4:
				if name == "log" {
					f.log = append(f.log, c)
				}
				send(c, []byte{5})
			}
		}
		f.mu.Unlock()
	}
}

// command does what is asked. The lock is held.
func (f *fake) command(c net.Conn, name string, message []byte) {
	values, top := read(message)
	what := values["name"] + values["id"] + values["ike"] + values["ike-id"]
	if name == "load-conn" {
		what = top
	}
	if name != "list-sas" {
		f.asked = append(f.asked, name+" "+what)
	}
	answer := value("success", "yes")
	if name == f.refuse {
		answer = append(value("success", "no"), value("errmsg", "no such thing")...)
		send(c, append([]byte{1}, answer...))
		return
	}
	switch name {
	case "version":
		answer = value("version", "5.9.8")
	case "get-conns":
		answer = items("conns", f.connections)
	case "get-shared":
		answer = items("keys", f.shared)
	case "get-keys":
		answer = items("keys", f.keys)
	case "load-conn":
		f.connections[what] = true
	case "unload-conn":
		delete(f.connections, what)
	case "load-shared":
		f.shared[what], f.data[what] = true, values["data"]
	case "unload-shared":
		delete(f.shared, what)
	case "load-key":
		id := f.keyIDs[values["data"]]
		f.keys[id] = true
		answer = append(answer, value("id", id)...)
	case "unload-key":
		delete(f.keys, what)
	case "initiate":
		f.begun = append(f.begun, values["child"])
		if what == f.slow {
			return
		}
		if !slices.Contains(f.up, what) {
			f.up = append(f.up, what)
		}
	case "terminate":
		if values["ike-id"] != "" {
			f.up = nil
		}
		f.up = slices.DeleteFunc(f.up, func(n string) bool { return n == what })
	case "list-sas":
		for _, n := range f.up {
			if n == what {
				send(c, append([]byte{7, 7, 'l', 'i', 's', 't', '-', 's', 'a'}, f.association(n)...))
			}
		}
		answer = nil
	}
	send(c, append([]byte{1}, answer...))
}

// localAddress is that of the machine in these tests.
const localAddress = "192.0.2.1"

func (f *fake) association(name string) []byte {
	var child []byte
	if !f.bare {
		child = nested("child-1", slices.Concat(value("uniqueid", "2"), value("state", "INSTALLED"), value("bytes-in", "7"), list("remote-ts", "0.0.0.0/0")))
	}
	for i, p := range f.pairs {
		from, to, _ := strings.Cut(p, " ")
		if i == 0 {
			child = nil
		}
		child = append(child, nested(fmt.Sprintf("child-%d", i+1), slices.Concat(value("uniqueid", fmt.Sprint(i+2)), value("state", "INSTALLED"), list("local-ts", from), list("remote-ts", to)))...)
	}
	return nested(name, slices.Concat(value("uniqueid", "1"), value("state", f.state), value("established", f.age), list("tasks-active", f.tasks...), value("local-host", localAddress), value("local-port", "4500"), value("remote-host", "192.0.2.7"), value("remote-port", "4500"), nested("child-sas", child)))
}

func send(c net.Conn, packet []byte) {
	c.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(packet))), packet...)) //nolint:errcheck // the other end has gone
}

func named(kind byte, name string) []byte { return append([]byte{kind, byte(len(name))}, name...) }

func sized(b []byte, text string) []byte {
	return append(binary.BigEndian.AppendUint16(b, uint16(len(text))), text...)
}

func value(key, text string) []byte { return sized(named(3, key), text) }

func nested(name string, in []byte) []byte { return append(append(named(1, name), in...), 2) }

func list(name string, all ...string) []byte {
	b := named(4, name)
	for _, text := range all {
		b = sized(append(b, 5), text)
	}
	return append(b, 6)
}

func items(name string, all map[string]bool) []byte {
	var names []string
	for n := range all {
		names = append(names, n)
	}
	return list(name, names...)
}

// read reads the values of a message, of all its sections, and the name of the first section.
func read(b []byte) (values map[string]string, top string) {
	values = map[string]string{}
	name := func() string {
		n := string(b[2 : 2+b[1]])
		b = b[2+b[1]:]
		return n
	}
	text := func() string {
		n := int(binary.BigEndian.Uint16(b))
		t := string(b[2 : 2+n])
		b = b[2+n:]
		return t
	}
	for len(b) > 0 {
		switch b[0] {
		case 1:
			if n := name(); top == "" {
				top = n
			}
		case 3:
			n := name()
			values[n] = text()
		case 4:
			name()
		case 5:
			b = b[1:]
			text()
		default:
			b = b[1:]
		}
	}
	return values, top
}
