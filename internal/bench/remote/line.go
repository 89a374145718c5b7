package remote

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// Patience with the other side.
const (
	handshakePatience = 5 * time.Second
	answerPatience    = 10 * time.Second
	idlePatience      = 60 * time.Second // of the server, between runs
	alivePatience     = 2 * time.Second  // of the server, while a run lasts
	aliveEvery        = 250 * time.Millisecond
)

var errSilent = errors.New("the other side is silent")

// line is the authenticated connection between both sides. Messages that come
// are read as they come, few at a time: a side that does not listen makes the
// other wait.
type line struct {
	conn     *tls.Conn
	messages chan *message
	failed   error // why there are no more; set before messages is closed
	ended    chan struct{}
	once     sync.Once
	writing  sync.Mutex
}

func newLine(conn *tls.Conn) *line {
	l := &line{conn: conn, messages: make(chan *message, 8), ended: make(chan struct{})}
	go l.read()
	return l
}

func (l *line) read() {
	defer close(l.messages)
	r := bufio.NewReaderSize(l.conn, 4096)
	for {
		m, err := readMessage(r)
		if err != nil {
			l.failed = err
			return
		}
		select {
		case l.messages <- m:
		case <-l.ended:
			l.failed = net.ErrClosed
			return
		}
	}
}

// close ends the connection, and whoever waits for a message of it.
func (l *line) close() {
	l.once.Do(func() {
		close(l.ended)
		l.conn.Close()
	})
}

// say sends a message. It may be called from any goroutine.
func (l *line) say(m *message) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	if err := l.conn.SetWriteDeadline(time.Now().Add(answerPatience)); err != nil {
		return err
	}
	return writeMessage(l.conn, m)
}

// hear waits for a message. The error is [errSilent] after that time, io.EOF if
// the other side has hung up.
func (l *line) hear(ctx context.Context, patience time.Duration) (*message, error) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case m, open := <-l.messages:
		if !open {
			return nil, l.why()
		}
		return m, nil
	case <-timer.C:
		return nil, fmt.Errorf("%w for %s", errSilent, patience)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// why is what ended the connection.
func (l *line) why() error {
	if errors.Is(l.failed, io.EOF) {
		return fmt.Errorf("the other side has hung up: %w", io.EOF)
	}
	return l.failed
}
