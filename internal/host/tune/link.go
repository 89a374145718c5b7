package tune

import (
	"bufio"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"weir/internal/host/tune/nic"
	"weir/internal/killpoint"
)

// linkFolder is the first directory in which systemd-udevd looks for .link files. Of the
// files that match a card, it uses only the first by name.
const linkFolder = "etc/systemd/network"

// linkPrefix begins the names of weir's files, so they come before the distribution's.
const linkPrefix = "70-weir-tune-"

// linkOptions maps a setting to systemd.link's options, each with its part of the value;
// "" is the whole value.
var linkOptions = map[string][]struct{ part, option string }{
	"queues":      {{"combined", "CombinedChannels"}, {"rx", "RxChannels"}, {"tx", "TxChannels"}},
	"rings":       {{"rx", "RxBufferSize"}, {"tx", "TxBufferSize"}},
	"pause":       {{"autoneg", "AutoNegotiationFlowControl"}, {"rx", "RxFlowControl"}, {"tx", "TxFlowControl"}},
	"lro":         {{"", "LargeReceiveOffload"}},
	"gro":         {{"", "GenericReceiveOffload"}},
	"hw-gro":      {{"", "GenericReceiveOffloadHardware"}},
	"adaptive-rx": {{"", "UseAdaptiveRxCoalesce"}},
}

// optionsOf returns the lines of a .link file for a setting; none if there is no option
// for it.
func optionsOf(setting, value string) []string {
	words := map[string]string{"on": "yes", "off": "no"}
	fields := strings.Fields(value)
	var lines []string
	for _, o := range linkOptions[setting] {
		text := value
		if o.part != "" {
			at := slices.Index(fields, o.part)
			if at < 0 || at+1 >= len(fields) {
				continue
			}
			text = fields[at+1]
		}
		lines = append(lines, o.option+"="+cmp.Or(words[text], text))
	}
	return lines
}

// links returns the .link files that keep entries, by name, and the entries that no .link
// file can keep.
func (h *Host) links(entries []entry) (files map[string]string, rest []entry) {
	lines := map[string][]string{} // lines by card
	for _, e := range entries {
		card, setting, ok := cardKey(e.Key)
		options := optionsOf(setting, e.Set)
		if !ok || options == nil || h.linkHead(card) == "" {
			rest = append(rest, e)
			continue
		}
		lines[card] = append(lines[card], "", "# "+e.Why)
		lines[card] = append(lines[card], options...)
	}
	files = map[string]string{}
	for card, options := range lines {
		files[linkPrefix+card+".link"] = h.linkHead(card) + strings.Join(options, "\n") + "\n"
	}
	return files, rest
}

// linkHead returns the head of weir's .link file for a card: the match, and all lines of
// the file that udev uses now, because weir's file replaces it. It returns "" if udev
// does not run, if the card has no address of its own to match, or if the administrator
// has a file for the card or drop-ins. Drop-ins apply only to a file of their own name.
func (h *Host) linkHead(card string) string {
	address := h.permanentAddress(card)
	if _, err := os.Stat(h.path("run/udev/control")); err != nil || address == "" {
		return ""
	}
	used := h.linkFile(card)
	if used == "" || h.hasDropIns(card, used) {
		return ""
	}
	return fmt.Sprintf("%s\n# %s\n# for %s: it repeats that file, then adds what weir has set.\n"+
		"[Match]\nPermanentMACAddress=%s\n\n[Link]\n%s", takesPlace, used, card, address, h.linkSection(used))
}

// takesPlace is the line of weir's .link file that precedes the name of the file it was
// made from.
const takesPlace = "# Written by weir tune apply; weir tune revert removes it. It replaces"

// linkFile returns the file, other than weir's, that udev uses for a card; "" if it is
// the administrator's or unknown.
func (h *Host) linkFile(card string) string {
	file := h.otherFile(card)
	if strings.HasPrefix(file, "/etc/") || strings.HasPrefix(file, "/run/") || h.text(file) == "" {
		return ""
	}
	return file
}

// otherFile returns the file that udev uses for a card or, if that is weir's, the file
// that weir's was made from. It returns "" if unknown.
func (h *Host) otherFile(card string) string {
	file := h.udevProperty(card, "ID_NET_LINK_FILE")
	if filepath.Base(file) != linkPrefix+card+".link" {
		return file
	}
	_, behind, _ := strings.Cut(h.text(file), takesPlace+"\n# ")
	file, _, _ = strings.Cut(behind, "\n")
	return file
}

// hasDropIns reports whether a .link file has drop-ins, which may set names and
// addresses.
func (h *Host) hasDropIns(card, file string) bool {
	for _, folder := range []string{"etc", "run", "usr/local/lib", "usr/lib", "lib"} {
		if found, err := filepath.Glob(h.path(folder, "systemd/network", filepath.Base(file)+".d", "*.conf")); err == nil && found != nil {
			return true
		}
	}
	return h.udevProperty(card, "ID_NET_LINK_FILE_DROPINS") != ""
}

// udevProperty returns a property of a card from udev's database, "" for none.
func (h *Host) udevProperty(card, property string) string {
	for line := range strings.Lines(h.text("run/udev/data/n" + h.text("sys/class/net", card, "ifindex"))) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), "E:"+property+"="); ok {
			return value
		}
	}
	return ""
}

// linkSection returns a file's section [Link].
func (h *Host) linkSection(file string) string {
	var b strings.Builder
	in := false
	for line := range strings.Lines(h.text(file) + "\n") {
		switch line = strings.TrimSpace(line); {
		case strings.HasPrefix(line, "["):
			in = line == "[Link]"
		case in && line != "" && line[0] != '#' && line[0] != ';':
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

// permanentAddress returns the address of the card's hardware, "" for none.
func (h *Host) permanentAddress(card string) string {
	if h.Root == "" {
		return nic.PermanentAddress(card)
	}
	if h.text("sys/class/net", card, "addr_assign_type") != "0" {
		return ""
	}
	return h.text("sys/class/net", card, "address")
}

// keepLinks writes weir's .link files, and removes weir's other ones.
func (h *Host) keepLinks(files map[string]string) error {
	old, err := filepath.Glob(h.path(linkFolder, linkPrefix+"*"))
	if err != nil {
		return err
	}
	for _, path := range old {
		if files[filepath.Base(path)] == "" {
			if err := killpoint.RemoveReplaced(strings.TrimSuffix(path, killpoint.Unfinished)); err != nil {
				return err
			}
		}
	}
	for name, text := range files {
		if err := h.keep(filepath.Join(linkFolder, name), text); err != nil {
			return err
		}
	}
	return nil
}

// linkSets returns the administrator's .link file or drop-in that sets a card's setting,
// "" for none. Drop-ins come before their file, and the last by name comes first.
func (h *Host) linkSets(key string) string {
	card, setting, ok := cardKey(key)
	if !ok || linkOptions[setting] == nil {
		return ""
	}
	file := h.otherFile(card)
	if file == "" {
		return ""
	}
	for _, dropIn := range slices.Backward(h.dropIns(file)) {
		if h.setsLink(dropIn, setting) {
			return dropIn
		}
	}
	if isAdmins(file) && h.setsLink(file, setting) {
		return file
	}
	return ""
}

// adminFolders are the directories whose files the administrator writes. udev looks into
// them first.
var adminFolders = []string{"/etc/", "/run/", "/usr/local/lib/"}

func isAdmins(file string) bool {
	return slices.ContainsFunc(adminFolders, func(folder string) bool { return strings.HasPrefix(file, folder) })
}

// dropIns returns the administrator's drop-ins for a .link file, in order of precedence.
func (h *Host) dropIns(file string) []string {
	var found []string
	seen := map[string]bool{}
	for _, folder := range adminFolders {
		files, err := filepath.Glob(h.path(folder, "systemd/network", filepath.Base(file)+".d", "*.conf"))
		if err != nil {
			continue
		}
		for _, file := range files {
			if name := filepath.Base(file); !seen[name] {
				seen[name] = true
				found = append(found, filepath.Join("/", strings.TrimPrefix(file, h.path())))
			}
		}
	}
	slices.SortFunc(found, func(a, b string) int { return strings.Compare(filepath.Base(a), filepath.Base(b)) })
	return found
}

// setsLink reports whether a file has a setting in its section [Link].
func (h *Host) setsLink(file, setting string) bool {
	for lines := bufio.NewScanner(strings.NewReader(h.linkSection(file))); lines.Scan(); {
		name, _, _ := strings.Cut(lines.Text(), "=")
		for _, o := range linkOptions[setting] {
			if strings.TrimSpace(name) == o.option {
				return true
			}
		}
	}
	return false
}
