package nic

import (
	"fmt"
	"unsafe"
)

// hashKey is struct ethtool_rxfh with room for the table and the longest key.
type hashKey struct {
	command, context, table, key uint32
	function, transformation     uint8
	reserved                     [6]byte
	config                       [4096 + 256]byte
}

// Symmetric reports whether both directions of a flow get the same hash: because the card
// sorts the fields first, or because the key repeats every 16 bits.
func (c *Cards) Symmetric(card string) (bool, error) {
	request := &hashKey{command: commandGetKey}
	if err := c.ioctl(card, unsafe.Pointer(request)); err != nil { // returns their sizes
		return false, err
	}
	if request.transformation != 0 {
		return true, nil
	}
	table, key := request.table, request.key
	if key < 4 || int(4*table+key) > len(request.config) {
		return false, fmt.Errorf("a key of %d bytes behind a table of %d", key, table)
	}
	*request = hashKey{command: commandGetKey, table: table, key: key}
	if err := c.ioctl(card, unsafe.Pointer(request)); err != nil {
		return false, err
	}
	bytes := request.config[4*table : 4*table+key]
	for i := 2; i < len(bytes); i++ {
		if bytes[i] != bytes[i-2] {
			return false, nil
		}
	}
	return true, nil
}
