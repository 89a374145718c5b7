package collect

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"weir/internal/host/doctor"
)

// sockets lists the sockets that have dropped datagrams, and the listening ones before whose
// program connections wait.
func (r *reader) sockets(c *doctor.Counters) {
	found := []doctor.Socket{}
	for _, file := range []string{"udp", "udp6", "tcp", "tcp6"} {
		read := readFile
		if strings.HasPrefix(file, "tcp") {
			read = readListening
		}
		text, err := read(r.procFile("net", file))
		if errors.Is(err, fs.ErrNotExist) {
			continue // a kernel without IPv6
		}
		if err == nil {
			found, err = parseSockets(found, strings.TrimSuffix(file, "6"), text)
		}
		if err != nil {
			r.lacks("sockets", err)
			return
		}
	}
	c.Sockets = found
}

// tcpSockets reads TCP's line of sockstat (net/ipv4/proc.c, sockstat_seq_show).
func (r *reader) tcpSockets(c *doctor.Counters) {
	text, err := readFile(r.procFile("net/sockstat"))
	if err != nil {
		r.lacks("tcp_sockets", err)
		return
	}
	for line := range strings.Lines(text) {
		var s doctor.TCPSockets
		var used, waiting, given int
		if n, _ := fmt.Sscanf(line, "TCP: inuse %d orphan %d tw %d alloc %d mem %d", &used, &s.Orphans, &waiting, &given, &s.Pages); n == 5 {
			c.TCPSockets = &s
			return
		}
	}
	r.lacks("tcp_sockets", errors.New("/proc/net/sockstat has no line of TCP"))
}

// dropping returns those of the second sample that dropped between the samples, or before
// which connections wait: only their programs are looked up, because that reads the files of
// all processes.
func dropping(before, after []doctor.Socket) (all []*doctor.Socket) {
	for i := range after {
		s := &after[i]
		k := slices.IndexFunc(before, func(b doctor.Socket) bool { return b.Protocol == s.Protocol && b.Inode == s.Inode })
		if k < 0 || s.Drops > before[k].Drops || s.Waiting > 0 {
			all = append(all, s)
		}
	}
	return all
}

// nfqueues reads the queues of packets that wait for a program (nfnetlink_queue.c, seq_show):
// number, port id, how many wait, mode, range, dropped, dropped at the socket, last id. The
// port id is the program's process, unless it has several such sockets.
func (r *reader) nfqueues(c *doctor.Counters) {
	text, err := readFile(r.procFile("net/netfilter/nfnetlink_queue"))
	if errors.Is(err, fs.ErrNotExist) {
		c.NFQueues = []doctor.NFQueue{} // the kernel queues nothing
		return
	}
	if err != nil {
		r.lacks("nfqueues", err)
		return
	}
	found := []doctor.NFQueue{}
	for line := range strings.Lines(text) {
		var q doctor.NFQueue
		var mode, length int
		if _, err := fmt.Sscan(line, &q.Number, &q.PortID, &q.Waiting, &mode, &length, &q.Dropped, &q.Unread, &q.Given); err != nil {
			r.lacks("nfqueues", fmt.Errorf("read /proc/net/netfilter/nfnetlink_queue: line %q: %w", line, err))
			return
		}
		if name, err := readFile(r.procFile(strconv.FormatUint(uint64(q.PortID), 10), "comm")); err == nil {
			q.Program = strings.TrimSpace(name)
		}
		found = append(found, q)
	}
	c.NFQueues = found
}

// listening is TCP_LISTEN of the kernel's tcp_states.h.
const listening = "0A"

// readListening returns the heading and the listening sockets of a table of TCP. The kernel prints
// them first (tcp_seq_start), and the others may be hundreds of thousands.
func readListening(name string) (string, error) {
	file, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer file.Close()
	var text strings.Builder
	lines := bufio.NewScanner(file)
	for first := true; lines.Scan(); first = false {
		if f := strings.Fields(lines.Text()); !first && len(f) > 3 && f[3] != listening {
			break
		}
		text.WriteString(lines.Text() + "\n")
	}
	return text.String(), lines.Err()
}

// parseSockets reads a table of /proc/net (proc_net_tcp.rst): the last column of UDP is its
// drops; the receive queue of a listening socket is the connections that wait.
func parseSockets(found []doctor.Socket, protocol, text string) ([]doctor.Socket, error) {
	first := true
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if first || len(f) == 0 {
			first = false
			continue
		}
		if len(f) < 10 {
			return nil, fmt.Errorf("read /proc/net/%s: line %q", protocol, line)
		}
		_, port, _ := strings.Cut(f[1], ":")
		_, queued, _ := strings.Cut(f[4], ":")
		number, err := strconv.ParseUint(port, 16, 16)
		inode, bad := strconv.ParseUint(f[9], 10, 64)
		if err = errors.Join(err, bad); err != nil {
			return nil, fmt.Errorf("read /proc/net/%s: %w", protocol, err)
		}
		s := doctor.Socket{Protocol: protocol, Port: int(number), Inode: inode}
		switch {
		case protocol == "tcp" && f[3] == listening:
			waiting, err := strconv.ParseUint(queued, 16, 32)
			if err != nil {
				return nil, fmt.Errorf("read /proc/net/%s: %w", protocol, err)
			}
			s.Waiting = int(waiting)
		case protocol == "udp":
			if s.Drops, err = strconv.ParseUint(f[len(f)-1], 10, 64); err != nil {
				return nil, fmt.Errorf("read /proc/net/%s: %w", protocol, err)
			}
		}
		if s.Drops > 0 || s.Waiting > 0 {
			found = append(found, s)
		}
	}
	return found, nil
}

// nameSockets adds the programs that hold the sockets. Sockets of another PID namespace's
// programs stay without a name.
func (r *reader) nameSockets(all []*doctor.Socket) {
	if len(all) == 0 {
		return
	}
	wanted := map[string][]*doctor.Socket{}
	for i := range all {
		link := fmt.Sprintf("socket:[%d]", all[i].Inode)
		wanted[link] = append(wanted[link], all[i])
	}
	entries, err := os.ReadDir(r.proc)
	if err != nil {
		return // services notes it
	}
	for _, e := range entries {
		if !processes.MatchString(e.Name()) {
			continue
		}
		files, err := os.ReadDir(r.procFile(e.Name(), "fd"))
		if err != nil {
			continue // it has ended, or is another user's
		}
		for _, file := range files {
			link, err := os.Readlink(filepath.Join(r.procFile(e.Name(), "fd"), file.Name()))
			if err != nil || wanted[link] == nil {
				continue
			}
			name, err := readFile(r.procFile(e.Name(), "comm"))
			for _, s := range wanted[link] {
				if err == nil && s.Program == "" {
					s.Program = strings.TrimSpace(name)
				}
			}
		}
	}
}
