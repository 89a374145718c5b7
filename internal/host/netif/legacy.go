package netif

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// legacy is one of the two older packet filters, iptables and ip6tables without nftables.
// Their numbers and structures are those of linux/netfilter_ipv4/ip_tables.h and
// linux/netfilter_ipv6/ip6_tables.h on 64-bit machines.
type legacy struct {
	name   string // name of the program that fills it
	tables string // file with the names of the tables in use, in a process's net directory
	family int
	level  int // level of the socket options
	target int // offset of target_offset in an entry
}

var legacies = []legacy{
	{"iptables", "ip_tables_names", unix.AF_INET, unix.SOL_IP, 88},
	{"ip6tables", "ip6_tables_names", unix.AF_INET6, unix.SOL_IPV6, 140},
}

const (
	getInfo    = 64 // IPT_SO_GET_INFO, IP6T_SO_GET_INFO
	getEntries = 65 // IPT_SO_GET_ENTRIES, IP6T_SO_GET_ENTRIES

	hookForward  = 2  // NF_INET_FORWARD
	targetSize   = 32 // size of struct xt_entry_target; the verdict follows it
	verdictDrop  = -1 // -NF_DROP - 1
	forwardTable = "filter"
)

// legacyInfo is struct ipt_getinfo, which is the same in both families.
type legacyInfo struct {
	name             [32]byte
	hooks            uint32
	entry, underflow [5]uint32 // offsets of a chain's first entry, and of its policy
	entries, size    uint32
}

// LegacyForwardDrops names the forward chains of iptables and ip6tables without nftables
// whose policy is drop, in the calling thread's network namespace, as "iptables filter
// FORWARD". nft does not show them.
func LegacyForwardDrops() ([]string, error) {
	var found []string
	for i := range legacies {
		l := &legacies[i]
		drops, err := l.forwardDrops()
		if err != nil {
			return nil, fmt.Errorf("read the policy of %s: %w", l.name, err)
		}
		if drops {
			found = append(found, l.name+" "+forwardTable+" FORWARD")
		}
	}
	return found, nil
}

func (l *legacy) forwardDrops() (bool, error) {
	// A request for a table that is not in use would create it.
	names, err := os.ReadFile("/proc/thread-self/net/" + l.tables)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if !slices.Contains(strings.Fields(string(names)), forwardTable) {
		return false, nil
	}
	fd, err := unix.Socket(l.family, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW)
	if err != nil {
		return false, fmt.Errorf("open a raw socket: %w", err)
	}
	defer unix.Close(fd)
	return l.policyDrops(fd)
}

// policyDrops reads the table and finds the last entry of its forward chain.
func (l *legacy) policyDrops(fd int) (bool, error) {
	var info legacyInfo
	copy(info.name[:], forwardTable)
	if err := getsockopt(fd, l.level, getInfo, unsafe.Slice((*byte)(unsafe.Pointer(&info)), unsafe.Sizeof(info))); err != nil {
		return false, err
	}
	const head = 40 // struct ipt_get_entries before its table: name, size, padding
	all := make([]byte, head+int(info.size))
	copy(all, forwardTable)
	binary.NativeEndian.PutUint32(all[32:], info.size)
	if err := getsockopt(fd, l.level, getEntries, all); err != nil {
		return false, err
	}
	at := int(info.underflow[hookForward])
	if at+l.target+2 > int(info.size) {
		return false, fmt.Errorf("the policy lies at %d of %d bytes", at, info.size)
	}
	entry := all[head+at:]
	verdict := int(binary.NativeEndian.Uint16(entry[l.target:])) + targetSize
	if verdict+4 > len(entry) {
		return false, fmt.Errorf("the policy's target lies at %d of %d bytes", verdict, len(entry))
	}
	return int32(binary.NativeEndian.Uint32(entry[verdict:])) == verdictDrop, nil
}

func getsockopt(fd, level, name int, value []byte) error {
	size := uint32(len(value))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), uintptr(level), uintptr(name),
		uintptr(unsafe.Pointer(&value[0])), uintptr(unsafe.Pointer(&size)), 0)
	if errno != 0 {
		return fmt.Errorf("getsockopt %d: %w", name, errno)
	}
	return nil
}
