package tune

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"weir/internal/host/tune/nic"
	"weir/internal/killpoint"
)

// linkFolder is where systemd-udevd looks for .link files first; of those that match a
// card, it takes the one whose name comes first, and no other.
const linkFolder = "etc/systemd/network"

// linkPrefix begins the names of weir's, which come before the distribution's.
const linkPrefix = "70-weir-tune-"

// linkOptions are systemd.link's words for a setting, with the part of the value that
// each has; "" is the whole.
var linkOptions = map[string][]struct{ part, option string }{
	"queues":      {{"combined", "CombinedChannels"}, {"rx", "RxChannels"}, {"tx", "TxChannels"}},
	"rings":       {{"rx", "RxBufferSize"}, {"tx", "TxBufferSize"}},
	"pause":       {{"autoneg", "AutoNegotiationFlowControl"}, {"rx", "RxFlowControl"}, {"tx", "TxFlowControl"}},
	"lro":         {{"", "LargeReceiveOffload"}},
	"gro":         {{"", "GenericReceiveOffload"}},
	"hw-gro":      {{"", "GenericReceiveOffloadHardware"}},
	"adaptive-rx": {{"", "UseAdaptiveRxCoalesce"}},
}

// optionsOf are the lines of a .link file for a setting; none where it has no word for
// it.
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
		if word, known := words[text]; known {
			text = word
		}
		lines = append(lines, o.option+"="+text)
	}
	return lines
}

// links are the .link files that keep entries, by their names, and the entries that
// none can keep.
func (h *Host) links(entries []entry) (files map[string]string, rest []entry) {
	lines := map[string][]string{} // by card
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

// linkHead is what weir's .link file for a card begins with: whom it matches, and all
// that udev's file for it says now, which it takes the place of. It is "" where udev
// does not run, where the card has no address of its own to match, and where the
// administrator has a file for it, or drop-ins, which hold for a file of that name only.
func (h *Host) linkHead(card string) string {
	address := h.permanentAddress(card)
	if _, err := os.Stat(h.path("run/udev/control")); err != nil || address == "" {
		return ""
	}
	used := h.linkFile(card)
	if used == "" || h.hasDropIns(card, used) {
		return ""
	}
	return fmt.Sprintf("%s\n# %s\n# for %s, and so says the same, and then what weir has set.\n"+
		"[Match]\nPermanentMACAddress=%s\n\n[Link]\n%s", takesPlace, used, card, address, h.linkSection(used))
}

// takesPlace is the line of weir's .link file behind which the file stands that it was
// made from.
const takesPlace = "# Written by weir tune apply; weir tune revert removes it. It takes the place of"

// linkFile is the file that udev goes by for a card, of those that are not weir's; ""
// where that is the administrator's, or not told.
func (h *Host) linkFile(card string) string {
	file := h.udevFile(card)
	if filepath.Base(file) == linkPrefix+card+".link" {
		file = h.behind(file)
	}
	if strings.HasPrefix(file, "/etc/") || strings.HasPrefix(file, "/run/") || h.text(file) == "" {
		return ""
	}
	return file
}

// behind is the file that one of weir's was made from.
func (h *Host) behind(own string) string {
	_, behind, _ := strings.Cut(h.text(own), takesPlace+"\n# ")
	file, _, _ := strings.Cut(behind, "\n")
	return file
}

// hasDropIns reports whether a .link file has drop-ins: names and addresses may stand in
// them.
func (h *Host) hasDropIns(card, file string) bool {
	for _, folder := range []string{"etc", "run", "usr/local/lib", "usr/lib", "lib"} {
		if found, err := filepath.Glob(h.path(folder, "systemd/network", filepath.Base(file)+".d", "*.conf")); err == nil && found != nil {
			return true
		}
	}
	return h.udevTells(card, "ID_NET_LINK_FILE_DROPINS") != ""
}

// udevFile is the file that udev goes by for a card, "" where it does not tell.
func (h *Host) udevFile(card string) string { return h.udevTells(card, "ID_NET_LINK_FILE") }

// udevTells is a property that udev has of a card, "" for none.
func (h *Host) udevTells(card, property string) string {
	for line := range strings.Lines(h.text("run/udev/data/n" + h.text("sys/class/net", card, "ifindex"))) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), "E:"+property+"="); ok {
			return value
		}
	}
	return ""
}

// linkSection is what a file has in its section [Link].
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

// permanentAddress is the address that the card's hardware has, "" for none.
func (h *Host) permanentAddress(card string) string {
	if h.Root == "" {
		return nic.PermanentAddress(card)
	}
	if h.text("sys/class/net", card, "addr_assign_type") != "0" {
		return ""
	}
	return h.text("sys/class/net", card, "address")
}

// keepLinks writes weir's .link files, and removes those that are none of these.
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

// linkSets is the administrator's .link file that sets a card's setting, or his drop-in,
// "" for none. A drop-in counts before the file that it belongs to, and the last by name
// before the others.
func (h *Host) linkSets(key string) string {
	card, setting, ok := cardKey(key)
	if !ok || linkOptions[setting] == nil {
		return ""
	}
	file := h.udevFile(card)
	if filepath.Base(file) == linkPrefix+card+".link" {
		file = h.behind(file)
	}
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

// adminFolders are those of which the administrator writes the files, as the first
// folders that udev looks into.
var adminFolders = []string{"/etc/", "/run/", "/usr/local/lib/"}

func isAdmins(file string) bool {
	return slices.ContainsFunc(adminFolders, func(folder string) bool { return strings.HasPrefix(file, folder) })
}

// dropIns are the administrator's for a .link file, in the order in which they count.
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
