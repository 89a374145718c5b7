package affinity

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/safchain/ethtool"
	"golang.org/x/sys/unix"

	"weir/internal/host/cpulist"
	"weir/internal/host/doctor"
	"weir/internal/host/netif"
	"weir/internal/killpoint"
)

// Setting is one thing that decides which cores work for a queue.
type Setting struct {
	Kind      doctor.Kind `json:"kind"`
	Interface string      `json:"interface"`
	Queue     int         `json:"queue"`
	IRQ       int         `json:"irq,omitempty"`
	// Name is the interrupt's, by which a later one of the same number is known to
	// be another's.
	Name string `json:"name,omitempty"`
}

// String is as weir affinity set takes it.
func (s Setting) String() string {
	switch s.Kind {
	case doctor.KindIRQ:
		return fmt.Sprintf("%s:%d (interrupt %d)", s.Interface, s.Queue, s.IRQ)
	case doctor.KindThread:
		return fmt.Sprintf("%s:%d (thread)", s.Interface, s.Queue)
	case doctor.KindQueues, doctor.KindThreaded:
		return fmt.Sprintf("%s/%s", s.Interface, s.Kind)
	}
	return fmt.Sprintf("%s:%d/%s", s.Interface, s.Queue, s.Kind)
}

// Host is the machine, in the network namespace of the process.
type Host struct {
	sys int    // descriptor of the namespace's sysfs
	net string // its class/net
	irq string // /proc/irq
	dir string // of the journal, one for each namespace
}

// Open opens the host. Interrupts are the machine's; all else is the namespace's.
func Open() (*Host, error) {
	cookie, err := netif.Cookie()
	if err != nil {
		return nil, err
	}
	fd, folder, err := netif.Sysfs()
	if err != nil {
		return nil, err
	}
	return &Host{sys: fd, net: filepath.Join(folder, "class/net"), irq: "/proc/irq", dir: fmt.Sprintf("/run/weir-affinity/%d", cookie)}, nil
}

// Close lets go of it.
func (h *Host) Close() error { return unix.Close(h.sys) }

// file is where a setting lies that is a file; "" for others.
func (h *Host) file(s *Setting) string {
	switch s.Kind {
	case doctor.KindThreaded:
		return filepath.Join(h.net, s.Interface, "threaded")
	case doctor.KindIRQ:
		return filepath.Join(h.irq, strconv.Itoa(s.IRQ), "smp_affinity_list")
	case doctor.KindRPS:
		return filepath.Join(h.net, s.Interface, "queues", fmt.Sprintf("rx-%d", s.Queue), "rps_cpus")
	case doctor.KindXPS:
		return filepath.Join(h.net, s.Interface, "queues", fmt.Sprintf("tx-%d", s.Queue), "xps_cpus")
	}
	return ""
}

// Read is what a setting is: a list of cores ("0-3"), or a number. The error of one
// that is not there, or no longer, is fs.ErrNotExist.
func (h *Host) Read(s *Setting) (string, error) {
	text, err := h.read(s)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", s, err)
	}
	return text, nil
}

func (h *Host) read(s *Setting) (string, error) {
	switch s.Kind {
	case doctor.KindQueues:
		c, err := channels(s.Interface)
		return strconv.Itoa(int(c.CombinedCount)), err
	case doctor.KindThread:
		return h.threadCores(s)
	case doctor.KindIRQ:
		if s.Name != "" && !h.named(s) {
			return "", fs.ErrNotExist
		}
	}
	b, err := os.ReadFile(h.file(s))
	if err != nil {
		return "", errors.Unwrap(err) // the setting is named already
	}
	text := strings.TrimSpace(string(b))
	if s.Kind != doctor.KindRPS && s.Kind != doctor.KindXPS {
		return text, nil
	}
	cpus, err := cpulist.ParseMask(text)
	return cpulist.Format(cpus), err
}

// named reports whether an interrupt is still its old owner's: the kernel makes a
// folder of that name.
func (h *Host) named(s *Setting) bool {
	_, err := os.Stat(filepath.Join(h.irq, strconv.Itoa(s.IRQ), s.Name))
	return err == nil
}

// hidden says why a setting that is not there may return as it was set: a card that
// is down shows neither its interrupts nor its threads. It is nil for one that is
// gone for good, with its interface or its queue.
func (h *Host) hidden(s *Setting) error {
	if s.Kind != doctor.KindIRQ && s.Kind != doctor.KindThread {
		return nil
	}
	text, err := os.ReadFile(filepath.Join(h.net, s.Interface, "flags"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", s, err)
	}
	flags, err := strconv.ParseUint(strings.TrimSpace(string(text)), 0, 32)
	if err != nil {
		return fmt.Errorf("%s: %w", s, err)
	}
	if flags&unix.IFF_UP == 0 {
		return fmt.Errorf("%s is not seen while %s is down: bring it up, and type weir affinity revert", s, s.Interface)
	}
	return nil
}

// write sets it, and reads it back.
func (h *Host) write(s *Setting, value string) error {
	if err := h.set(s, value); err != nil {
		return fmt.Errorf("set %s to %q: %w", s, value, err)
	}
	killpoint.Done("set %s", s)
	now, err := h.Read(s)
	if err != nil {
		return err
	}
	if now != value {
		return fmt.Errorf("set %s to %q: the kernel made %q of it", s, value, now)
	}
	return nil
}

func (h *Host) set(s *Setting, value string) error {
	switch s.Kind {
	case doctor.KindQueues:
		return setChannels(s.Interface, value)
	case doctor.KindThread:
		return h.bind(s, value)
	case doctor.KindRPS, doctor.KindXPS:
		cpus, err := cpulist.Parse(value)
		if err != nil {
			return err
		}
		value = cpulist.FormatMask(cpus)
	}
	f, err := os.OpenFile(h.file(s), os.O_WRONLY, 0)
	if err != nil {
		return errors.Unwrap(err)
	}
	_, err = f.WriteString(value)
	err = errors.Join(pathless(err), pathless(f.Close()))
	if s.Kind == doctor.KindThreaded && errors.Is(err, unix.EOPNOTSUPP) {
		err = fmt.Errorf("%w (a veth has to have GRO on: ethtool -K %s gro on)", err, s.Interface)
	}
	return err
}

// pathless takes the path out of an error: it is below a descriptor, and the setting is
// named already.
func pathless(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

// threads are the process ids of an interface's receivers, by queue.
func threads(name string) (map[int]int, error) {
	n, err := net.InterfaceByName(name)
	if err != nil {
		return nil, fs.ErrNotExist
	}
	all, err := netif.Receivers(n.Index)
	if err != nil {
		return nil, err
	}
	pids := map[int]int{}
	for _, r := range all {
		if r.PID != 0 {
			pids[r.Queue] = r.PID
		}
	}
	return pids, nil
}

func (h *Host) threadCores(s *Setting) (string, error) {
	pids, err := threads(s.Interface)
	if err != nil {
		return "", err
	}
	pid, known := pids[s.Queue]
	if !known {
		return "", fs.ErrNotExist
	}
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(pid, &set); err != nil {
		return "", err
	}
	var ids []int
	for id := range len(set) * 64 {
		if set.IsSet(id) {
			ids = append(ids, id)
		}
	}
	return cpulist.Format(ids), nil
}

func (h *Host) bind(s *Setting, value string) error {
	pids, err := threads(s.Interface)
	if err != nil {
		return err
	}
	pid, known := pids[s.Queue]
	if !known {
		return fs.ErrNotExist
	}
	cpus, err := cpulist.Parse(value)
	if err != nil {
		return err
	}
	var set unix.CPUSet
	for _, id := range cpus {
		set.Set(id)
	}
	return unix.SchedSetaffinity(pid, &set)
}

func channels(name string) (ethtool.Channels, error) {
	e, err := ethtool.NewEthtool()
	if err != nil {
		return ethtool.Channels{}, err
	}
	defer e.Close()
	c, err := e.GetChannels(name)
	if errors.Is(err, unix.ENODEV) {
		err = fs.ErrNotExist
	}
	return c, err
}

func setChannels(name, value string) error {
	count, err := strconv.ParseUint(value, 10, 16)
	if err != nil {
		return err
	}
	e, err := ethtool.NewEthtool()
	if err != nil {
		return err
	}
	defer e.Close()
	c, err := e.GetChannels(name)
	if err != nil {
		return err
	}
	c.CombinedCount = uint32(count)
	_, err = e.SetChannels(name, c)
	return err
}
