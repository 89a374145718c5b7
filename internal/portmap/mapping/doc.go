// Package mapping keeps port mappings: which port of the box's external address, or of a
// host's IPv6 address, is open for which host, who has asked for it, and for how long. It
// decides who may have which port, and writes the rules of the anchor. It knows no protocol,
// no socket and no clock.
package mapping
