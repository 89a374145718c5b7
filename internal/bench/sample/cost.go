package sample

import (
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// Cost is the cost of sampling.
type Cost struct {
	Readings int
	Time     time.Duration // CPU time
}

// of adds the cost of f.
func (c *Cost) of(f func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, err := threadTime()
	if err != nil {
		return err
	}
	if err := f(); err != nil {
		return err
	}
	after, err := threadTime()
	c.Time += after - before
	return err
}

// threadTime returns the CPU time of this thread.
func threadTime() (time.Duration, error) {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		return 0, fmt.Errorf("read a thread's time: %w", err)
	}
	return time.Duration(t.Nano()), nil
}

// Add adds the cost of another record.
func (c *Cost) Add(o Cost) { c.Readings, c.Time = c.Readings+o.Readings, c.Time+o.Time }

// String returns the cost of one reading.
func (c Cost) String() string {
	if c.Readings == 0 {
		return "nothing was read"
	}
	return fmt.Sprintf("a reading took %.2g ms of one core", c.Time.Seconds()*1000/float64(c.Readings))
}
