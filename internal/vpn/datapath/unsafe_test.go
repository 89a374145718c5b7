package datapath

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

func unsafeBytes(part unix.Iovec) []byte { return unsafe.Slice(part.Base, part.Len) }
