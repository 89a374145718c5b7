package names

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"weir/pf/resolve"
)

// Fill puts the names of the databases in root, the machine's /, into host. A
// database that is not there has no names; lines that are none of its are left
// out, as the C library does.
func Fill(host *resolve.Host, root fs.FS) error {
	host.Users, host.Groups = map[string]uint32{}, map[string]uint32{}
	host.Hosts = map[string][]netip.Addr{}
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
		err := lines(root, database.path, func(line string) { database.line(host, line) })
		if err != nil {
			return err
		}
	}
	return nil
}

// LinkGroups gives the names of the groups that links have by number, from the
// first of iproute2's files that is there.
func LinkGroups(root fs.FS) (map[uint32]string, error) {
	groups := make(map[uint32]string)
	for _, path := range []string{"usr/share/iproute2/group", "etc/iproute2/group"} {
		err := lines(root, path, func(line string) {
			words := fields(line)
			if len(words) < 2 {
				return
			}
			if n, err := strconv.ParseUint(words[0], 0, 32); err == nil && n != 0 { // 0 is that of all others
				groups[uint32(n)] = words[1]
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return groups, nil
}

// lines calls f for each line of a file, if there is one.
func lines(root fs.FS, path string, f func(line string)) error {
	file, err := root.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read names: %w", err)
	}
	defer file.Close()
	scanner := bufio.NewScanner(file)
	for scanner.Scan() {
		f(scanner.Text())
	}
	if err := scanner.Err(); err != nil {
		return fmt.Errorf("read names from %s: %w", path, err)
	}
	return nil
}

// fields gives the words of a line before its comment.
func fields(line string) []string {
	line, _, _ = strings.Cut(line, "#")
	return strings.Fields(line)
}

// account reads name:password:number of passwd(5) and group(5). The first line
// of a name counts.
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
