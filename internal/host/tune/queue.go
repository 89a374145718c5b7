package tune

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"weir/internal/host/cpulist"
	"weir/internal/host/netif"
	"weir/internal/host/proc"
)

// QueueKey names a setting of one queue, of an interrupt, or of all queues of an
// interface. Its text is the key. Values are lists of cores ("0-3", "" for none) or a
// number.
type QueueKey struct {
	Interface string
	What      string // queues, threaded; irq; thread, rps and xps of one queue; worker of a tunnel
	Queue     int
	IRQ       int
	Name      string // the interrupt's name, to tell it from a later one with the same number
}

// Worker is what a key says of a thread of weir vpn run, which carries the packets of a
// tunnel.
const Worker = "worker"

// Workers are the threads of weir vpn run, by tunnel and queue. The error for one that is
// not there is fs.ErrNotExist.
type Workers interface {
	Cores(tunnel string, queue int) (string, error)
	Place(tunnel string, queue int, cores string) error
}

func (k QueueKey) String() string {
	switch k.What {
	case "queues", "threaded":
		return fmt.Sprintf("%s/%s", k.Interface, k.What)
	case "thread", Worker:
		return fmt.Sprintf("%s:%d (%s)", k.Interface, k.Queue, k.What)
	case "irq":
		if k.Name == "" {
			return fmt.Sprintf("%s (interrupt %d)", k.Interface, k.IRQ)
		}
		return fmt.Sprintf("%s (interrupt %d, %s)", k.Interface, k.IRQ, k.Name)
	}
	return fmt.Sprintf("%s:%d/%s", k.Interface, k.Queue, k.What)
}

var (
	deviceForm    = regexp.MustCompile(`^(.+)/(queues|threaded)$`)
	queueForm     = regexp.MustCompile(`^(.+):(\d+)(?:/(rps|xps)| \((thread|worker)\))$`)
	interruptForm = regexp.MustCompile(`^(\S+) \(interrupt (\d+)(?:, (.+))?\)$`)
)

// parseQueueKey is the inverse of String. ok is false for other keys.
func parseQueueKey(key string) (k QueueKey, ok bool) {
	var err error
	if found := deviceForm.FindStringSubmatch(key); found != nil {
		return QueueKey{Interface: found[1], What: found[2]}, true
	}
	if found := interruptForm.FindStringSubmatch(key); found != nil {
		k = QueueKey{Interface: found[1], What: "irq", Name: found[3]}
		k.IRQ, err = strconv.Atoi(found[2])
		return k, err == nil
	}
	if found := queueForm.FindStringSubmatch(key); found != nil {
		k = QueueKey{Interface: found[1], What: found[3] + found[4]}
		k.Queue, err = strconv.Atoi(found[2])
		return k, err == nil
	}
	return QueueKey{}, false
}

// recreatesQueues reports whether a change may create the queues of an interface again.
func (k QueueKey) recreatesQueues() bool { return k.What == "queues" || k.What == "threaded" }

// queueFile returns the file of a setting that has one.
func (h *Host) queueFile(k QueueKey) string {
	if k.What == "irq" {
		return h.path("proc/irq", strconv.Itoa(k.IRQ), "smp_affinity_list")
	}
	return h.path(fmt.Sprintf(steering[k.What], k.Interface, k.Queue))
}

func (h *Host) readQueue(k QueueKey) (string, error) {
	switch k.What {
	case "queues":
		text, err := h.readCard(k.Interface, "queues")
		return strconv.Itoa(countOf(text, "combined")), err
	case "threaded":
		return h.readCard(k.Interface, "threaded")
	case "thread":
		return h.readThread(k)
	case Worker:
		if h.Workers == nil {
			return "", fs.ErrNotExist
		}
		return h.Workers.Cores(k.Interface, k.Queue)
	case "irq":
		if k.Name != "" && !h.isNamed(k) {
			return "", fs.ErrNotExist
		}
	}
	text, err := os.ReadFile(h.queueFile(k))
	if err != nil {
		return "", unwrapPath(err)
	}
	value := strings.TrimSpace(string(text))
	if k.What == "irq" {
		return value, nil
	}
	cores, err := cpulist.ParseMask(value)
	return cpulist.Format(cores), err
}

func (h *Host) setQueue(k QueueKey, value string) error {
	switch k.What {
	case "queues":
		return h.setQueueCount(k.Interface, value)
	case "threaded":
		err := h.setCard(k.Interface, "threaded", value)
		if errors.Is(err, unix.EOPNOTSUPP) {
			err = fmt.Errorf("%w (a veth has to have GRO on: ethtool -K %s gro on)", err, k.Interface)
		}
		return err
	case Worker:
		if h.Workers == nil {
			return fs.ErrNotExist
		}
		return h.Workers.Place(k.Interface, k.Queue, value)
	case "irq":
		if k.Name != "" && !h.isNamed(k) {
			return fs.ErrNotExist
		}
		return setFile(h.queueFile(k), value)
	}
	cores, err := cpulist.Parse(value)
	if err != nil {
		return err
	}
	if k.What == "thread" {
		return h.bindThread(k, cores)
	}
	return setFile(h.queueFile(k), cpulist.FormatMask(cores))
}

// setQueueCount changes the number of combined queues, and no other kind.
func (h *Host) setQueueCount(card, count string) error {
	found, err := h.readCard(card, "queues")
	if err != nil {
		return err
	}
	fields := strings.Fields(found)
	if len(fields) < 2 || fields[0] != "combined" {
		fields = append([]string{"combined", ""}, fields...)
	}
	fields[1] = count
	return h.setCard(card, "queues", strings.Join(fields, " "))
}

// isNamed reports whether an interrupt still has its name. The kernel makes a directory
// of that name.
func (h *Host) isNamed(k QueueKey) bool {
	_, err := os.Stat(h.path("proc/irq", strconv.Itoa(k.IRQ), k.Name))
	return err == nil
}

// existingKey returns a key without its interrupt's name if the kernel has made no directory
// of that name.
func (h *Host) existingKey(key string) string {
	if k, ok := parseQueueKey(key); ok && k.Name != "" && !h.isNamed(k) {
		k.Name = ""
		return k.String()
	}
	return key
}

// thread returns the process id of the thread that receives from a queue.
func (h *Host) thread(k QueueKey) (int, error) {
	if h.Root != "" {
		return 0, fs.ErrNotExist
	}
	device, err := net.InterfaceByName(k.Interface)
	if err != nil {
		return 0, fs.ErrNotExist
	}
	receivers, err := netif.Receivers(device.Index)
	if err != nil {
		return 0, err
	}
	threads := proc.KernelThreads("/proc")
	for _, r := range receivers {
		if r.Queue == k.Queue && r.PID != 0 && threads != nil {
			return 0, threads // its number is that of another process here
		}
		if r.Queue == k.Queue && r.PID != 0 {
			return r.PID, nil
		}
	}
	return 0, fs.ErrNotExist
}

func (h *Host) readThread(k QueueKey) (string, error) {
	pid, err := h.thread(k)
	if err != nil {
		return "", err
	}
	cores, err := cpulist.OfThread(pid)
	return cpulist.Format(cores), err
}

func (h *Host) bindThread(k QueueKey, cores []int) error {
	pid, err := h.thread(k)
	if err != nil {
		return err
	}
	return cpulist.Bind(pid, cores...)
}

// queueSideEffects returns the present values of what a change of a key may also change: the
// settings of all queues of the interface.
func (h *Host) queueSideEffects(k QueueKey) map[string]string {
	found := map[string]string{}
	for _, what := range []string{"rps", "xps", "thread"} {
		for queue := 0; ; queue++ {
			other := QueueKey{Interface: k.Interface, What: what, Queue: queue}
			value, err := h.readQueue(other)
			if err != nil {
				break
			}
			found[other.String()] = value
		}
	}
	for number, name := range h.interruptsOf(k.Interface) {
		// Without the kernel's directory of that name, the interrupt cannot be
		// told from a later one with the same number.
		other := QueueKey{Interface: k.Interface, What: "irq", IRQ: number, Name: name}
		if value, err := h.readQueue(other); err == nil {
			found[other.String()] = value
		}
	}
	return found
}

// isDown reports whether an interface exists and is down. It then shows neither
// interrupts nor threads.
func (h *Host) isDown(card string) bool {
	flags, err := strconv.ParseUint(h.text("sys/class/net", card, "flags"), 0, 32)
	return err == nil && flags&unix.IFF_UP == 0
}
