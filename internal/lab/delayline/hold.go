package delayline

import (
	"errors"
	"os"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/lab"
)

const (
	longest = 1<<16 + HeaderLength // of a packet
	room    = 1 << 16              // packets on a line. Those beyond it are dropped
)

// held is a packet on its way.
type held struct {
	due    time.Time
	packet []byte
}

// Hold carries packets from one file to another until the first is closed, each after the
// delay that it gets. Packets of the same delay keep their order. Those that the other
// file does not take are lost.
func Hold(from, to *os.File, delay func(packet []byte) time.Duration) error {
	lines := map[time.Duration]chan held{}
	var writers sync.WaitGroup
	defer writers.Wait()
	defer func() {
		for _, line := range lines {
			close(line)
		}
	}()
	hurry()
	buffer := make([]byte, longest)
	for {
		n, err := from.Read(buffer)
		if errors.Is(err, unix.EIO) { // the device is down
			continue
		}
		if err != nil {
			return err
		}
		d := delay(buffer[:n])
		line := lines[d]
		if line == nil {
			line = make(chan held, room)
			lines[d] = line
			writers.Go(func() { release(line, to) })
		}
		select {
		case line <- held{time.Now().Add(d), append([]byte(nil), buffer[:n]...)}:
		default:
		}
	}
}

// release writes packets when they are due.
func release(line <-chan held, to *os.File) {
	hurry()
	for h := range line {
		if wait := time.Until(h.due); wait > 0 {
			pause := unix.NsecToTimespec(wait.Nanoseconds())
			unix.Nanosleep(&pause, nil) //nolint:errcheck // a signal ends it early, by microseconds
		}
		_, _ = to.Write(h.packet) // lost, as on any line
	}
}

// hurry gives the caller a thread of its own with priority over all programs, so that a
// busy machine makes no delay longer. The thread ends with the goroutine.
func hurry() {
	runtime.LockOSThread()
	lab.GoFirst(0, lab.First)
}
