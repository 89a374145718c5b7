package nic

import (
	"fmt"
	"io/fs"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Commands of linux/ethtool.h that the library lacks, or has only in part.
const (
	commandGetHash  = 0x29 // ETHTOOL_GRXFH
	commandSetHash  = 0x2a // ETHTOOL_SRXFH
	commandGetTable = 0x38 // ETHTOOL_GRXFHINDIR
	commandSetTable = 0x39 // ETHTOOL_SRXFHINDIR
	commandGetEEE   = 0x44 // ETHTOOL_GEEE
	commandSetEEE   = 0x45 // ETHTOOL_SEEE
	commandGetKey   = 0x46 // ETHTOOL_GRSSH
	commandGetLink  = 0x4c // ETHTOOL_GLINKSETTINGS
)

// eeeRequest is struct ethtool_eee.
type eeeRequest struct {
	command, supported, advertised, partner uint32
	active, enabled, lpi, timer             uint32
	reserved                                [2]uint32
}

func (c *Cards) eee(card string) (*eeeRequest, error) {
	r := &eeeRequest{command: commandGetEEE}
	return r, c.ioctl(card, unsafe.Pointer(r))
}

// EEE returns whether a card may save energy on an idle line, and whether it does.
func (c *Cards) EEE(card string) (enabled, active bool, err error) {
	r, err := c.eee(card)
	return r.enabled != 0, r.active != 0, err
}

func getEEE(d *device) (string, error) {
	enabled, _, err := d.EEE(d.name)
	return onOff(enabled), err
}

func setEEE(d *device, value string) error {
	on, err := isOn(value)
	if err != nil {
		return err
	}
	r, err := d.eee(d.name)
	if err != nil {
		return err
	}
	r.command, r.enabled = commandSetEEE, flag(on)
	return d.ioctl(d.name, unsafe.Pointer(r))
}

// flows are the protocols of struct ethtool_rxnfc.
var flows = map[string]uint32{"tcp4": 0x01, "udp4": 0x02, "tcp6": 0x05, "udp6": 0x06}

// hashRequest is the part of struct ethtool_rxnfc that is used here.
type hashRequest struct {
	command, flow uint32
	data          uint64
	rest          [256]byte
}

// hashFields are the letters of ethtool -N for the bits RXH_, which begin with 1 << 1.
const hashFields = "mvtsdfn"

// Hash returns the fields that spread the packets of a protocol ("tcp4", "udp6") over the
// queues, in the letters of ethtool -N.
func (c *Cards) Hash(card, protocol string) (string, error) {
	r := &hashRequest{command: commandGetHash, flow: flows[protocol]}
	if err := c.ioctl(card, unsafe.Pointer(r)); err != nil {
		return "", err
	}
	var letters strings.Builder
	for i, letter := range hashFields {
		if r.data&(2<<i) != 0 {
			letters.WriteRune(letter)
		}
	}
	return letters.String(), nil
}

func hash(protocol string) setting {
	return setting{
		get: func(d *device) (string, error) {
			letters, err := d.Hash(d.name, protocol)
			if err == nil && letters == "" {
				err = fs.ErrNotExist // the card does not spread
			}
			return letters, err
		},
		set: func(d *device, value string) error {
			r := &hashRequest{command: commandSetHash, flow: flows[protocol]}
			for _, letter := range value {
				i := strings.IndexRune(hashFields, letter)
				if i < 0 {
					return fmt.Errorf("%q is not a field of a hash", letter)
				}
				r.data |= 2 << i
			}
			return d.ioctl(d.name, unsafe.Pointer(r))
		},
	}
}

// mostBuckets is more than any card's table has.
const mostBuckets = 4096

// table is struct ethtool_rxfh_indir with room.
type table struct {
	command, size uint32
	queues        [mostBuckets]uint32
}

// indirection reads the table. The library's has room for 256 buckets, but the kernel
// writes as many as the card has.
func (c *Cards) indirection(card string) (*table, error) {
	first := &table{command: commandGetTable}
	if err := c.ioctl(card, unsafe.Pointer(first)); err != nil {
		return nil, err
	}
	if first.size == 0 || first.size > mostBuckets {
		return nil, fs.ErrNotExist
	}
	second := &table{command: commandGetTable, size: first.size}
	return second, c.ioctl(card, unsafe.Pointer(second))
}

// Indirection returns the queue of each hash bucket.
func (c *Cards) Indirection(card string) ([]uint32, error) {
	t, err := c.indirection(card)
	if err != nil {
		return nil, err
	}
	return t.queues[:t.size], nil
}

// getIndirection returns "equal 4" if the buckets cycle through the first queues,
// otherwise a queue for each bucket.
func getIndirection(d *device) (string, error) {
	queues, err := d.Indirection(d.name)
	if err != nil {
		return "", err
	}
	return tableText(queues), nil
}

func tableText(queues []uint32) string {
	most, equal := slices.Max(queues), true
	text := make([]string, len(queues))
	for i, q := range queues {
		equal = equal && q == uint32(i)%(most+1)
		text[i] = strconv.FormatUint(uint64(q), 10)
	}
	if equal {
		return fmt.Sprintf("equal %d", most+1)
	}
	return strings.Join(text, ",")
}

// fillTable is the inverse of tableText.
func fillTable(queues []uint32, value string) error {
	if count, ok := strings.CutPrefix(value, "equal "); ok {
		n, err := strconv.ParseUint(count, 10, 32)
		if err != nil || n == 0 {
			return fmt.Errorf("%q: want a number of queues", value)
		}
		for i := range queues {
			queues[i] = uint32(uint64(i) % n)
		}
		return nil
	}
	list := strings.Split(value, ",")
	if len(list) != len(queues) {
		return fmt.Errorf("the card has %d buckets, and not %d", len(queues), len(list))
	}
	for i, text := range list {
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			return fmt.Errorf("%q is no queue", text)
		}
		queues[i] = uint32(n)
	}
	return nil
}

func setIndirection(d *device, value string) error {
	t, err := d.indirection(d.name)
	if err != nil {
		return err
	}
	t.command = commandSetTable
	if err := fillTable(t.queues[:t.size], value); err != nil {
		return err
	}
	return d.ioctl(d.name, unsafe.Pointer(t))
}

// ioctl asks the driver. Its error is the kernel's: "operation not supported".
func (c *Cards) ioctl(card string, data unsafe.Pointer) error {
	var pin runtime.Pinner
	pin.Pin(data) // the kernel gets its address inside another structure
	defer pin.Unpin()
	var request struct {
		name [unix.IFNAMSIZ]byte
		data uintptr
		rest [16]byte
	}
	copy(request.name[:unix.IFNAMSIZ-1], card)
	request.data = uintptr(data)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(c.fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request)))
	if errno != 0 {
		return errno
	}
	return nil
}
