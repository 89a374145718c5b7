package igd

import (
	"bufio"
	"bytes"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
)

// SSDPPort is where devices are looked for.
const SSDPPort = 1900

// Groups that devices are looked for in, for IPv4 and for IPv6's link and site.
var (
	Group4     = netip.MustParseAddr("239.255.255.250")
	Group6Link = netip.MustParseAddr("ff02::c")
	Group6Site = netip.MustParseAddr("ff05::c")
)

// maxAge is how long hosts may remember an announcement, in seconds.
const maxAge = 1800

// A target is what can be looked for.
type target struct {
	version int
	name    string // NT or ST
	usn     string
}

// targets are all of a version (UDA 1.1, 1.2.2).
func (d *Device) targets(version int) (all []target) {
	for part := range parts {
		uuid := "uuid:" + d.partUUID(part, version)
		names := []string{uuid, deviceType(part, version)}
		if part == 0 {
			names = append([]string{"upnp:rootdevice"}, names...)
		}
		for _, s := range services(version) {
			if s.part == part {
				names = append(names, s.urn())
			}
		}
		for _, name := range names {
			usn := uuid + "::" + name
			if name == uuid {
				usn = uuid
			}
			all = append(all, target{version, name, usn})
		}
	}
	return all
}

// search returns what matches a search. Who names no version finds version 1.
func (d *Device) search(st string) (found []target) {
	if st == "ssdp:all" {
		return d.targets(1)
	}
	for _, version := range versions {
		for _, t := range d.targets(version) {
			if t.name == st {
				return []target{t}
			}
		}
	}
	return nil
}

// AnswerSearch returns the answers to a datagram, for a host that reaches the device at an
// address. Anything but a search has none.
func (d *Device) AnswerSearch(datagram []byte, own netip.Addr) (answers [][]byte) {
	if !bytes.HasPrefix(datagram, []byte("M-SEARCH * HTTP/1.")) {
		return nil
	}
	r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(datagram)))
	if err != nil || strings.Trim(r.Header.Get("MAN"), `"`) != "ssdp:discover" {
		return nil
	}
	_, epoch := d.Clock()
	for _, t := range d.search(strings.TrimSpace(r.Header.Get("ST"))) {
		answers = append(answers, fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nCACHE-CONTROL: max-age=%d\r\nST: %s\r\nUSN: %s\r\nEXT:\r\nSERVER: %s\r\nLOCATION: %s\r\n"+
			"OPT: \"http://schemas.upnp.org/upnp/1/0/\"; ns=01\r\n01-NLS: %d\r\nBOOTID.UPNP.ORG: %d\r\nCONFIGID.UPNP.ORG: %d\r\n\r\n",
			maxAge, t.name, t.usn, d.server(), d.location(t.version, own), d.boot(epoch), d.boot(epoch), configID))
	}
	return answers
}

// boot is a number that grows with each loss of the mappings: the second of it since boot.
func (d *Device) boot(epoch uint32) uint32 {
	now, _ := d.Clock()
	return uint32(now) - epoch + 1
}

func (d *Device) location(version int, own netip.Addr) string {
	return fmt.Sprintf("http://%s/v%d/%s", netip.AddrPortFrom(own, d.Port), version, rootFile)
}

// Announcements are the messages to a group that the device is there, or that it goes.
func (d *Device) Announcements(group netip.Addr, own netip.Addr, alive bool) (all [][]byte) {
	_, epoch := d.Clock()
	nts, more := "ssdp:byebye", ""
	for _, version := range versions {
		if alive {
			nts = "ssdp:alive"
			more = fmt.Sprintf("CACHE-CONTROL: max-age=%d\r\nLOCATION: %s\r\nSERVER: %s\r\n", maxAge, d.location(version, own), d.server())
		}
		for _, t := range d.targets(version) {
			all = append(all, fmt.Appendf(nil, "NOTIFY * HTTP/1.1\r\nHOST: %s\r\nNT: %s\r\nUSN: %s\r\nNTS: %s\r\n%sBOOTID.UPNP.ORG: %d\r\nCONFIGID.UPNP.ORG: %d\r\n\r\n",
				netip.AddrPortFrom(group, SSDPPort), t.name, t.usn, nts, more, d.boot(epoch), configID))
		}
	}
	return all
}
