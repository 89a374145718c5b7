package collect

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"weir/internal/host/doctor"
)

// session is one of the kernel's PPPoE sessions.
type session struct {
	id     int
	device string // device that its frames arrive on
}

// sessions returns the sessions of the process's network namespace. The kernel prints the
// 16 bits of a session's number in network byte order (pppoe_seq_show).
func (r *reader) sessions() ([]session, error) {
	text, err := readFile(r.procFile("net/pppoe"))
	if err != nil {
		return nil, err
	}
	var all []session
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) != 3 || f[0] == "Id" {
			continue
		}
		id, err := strconv.ParseUint(f[0], 16, 16)
		if err != nil {
			return nil, fmt.Errorf("read a PPPoE session's number: %w", err)
		}
		all = append(all, session{int(binary.BigEndian.Uint16(binary.NativeEndian.AppendUint16(nil, uint16(id)))), f[2]})
	}
	return all, nil
}

// placeSessions finds the device below each PPP interface, and the session's number if
// that device has only one. The kernel reports neither. If there are sessions over
// several devices, the command line of the interface's pppd names the device.
func (r *reader) placeSessions() {
	all, fault := r.sessions()
	var devices []string
	for _, s := range all {
		devices = appendNew(devices, s.device)
	}
	for i := range r.snapshot.Interfaces {
		n := &r.snapshot.Interfaces[i]
		switch {
		case n.Kind != "ppp":
			continue
		case fault != nil:
			r.lacks("interfaces."+n.Name+".parent", fault)
			continue
		case len(all) == 0:
			r.lacks("interfaces."+n.Name+".parent", errors.New("there is no PPPoE session"))
			continue
		}
		over := devices
		if len(devices) > 1 {
			over = r.pppdDevices(n.Name, devices)
		}
		if len(over) != 1 {
			r.lacks("interfaces."+n.Name+".parent", fmt.Errorf("PPPoE sessions run over %s, and no pppd was told which is its own", strings.Join(devices, ", ")))
			continue
		}
		n.Parent = over[0]
		of := slices.DeleteFunc(slices.Clone(all), func(s session) bool { return s.device != n.Parent })
		if len(of) == 1 {
			n.PPPoE = &doctor.PPPoE{Session: of[0].id}
		}
	}
}

// pppdDevices returns the devices that the pppd of an interface was told of.
func (r *reader) pppdDevices(name string, devices []string) (found []string) {
	for _, word := range r.pppdWords(r.pppd(name)) {
		if word = strings.TrimPrefix(word, "nic-"); slices.Contains(devices, word) {
			found = appendNew(found, word)
		}
	}
	return found
}

// pppd returns the process id of the pppd that made an interface; "" if it is unknown.
// pppd writes a file named like the interface and, with linkname, a file whose second
// line names it. Since 2.5 these are in a directory of its own.
func (r *reader) pppd(name string) string {
	for _, folder := range []string{"run", "run/pppd"} {
		if text, err := readFile(r.rootFile(folder, name+".pid")); err == nil {
			return strings.TrimSpace(text)
		}
		linked, err := filepath.Glob(r.rootFile(folder, "ppp-*.pid"))
		if err != nil {
			continue
		}
		for _, file := range linked {
			if text, err := readFile(file); err == nil {
				if f := strings.Fields(text); len(f) == 2 && f[1] == name {
					return f[0]
				}
			}
		}
	}
	return ""
}

// pppdWords returns the words of a pppd's command line and of the files that it includes.
// It returns none if the process is no pppd, or not in this namespace.
func (r *reader) pppdWords(pid string) (words []string) {
	if _, err := strconv.ParseUint(pid, 10, 32); err != nil {
		return nil
	}
	text, err := readFile(r.procFile(pid, "cmdline"))
	if err != nil {
		return nil
	}
	args := strings.Split(strings.TrimRight(text, "\x00"), "\x00")
	own, _ := os.Readlink(r.procFile("self/ns/net")) //nolint:errcheck // both are absent in a recorded tree
	its, _ := os.Readlink(r.procFile(pid, "ns/net")) //nolint:errcheck // absent, too
	if filepath.Base(args[0]) != "pppd" || its != own {
		return nil
	}
	for i, arg := range args[1:] {
		words = append(words, arg)
		if args[i] == "call" && filepath.IsLocal(arg) {
			words = append(words, r.peerWords(arg)...)
		}
	}
	return words
}

// peerWords returns the words of a file of /etc/ppp/peers (pppd(8), OPTIONS FILES).
func (r *reader) peerWords(name string) (words []string) {
	text, err := readFile(r.rootFile("etc/ppp/peers", name))
	if err != nil {
		return nil
	}
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		for _, word := range strings.Fields(line) {
			words = append(words, strings.Trim(word, `"'`))
		}
	}
	return words
}
