package lib

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"unsafe"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weir/internal/fw/rundir"
	"weir/internal/host/netif"
	"weir/internal/lab"
	"weir/internal/testenv"
)

// RunFolder returns weir's run folder for fw's namespace.
func (b *Box) RunFolder() string {
	b.Helper()
	folder, err := b.folderIn(lab.FW)
	if err != nil {
		b.Fatal(err)
	}
	return string(folder)
}

// folderIn returns weir's run folder for a host's namespace.
func (b *Box) folderIn(host string) (folder rundir.Folder, err error) {
	err = b.Do(host, func() error {
		cookie, err := netif.Cookie()
		folder = rundir.FolderOf(cookie)
		return err
	})
	return folder, err
}

// WeirInside starts a command of weir by ip netns exec, like somebody who does not know
// --netns. In a chroot into a plain directory ip cannot do that.
func (b *Box) WeirInside(args ...string) *Process {
	b.Helper()
	ip := testenv.NeedProgram(b, "ip")
	inside := []string{"netns", "exec", b.Namespace(lab.FW)}
	if said, err := exec.Command(ip, append(inside, "true")...).CombinedOutput(); err != nil {
		testenv.SkipOutside(b, "ip netns exec does not work here: %s", said)
	}
	all := append(inside, append([]string{string(b.weir)}, args...)...)
	return b.start("", exec.Command(ip, all...))
}

// Run runs a command of weir in the test's own namespace.
func (w Binary) Run(args ...string) (said string, status int) {
	cmd := exec.Command(string(w), args...)
	out, _ := cmd.CombinedOutput() //nolint:errcheck // the status shows it
	return string(out), cmd.ProcessState.ExitCode()
}

// passAll is an XDP program of two instructions: r0 = XDP_PASS; exit.
var passAll = [2]uint64{0x00000002_000000b7, 0x00000000_00000095}

// ForeignName is the name of the program that ForeignXDP attaches.
const ForeignName = "intruder"

// ForeignXDP attaches a foreign XDP program to a device, and returns the path of its pin.
// This process has it open until the story ends.
func (b *Box) ForeignXDP(host, device string) (pin string) {
	b.Helper()
	fd, err := LoadXDP()
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { unix.Close(fd) })
	dir := b.TempDir()
	if err := unix.Mount("bpf", dir, "bpf", 0, ""); err != nil {
		b.Fatalf("mount a bpffs: %v", err)
	}
	b.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) }) //nolint:errcheck // removing the folder would fail
	pin = filepath.Join(dir, ForeignName)
	if err := pinProgram(fd, pin); err != nil {
		b.Fatal(err)
	}
	b.setXDP(host, device, fd)
	return pin
}

// NoXDP detaches the program that ForeignXDP attached.
func (b *Box) NoXDP(host, device string) {
	b.Helper()
	b.setXDP(host, device, -1)
}

func (b *Box) setXDP(host, device string, fd int) {
	b.Helper()
	err := b.Do(host, func() error {
		l, err := netlink.LinkByName(device)
		if err != nil {
			return err
		}
		return netlink.LinkSetXdpFdWithFlags(l, fd, unix.XDP_FLAGS_DRV_MODE)
	})
	if err != nil {
		b.Fatal(err)
	}
}

// LoadXDP loads an XDP program that passes all packets, by bpf(2). The caller closes it.
func LoadXDP() (int, error) {
	const tries = 20
	license := [...]byte{'B', 'S', 'D', 0}
	attr := struct {
		kind, count    uint32
		insns, license uint64
		_              [24]byte // the verifier's log, the kernel's version, flags
		name           [16]byte
		_              [56]byte
	}{
		kind: unix.BPF_PROG_TYPE_XDP, count: uint32(len(passAll)),
		insns: uint64(uintptr(unsafe.Pointer(&passAll[0]))), license: uint64(uintptr(unsafe.Pointer(&license[0]))),
	}
	copy(attr.name[:], ForeignName)
	for range tries {
		fd, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_PROG_LOAD, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
		if errno == 0 {
			return int(fd), nil
		}
		if errno != unix.EAGAIN { // the verifier gives up if a signal comes, as Go's runtime sends
			return 0, fmt.Errorf("load an XDP program: %w", errno)
		}
	}
	return 0, fmt.Errorf("load an XDP program: %w", unix.EAGAIN)
}

// pinProgram pins a program by bpf(2).
func pinProgram(fd int, path string) error {
	name := append([]byte(path), 0)
	attr := struct {
		path      uint64
		fd, flags uint32
	}{path: uint64(uintptr(unsafe.Pointer(&name[0]))), fd: uint32(fd)}
	_, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_OBJ_PIN, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
	if errno != 0 {
		return fmt.Errorf("pin a program: %w", errno)
	}
	return nil
}
