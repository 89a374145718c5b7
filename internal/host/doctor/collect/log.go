package collect

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"weir/internal/host/doctor"
)

// log reads what the kernel has said, and keeps what doctor knows. Each read of /dev/kmsg returns
// one message.
func (r *reader) log() {
	if r.snapshot.Host.Namespace {
		return // it is the machine's
	}
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		r.lacks("log", fmt.Errorf("clock: %w", err))
		return
	}
	messages, err := kernelLog(r.rootFile("dev/kmsg"), float64(now.Nano())/1e9)
	if err != nil {
		r.lacks("log", err)
		return
	}
	r.snapshot.Log = messages
}

// kernelLog reads the messages of the kernel itself; now is the clock that they carry.
func kernelLog(file string, now float64) ([]doctor.Message, error) {
	fd, err := unix.Open(file, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: file, Err: err}
	}
	defer unix.Close(fd)
	var l doctor.Log
	record := make([]byte, 8192) // CONSOLE_EXT_LOG_MAX
	for {
		n, err := unix.Read(fd, record)
		switch {
		case errors.Is(err, unix.EPIPE): // the oldest message was overwritten before it was read
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EAGAIN) || err == nil && n == 0:
			return l.Messages(), nil
		case err != nil:
			return nil, &fs.PathError{Op: "read", Path: file, Err: err}
		default:
			addRecord(&l, string(record[:n]), now)
		}
	}
}

// addRecord takes a record of /dev/kmsg: "priority,number,microseconds,flags;text", and lines
// with what it is about.
func addRecord(l *doctor.Log, record string, now float64) {
	const facility = 3 // bits of the priority that are the level; the rest is 0 for the kernel
	head, text, found := strings.Cut(record, ";")
	text, _, _ = strings.Cut(text, "\n")
	fields := strings.Split(head, ",")
	if !found || len(fields) < 3 {
		return
	}
	priority, err := strconv.Atoi(fields[0])
	if err != nil || priority>>facility != 0 {
		return
	}
	at, err := strconv.ParseFloat(fields[2], 64)
	if err != nil {
		return
	}
	ago := max(0, now-at/1e6)
	l.Add(text, &ago)
}
