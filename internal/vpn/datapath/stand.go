package datapath

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/vpn/device"
)

// A Stand has workers do one half of their work alone, as fast as they can: the code is that of a tunnel, but
// packets come out of memory. So one end is measured without another that needs the same cores.
type Stand struct {
	Workers int
	Peers   int           // that packets go to and come from, in turn
	Time    time.Duration // for which they work

	circle *device.Circle
	path   *Path
}

// What a stand's packets are: those of one super-packet of TCP, as the kernel makes them for an MTU of 1,420.
const (
	standSegment = 1368
	standCount   = 45
	standRecord  = 600 // batches that are decrypted before the record begins anew, with another replay window
)

// A Done is what was done in a stand.
type Done struct {
	Bytes   uint64 // of packets
	Seconds float64
	CPU     float64 // seconds of all workers
}

// Encrypt has the workers encrypt what a tun device would have given, and send it to an address, where nothing
// should be that answers.
func (s *Stand) Encrypt(to netip.AddrPort) (Done, error) {
	if err := s.open(to); err != nil {
		return Done{}, err
	}
	defer s.close()
	r, err := openSocket(false, 0)
	if err != nil {
		return Done{}, fmt.Errorf("open a socket: %w", err)
	}
	defer unix.Close(r.fd) //nolint:errcheck // there is nothing in it
	s.path.four = &receiver{socket: r}
	super := make([][]byte, s.Peers)
	for i := range super {
		super[i] = standPacket(i)
	}
	done, err := s.work(func(w *worker, turn int) int {
		n := copy(w.read, super[turn%s.Peers])
		if !w.split.start(w.read[:n]) {
			return 0
		}
		w.sendSegments()
		for w.flushAll(); w.stalled != nil; w.resume() {
			unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) //nolint:errcheck // it does not fail
		}
		return n - sizeVnet
	})
	if sent, _ := s.circle.Bytes(); err == nil && sent < done.Bytes {
		err = fmt.Errorf("of %d bytes only %d were sent", done.Bytes, sent)
	}
	return done, err
}

// Decrypt has the workers decrypt what was recorded, in batches as a socket gives them, and write it to a file that
// takes everything. The record begins anew with an empty replay window.
func (s *Stand) Decrypt() (Done, error) {
	if err := s.open(netip.AddrPortFrom(netip.IPv4Unspecified(), 9)); err != nil {
		return Done{}, err
	}
	defer s.close()
	sink, err := unix.Open("/dev/null", unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return Done{}, fmt.Errorf("open /dev/null: %w", err)
	}
	defer unix.Close(sink) //nolint:errcheck // there is nothing in it
	s.path.tun.Queues = []int{sink}
	record, segment, err := s.record()
	if err != nil {
		return Done{}, err
	}
	r := &receiver{}
	at, given := 0, 0
	r.read = func(b *batch) bool { // under the receiver's lock
		if at == len(record) {
			if r.tail.Load() != r.head.Load() {
				return false // the rest of this round is under way
			}
			at = 0
			s.circle.Forget()
		}
		b.size, b.segment = copy(b.buffer, record[at].messages), segment
		given += record[at].bytes
		at++
		return true
	}
	done, err := s.work(func(w *worker, _ int) int {
		if !w.fromSocket(r) {
			unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) //nolint:errcheck // it does not fail
		}
		return 0
	})
	last := s.worker() // a worker that delivers enough leaves the rest to its next turn, which there was none of
	for r.tail.Load() != r.head.Load() {
		left := deliveries
		last.deliverReady(r, &left)
	}
	done.Bytes = uint64(given)
	if _, came := s.circle.Bytes(); err == nil && came < done.Bytes {
		err = fmt.Errorf("of %d bytes only %d were accepted", done.Bytes, came)
	}
	return done, err
}

// recorded is a batch.
type recorded struct {
	messages []byte
	bytes    int // of packets
}

// record seals the batches that the workers are to open.
func (s *Stand) record() (all []recorded, segment int, err error) {
	var nonce device.Nonce
	var split splitter
	room := make([]byte, maxMessage)
	for i := range standRecord {
		super := append(standPacket(i%s.Peers), make([]byte, device.PaddingMultiple)...)
		super = super[:len(super)-device.PaddingMultiple]
		n := len(super) - sizeVnet
		if !split.start(super) {
			return nil, 0, fmt.Errorf("split a packet of %d bytes", n)
		}
		keypair := s.circle.Senders[i%s.Peers].Sending(time.Now())
		if keypair == nil {
			return nil, 0, fmt.Errorf("peer %d has no session", i%s.Peers)
		}
		number, _ := keypair.Reserve(split.count)
		one := recorded{bytes: n}
		for split.count > 0 {
			p := split.next()
			m := keypair.Seal(room, p, number, device.DefaultMTU, &nonce)
			number++
			segment = max(segment, len(m))
			one.messages = append(one.messages, m...)
		}
		all = append(all, one)
	}
	return all, segment, nil
}

// standPacket returns a super-packet to the network of a peer, and from it.
func standPacket(peer int) []byte {
	p := make([]byte, sizeVnet+size4+sizeTCP+standSegment*standCount)
	p[0], p[1] = unix.VIRTIO_NET_HDR_F_NEEDS_CSUM, unix.VIRTIO_NET_HDR_GSO_TCPV4
	binary.LittleEndian.PutUint16(p[4:], standSegment)
	binary.LittleEndian.PutUint16(p[6:], size4)
	binary.LittleEndian.PutUint16(p[8:], 16)
	h := p[sizeVnet:]
	h[0], h[6], h[8], h[9] = 0x45, 0x40, 64, unix.IPPROTO_TCP
	binary.BigEndian.PutUint16(h[2:], uint16(len(h)))
	for _, at := range []int{12, 16} {
		copy(h[at:], standAddress(peer))
	}
	binary.BigEndian.PutUint16(h[20:], uint16(1024+peer))
	binary.BigEndian.PutUint16(h[22:], 443)
	h[32], h[33] = 5<<4, flagACK
	return p
}

func standAddress(peer int) []byte { return []byte{10, byte(peer >> 8), byte(peer), 1} }

// open makes the sessions.
func (s *Stand) open(to netip.AddrPort) (err error) {
	networks := make([]netip.Prefix, s.Peers)
	for i := range networks {
		networks[i] = netip.PrefixFrom(netip.AddrFrom4([4]byte(standAddress(i))), 32)
	}
	s.path = New(Tun{Queues: []int{-1}, UDP: true}, func() {})
	if s.circle, err = device.NewCircle(s.path, networks, to); err != nil {
		return err
	}
	s.path.Carry(s.circle.Hub)
	return nil
}

func (s *Stand) close() {
	s.path.four = nil
	s.circle.Close()
}

// threadTime returns the CPU time that the thread has used, in nanoseconds.
func threadTime() int64 {
	var used unix.Timespec
	unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &used) //nolint:errcheck // it does not fail
	return used.Nano()
}

func (s *Stand) worker() *worker {
	return &worker{path: s.path, queue: -1, read: make([]byte, maxRead+device.PaddingMultiple), mtu: device.DefaultMTU, clock: time.Now()}
}

// work has the workers do something again and again. It returns how many bytes it was.
func (s *Stand) work(do func(w *worker, turn int) int) (Done, error) {
	var bytes, cpu atomic.Uint64
	var all sync.WaitGroup
	begun := time.Now()
	for i := range s.Workers {
		all.Add(1)
		go func() {
			defer all.Done()
			runtime.LockOSThread()
			before := threadTime()
			w := s.worker()
			sum := 0
			for turn := i; ; turn++ {
				if w.clock = time.Now(); w.clock.Sub(begun) >= s.Time {
					break
				}
				sum += do(w, turn)
			}
			bytes.Add(uint64(sum))
			cpu.Add(uint64(threadTime() - before))
		}()
	}
	all.Wait()
	return Done{Bytes: bytes.Load(), Seconds: time.Since(begun).Seconds(), CPU: float64(cpu.Load()) / 1e9}, nil
}
