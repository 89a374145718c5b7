package remote

import (
	"crypto/tls"
	"testing"
	"time"
)

// speak says hello to a server with any configuration of TLS, and gives what
// it answers.
func speak(t *testing.T, r *running, config *tls.Config) (*message, error) {
	t.Helper()
	c, err := tls.Dial("tcp", r.addr.String(), config)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(2 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if err := writeMessage(c, &message{Hello: &hello{}}); err != nil {
		return nil, err
	}
	return readMessage(c)
}
