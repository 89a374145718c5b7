// Command dispatcher fills the kernel's dispatcher of XDP programs, in an emulated machine:
// it attaches as many programs as that has places to devices of its own, which keep them.
//
// For each XDP program that is attached or taken off the kernel patches the dispatcher's
// code, over which emulated processors trip while packets run through it. A full
// dispatcher stays as it is.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weir/test/lib"
)

// places is BPF_DISPATCHER_MAX (linux/bpf.h).
const places = 48

func main() {
	for i := range places {
		if err := attach(fmt.Sprintf("dispatcher%d", i)); err != nil {
			fmt.Fprintf(os.Stderr, "dispatcher: %v\n", err)
			os.Exit(1)
		}
	}
}

// attach makes a device with a program.
func attach(name string) (err error) {
	device := &netlink.Dummy{LinkAttrs: netlink.LinkAttrs{Name: name}}
	if err := netlink.LinkAdd(device); err != nil {
		return fmt.Errorf("add %s: %w", name, err)
	}
	program, err := lib.LoadXDP()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unix.Close(program)) }()
	return netlink.LinkSetXdpFdWithFlags(device, program, unix.XDP_FLAGS_SKB_MODE)
}
