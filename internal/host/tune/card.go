package tune

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"weir/internal/host/tune/nic"
)

// cardPrefix begins the keys of cards: nic.eth1.queues. The setting follows the last dot,
// because an interface's name may have dots.
const cardPrefix = "nic."

// anyCard stands for each card in the keys of records.
const anyCard = "DEV"

// cardKey splits a card's key; ok is false for other keys.
func cardKey(key string) (card, setting string, ok bool) {
	rest, ok := strings.CutPrefix(key, cardPrefix)
	if !ok {
		return "", "", false
	}
	at := strings.LastIndexByte(rest, '.')
	if at <= 0 || at == len(rest)-1 || strings.ContainsAny(rest, "/ ") {
		return "", "", false
	}
	return rest[:at], rest[at+1:], true
}

// recordKey returns the key that records use for a card's key.
func recordKey(key string) string {
	if _, setting, ok := cardKey(key); ok {
		return cardPrefix + anyCard + "." + setting
	}
	return key
}

// perQueueSetting reports whether a setting has a field for each queue. A card loses such
// settings if its queues or rings are set.
func perQueueSetting(setting string) bool { return setting == "irqs" || steering[setting] != "" }

// dependsOnQueues reports whether a key may lose its value if a card's queues are set.
func dependsOnQueues(key string) bool {
	if k, ok := parseQueueKey(key); ok {
		return !k.recreatesQueues()
	}
	_, setting, _ := cardKey(key)
	return perQueueSetting(setting)
}

// Flaps reports whether a change takes the link of its card down for some seconds.
func (c *Change) Flaps() bool {
	_, setting, ok := cardKey(c.Key)
	return ok && flaps(setting)
}

func flaps(setting string) bool {
	return slices.Contains([]string{"queues", "rings", "pause", "eee"}, setting)
}

// steering maps settings to the kernel's files, one for each queue.
var steering = map[string]string{
	"rps": "sys/class/net/%s/queues/rx-%d/rps_cpus",
	"xps": "sys/class/net/%s/queues/tx-%d/xps_cpus",
}

// cards returns the interfaces in use that have hardware.
func (h *Host) cards() []string {
	folders, err := filepath.Glob(h.path("sys/class/net/*/device"))
	if err != nil {
		return nil
	}
	var names []string
	for _, folder := range folders {
		name := filepath.Base(filepath.Dir(folder))
		state := h.text("sys/class/net", name, "operstate")
		if state != "down" && state != "notpresent" && h.sysShows(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// sysShows reports whether /sys shows this interface. It shows the network namespace in
// which it was mounted.
func (h *Host) sysShows(name string) bool {
	if h.Root != "" || h.sysfs != "" {
		return true
	}
	device, err := net.InterfaceByName(name)
	return err == nil && h.text("sys/class/net", name, "ifindex") == strconv.Itoa(device.Index) &&
		(len(device.HardwareAddr) == 0 || h.text("sys/class/net", name, "address") == device.HardwareAddr.String())
}

// text returns a file's contents without spaces around it, "" if there is no such file.
func (h *Host) text(elem ...string) string {
	text, err := os.ReadFile(h.path(elem...))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// readCard reads a setting of a card.
func (h *Host) readCard(card, setting string) (string, error) {
	switch setting {
	case "rps", "xps", "irqs", "threaded":
		files, err := h.cardFiles(card, setting)
		if err != nil {
			return "", err
		}
		return h.readFields(files)
	}
	if h.Root == "" {
		return nic.Get(card, setting)
	}
	text, err := os.ReadFile(h.path("ethtool", card, setting))
	return strings.TrimRight(string(text), "\n"), unwrapPath(err)
}

// setCard sets a setting of a card.
func (h *Host) setCard(card, setting, value string) error {
	switch setting {
	case "rps", "xps", "irqs", "threaded":
		files, err := h.cardFiles(card, setting)
		if err != nil {
			return err
		}
		return setFields(files, value)
	}
	if h.Root == "" {
		return nic.Set(card, setting, value)
	}
	return setFile(h.path("ethtool", card, setting), value)
}

// cardFiles returns the kernel's files of a card's setting, one for each queue.
func (h *Host) cardFiles(card, setting string) ([]string, error) {
	if !h.sysShows(card) {
		return nil, fmt.Errorf("%w (/sys is of another network namespace, or has no %s)", fs.ErrNotExist, card)
	}
	if setting == "threaded" {
		return []string{h.path("sys/class/net", card, "threaded")}, nil
	}
	var files []string
	if setting == "irqs" {
		for _, irq := range h.interrupts(card) {
			files = append(files, h.path("proc/irq", strconv.Itoa(irq), "smp_affinity_list"))
		}
	} else {
		for queue := 0; ; queue++ {
			file := h.path(fmt.Sprintf(steering[setting], card, queue))
			if _, err := os.Stat(file); err != nil {
				break
			}
			files = append(files, file)
		}
	}
	if files == nil {
		return nil, fs.ErrNotExist
	}
	return files, nil
}

// readFields returns the contents of all files, separated by single spaces. A file that
// nobody may read is no setting, such as xps_cpus of a card with one queue.
func (h *Host) readFields(files []string) (string, error) {
	var fields []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", errors.Join(fs.ErrNotExist, unwrapPath(err))
		}
		field := strings.TrimSpace(string(text))
		if field == "" || strings.ContainsAny(field, " \t\n") {
			return "", fmt.Errorf("%s says %q", file, text)
		}
		fields = append(fields, field)
	}
	return strings.Join(fields, " "), nil
}

// setFields writes its field to each file. It ignores fields of queues that are gone, and
// queues without a field.
func setFields(files []string, value string) error {
	for i, field := range strings.Fields(value) {
		if i >= len(files) {
			return nil
		}
		if err := setFile(files[i], field); err != nil {
			return err
		}
	}
	return nil
}

// setFile writes a value that the kernel reads as one line. If a file of a recorded tree
// has no final newline, it gets none.
func setFile(name, value string) error {
	if old, err := os.ReadFile(name); err != nil || len(old) == 0 || old[len(old)-1] == '\n' {
		value += "\n"
	}
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return unwrapPath(err)
	}
	_, err = file.WriteString(value)
	return unwrapPath(errors.Join(err, file.Close()))
}
