package dataplane

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"weir/internal/fw/bpfload"
	"weir/internal/killpoint"
)

// A pinnedLink is a link found in the folder.
type pinnedLink struct {
	link    *bpfload.Link
	path    string
	ifindex int // from the pin's name
	hook    bpfload.Hook
	gone    bool // the interface no longer exists
}

// linkKey identifies a link in a folder.
type linkKey struct {
	ifindex int
	hook    bpfload.Hook
}

func (k linkKey) path(dir string) string {
	return filepath.Join(dir, linksDir, fmt.Sprintf("%d-%s", k.ifindex, k.hook))
}

func parseLinkKey(name string) (linkKey, error) {
	index, hook, ok := strings.Cut(name, "-")
	ifindex, err := strconv.Atoi(index)
	if !ok || err != nil {
		return linkKey{}, fmt.Errorf("%s is not the name of a link's pin", name)
	}
	return linkKey{ifindex, bpfload.Hook(hook)}, nil
}

// openLinks opens all links pinned in the folder. It returns none if the folder does not
// exist.
func openLinks(dir string) (_ map[linkKey]*pinnedLink, err error) {
	links := make(map[linkKey]*pinnedLink)
	defer func() {
		if err != nil {
			closeLinks(links)
		}
	}()
	entries, err := os.ReadDir(filepath.Join(dir, linksDir))
	if isMissing(err) {
		return links, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the pinned links: %w", err)
	}
	for _, e := range entries {
		key, err := parseLinkKey(e.Name())
		if err != nil {
			return nil, err
		}
		if links[key], err = openPinnedLink(key, dir); err != nil {
			return nil, err
		}
	}
	return links, nil
}

// withLinks returns what f makes of the links pinned in the folder.
func withLinks[T any](p bpfload.Place, dir string, f func(map[linkKey]*pinnedLink) (T, error)) (T, error) {
	return bpfload.From(p, func() (none T, err error) {
		links, err := openLinks(dir)
		if err != nil {
			return none, err
		}
		defer closeLinks(links)
		return f(links)
	})
}

func openPinnedLink(key linkKey, dir string) (*pinnedLink, error) {
	link, err := bpfload.OpenLink(key.path(dir))
	if err != nil {
		return nil, err
	}
	ifindex, err := link.Ifindex()
	if err != nil {
		link.Close()
		return nil, err
	}
	return &pinnedLink{link: link, path: key.path(dir), ifindex: key.ifindex, hook: key.hook, gone: ifindex == 0}, nil
}

func closeLinks(links map[linkKey]*pinnedLink) {
	for _, l := range links {
		if l != nil {
			l.link.Close()
		}
	}
}

// remove removes the link's pin and detaches it. If the process is killed in between, the
// kernel detaches it. A pin of a detached link would look as if its interface were gone.
func (l *pinnedLink) remove() error {
	if err := killpoint.Remove(l.path); err != nil && !isMissing(err) {
		return fmt.Errorf("unpin the link: %w", err)
	}
	if err := l.link.Detach(); err != nil {
		return fmt.Errorf("interface %d, %s: %w", l.ifindex, l.hook, err)
	}
	return nil
}

// programs holds the entry program of each hook.
var programs = map[bpfload.Hook]string{
	bpfload.XDP:     "weir_xdp",
	bpfload.Ingress: "weir_tc_in",
	bpfload.Egress:  "weir_tc_out",
}

// keys returns the links of an attachment in the order of their creation. Egress comes
// first, so that leaving packets are filtered before any can come in.
func (a Attachment) keys() []linkKey {
	keys := []linkKey{{a.Ifindex, bpfload.Egress}, {a.Ifindex, bpfload.Ingress}}
	if a.XDP {
		keys = append(keys, linkKey{a.Ifindex, bpfload.XDP})
	}
	return keys
}

// A change records what was done to one link, so that it can be undone.
type change struct {
	key  linkKey
	link *bpfload.Link
	old  *bpfload.Program // nil: the link is new
}

func (c *change) undo() error {
	if c.old == nil {
		return errors.Join(c.link.Detach(), c.link.Close())
	}
	return c.link.Replace(c.old)
}
