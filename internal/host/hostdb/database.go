package hostdb

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"weir/pf/resolve"
)

// ErrUnreadable is returned, wrapped, if a database exists but cannot be read.
var ErrUnreadable = errors.New("read names")

// Fill adds the names of the databases below root, the machine's /, to host. A missing
// database has no names. Malformed lines are ignored, as in the C library. If a database
// is unreadable, the error wraps ErrUnreadable and host has the names of the others.
func Fill(host *resolve.Host, root fs.FS) error {
	host.Users, host.Groups = map[string]uint32{}, map[string]uint32{}
	host.Hosts = map[string][]netip.Addr{}
	var errs []error
	for _, database := range []struct {
		path string
		line func(host *resolve.Host, line string)
	}{
		{"etc/passwd", func(h *resolve.Host, line string) { account(h.Users, line) }},
		{"etc/group", func(h *resolve.Host, line string) { account(h.Groups, line) }},
		{"etc/hosts", hosts},
		{"etc/services", service},
		{"etc/protocols", protocol},
	} {
		errs = append(errs, lines(root, database.path, func(line string) { database.line(host, line) }))
	}
	return errors.Join(errs...)
}

// LinkGroups returns the names of link groups by number, from the first of iproute2's
// files that exists. If a file is unreadable, the error wraps ErrUnreadable and the names
// of the other file are returned.
func LinkGroups(root fs.FS) (map[uint32]string, error) {
	groups := make(map[uint32]string)
	var errs []error
	for _, path := range []string{"usr/share/iproute2/group", "etc/iproute2/group"} {
		errs = append(errs, lines(root, path, func(line string) {
			words := fields(line)
			if len(words) < 2 {
				return
			}
			if n, err := strconv.ParseUint(words[0], 0, 32); err == nil && n != 0 { // 0 is the group of all other links
				groups[uint32(n)] = words[1]
			}
		}))
	}
	return groups, errors.Join(errs...)
}

// lines calls f for each line of a file, of any length, if the file exists.
func lines(root fs.FS, path string, f func(line string)) error {
	text, err := fs.ReadFile(root, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	for line := range strings.Lines(string(text)) {
		f(strings.TrimRight(line, "\r\n"))
	}
	return nil
}

// fields returns the words of a line before its comment.
func fields(line string) []string {
	line, _, _ = strings.Cut(line, "#")
	return strings.Fields(line)
}

// account reads name:password:number of passwd(5) and group(5). If a name has several
// lines, the first counts.
func account(ids map[string]uint32, line string) {
	parts := strings.SplitN(line, ":", 4)
	if len(parts) < 3 || parts[0] == "" || strings.ContainsAny(parts[0][:1], "+-#") {
		return
	}
	n, err := strconv.ParseUint(parts[2], 10, 32)
	if _, known := ids[parts[0]]; known || err != nil {
		return
	}
	ids[parts[0]] = uint32(n)
}

// hosts reads address, name and aliases of hosts(5).
func hosts(h *resolve.Host, line string) {
	words := fields(line)
	if len(words) < 2 {
		return
	}
	addr, err := netip.ParseAddr(words[0])
	if err != nil {
		return
	}
	for _, name := range words[1:] {
		if !slices.Contains(h.Hosts[name], addr) {
			h.Hosts[name] = append(h.Hosts[name], addr)
		}
	}
}

// service reads name, port/protocol and aliases of services(5).
func service(h *resolve.Host, line string) {
	words := fields(line)
	if len(words) < 2 {
		return
	}
	port, proto, ok := strings.Cut(words[1], "/")
	n, err := strconv.ParseUint(port, 10, 16)
	if !ok || err != nil {
		return
	}
	h.Services = append(h.Services, resolve.Service{
		Names: append([]string{words[0]}, words[2:]...), Port: uint16(n), Protocol: proto,
	})
}

// protocol reads name, number and aliases of protocols(5).
func protocol(h *resolve.Host, line string) {
	words := fields(line)
	if len(words) < 2 {
		return
	}
	n, err := strconv.ParseUint(words[1], 10, 8)
	if err != nil {
		return
	}
	h.Protocols = append(h.Protocols, resolve.Protocol{
		Names: append([]string{words[0]}, words[2:]...), Number: uint8(n),
	})
}
