package vpn

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/crypto/chacha20poly1305"
	"golang.org/x/sys/unix"

	"weir/internal/host/netif"
	"weir/internal/lab"
	"weir/internal/lab/delayline"
	"weir/internal/stats"
	"weir/internal/units"
	"weir/internal/vpn/datapath"
)

// A stand is what one end does alone.
type stand struct {
	decrypt bool
	workers int
	peers   int
}

const standTime = time.Second

// manyPeers is how many peers are compared with one.
const manyPeers = 100

var stands = []stand{{false, 1, 1}, {false, 2, 1}, {false, 1, manyPeers}, {true, 1, 1}, {true, 2, 1}, {true, 1, manyPeers}}

// what says what the end does.
func (s *stand) what() string {
	if s.decrypt {
		return "decrypt"
	}
	return "encrypt"
}

func (s *stand) String() string {
	return fmt.Sprintf("%s, %s, %s", s.what(), units.Plural(s.workers, "worker"), units.Plural(s.peers, "peer"))
}

// The device that takes what is sent to sinkHost, and drops it.
const sink = "sink0"

var (
	sinkHost = netip.MustParseAddrPort("198.19.0.2:9")
	sinkNet  = netip.MustParsePrefix("198.19.0.0/24")
)

// openSink makes a device that nobody reads: it drops packets when it has as many as it holds.
func (b *bench) openSink() (f *os.File, err error) {
	err = b.bed.Lab.Do(lab.LAN, func() error {
		if f, err = delayline.Device(sink, delayline.Tun|delayline.Super); err != nil {
			return err
		}
		raw, err := f.SyscallConn()
		if err != nil {
			return err
		}
		const all = unix.TUN_F_CSUM | unix.TUN_F_TSO4 | unix.TUN_F_TSO6 | unix.TUN_F_USO4 | unix.TUN_F_USO6
		if err := raw.Control(func(fd uintptr) { unix.IoctlSetInt(int(fd), unix.TUNSETOFFLOAD, all) }); err != nil { //nolint:errcheck // older kernels split before
			return err
		}
		l, err := netlink.LinkByName(sink)
		if err != nil {
			return fmt.Errorf("find %s: %w", sink, err)
		}
		for _, err := range []error{
			netif.SetSysctl("net/ipv6/conf/"+sink+"/disable_ipv6", "1"),
			netlink.LinkSetTxQLen(l, 16),
			netlink.LinkSetUp(l),
			netlink.RouteReplace(&netlink.Route{LinkIndex: l.Attrs().Index, Dst: &net.IPNet{IP: sinkNet.Addr().AsSlice(), Mask: net.CIDRMask(sinkNet.Bits(), 32)}}),
		} {
			if err != nil {
				return fmt.Errorf("set up %s: %w", sink, err)
			}
		}
		return nil
	})
	return f, err
}

// alone measures one end.
func (b *bench) alone(t *task) error {
	s := datapath.Stand{Workers: t.stand.workers, Peers: t.stand.peers, Time: standTime}
	var done datapath.Done
	err := b.bed.Lab.Do(lab.LAN, func() (err error) {
		if t.stand.decrypt {
			done, err = s.Decrypt()
		} else {
			done, err = s.Encrypt(sinkHost)
		}
		return err
	})
	if err != nil {
		return err
	}
	bits := float64(done.Bytes) * 8e-9
	t.rate, t.cost = append(t.rate, bits/done.Seconds), append(t.cost, done.CPU/bits)
	return nil
}

// crypto is what ChaCha20-Poly1305 alone costs, in CPU seconds for a gigabit that is encrypted and decrypted.
type crypto struct {
	goes    stats.Sample // Go's, as both engines use it
	openssl stats.Sample // empty: it is not installed
}

// block is the size of the packets of a tunnel.
const block = mtu

func (c *crypto) measure(ctx context.Context) error {
	aead, err := chacha20poly1305.New(make([]byte, chacha20poly1305.KeySize))
	if err != nil {
		return err
	}
	var nonce [chacha20poly1305.NonceSize]byte
	plain, sealed := make([]byte, block), make([]byte, 0, block+chacha20poly1305.Overhead)
	const count = 100_000
	var began, ended unix.Timespec
	unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &began) //nolint:errcheck // it never fails
	for range count {
		sealed = aead.Seal(sealed[:0], nonce[:], plain, nil)
		if _, err := aead.Open(plain[:0], nonce[:], sealed, nil); err != nil {
			return err
		}
	}
	unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &ended) //nolint:errcheck // it never fails
	c.goes = append(c.goes, float64(ended.Nano()-began.Nano())/1e9/(count*block*8e-9))
	if out, err := exec.CommandContext(ctx, "openssl", "speed", "-seconds", "1", "-bytes", strconv.Itoa(block), "-evp", "chacha20-poly1305").Output(); err == nil {
		if speed := opensslSpeed(string(out)); speed > 0 { // it encrypts, and to decrypt costs the same
			c.openssl = append(c.openssl, 2/(speed*8e-9))
		}
	}
	return nil
}

// opensslSpeed reads bytes a second from what openssl speed says: a last line like
// "ChaCha20-Poly1305  2618453.61k".
func opensslSpeed(text string) float64 {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	words := strings.Fields(lines[len(lines)-1])
	if len(words) != 2 || !strings.HasSuffix(words[1], "k") {
		return 0
	}
	v, err := strconv.ParseFloat(strings.TrimSuffix(words[1], "k"), 64)
	if err != nil {
		return 0
	}
	return v * 1000
}
