package remote

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"weir/internal/bench/sample"
)

// maxMessage is the longest message in bytes, without the four of its length.
const maxMessage = 64 << 10

var (
	errMessageLength = fmt.Errorf("a message has 2 to %d bytes", maxMessage)
	errMessageKind   = errors.New("a message has exactly one member, of a known kind")
)

// message is one of either side. Exactly one field is set.
type message struct {
	Hello   *hello        `json:"hello,omitempty"`   // client: the first
	Welcome *welcome      `json:"welcome,omitempty"` // server: its answer
	Run     *Run          `json:"run,omitempty"`     // client: asks for a run
	Granted *granted      `json:"granted,omitempty"` // server: its iperf3 listens
	Refused *refused      `json:"refused,omitempty"` // server: no; the session may be over
	Alive   *struct{}     `json:"alive,omitempty"`   // client: every 250 ms while a run lasts
	Sample  *sample.Point `json:"sample,omitempty"`  // server: what its machine does
	Ended   *struct{}     `json:"ended,omitempty"`   // client: its iperf3 has ended
	Done    *outcome      `json:"done,omitempty"`    // server: its iperf3 has ended, too
	Bye     *struct{}     `json:"bye,omitempty"`     // client: that was all
}

// hello opens a session.
type hello struct {
	Program string `json:"program"` // and its version, for the server's log
}

// welcome tells the client who the server is and what it allows.
type welcome struct {
	Program string `json:"program"`
	Limits  Limits `json:"limits"`
	Machine Host   `json:"machine"`
	Router  string `json:"router,omitempty"`  // the namespace it samples; "": none
	Without string `json:"without,omitempty"` // why weir is not sampled
}

// Host is what a side says of its machine.
type Host struct {
	Name   string `json:"name"`
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"`
	Kernel string `json:"kernel"`
}

// granted is a run as the server allows it.
type granted struct {
	Run  Run      `json:"run"`
	Cut  []string `json:"cut,omitempty"`
	Port uint16   `json:"port"` // where the server's iperf3 listens
}

// refused says why something is not allowed.
type refused struct {
	Why string `json:"why"`
}

// outcome is what the server says of a run after it.
type outcome struct {
	Overflow uint64 `json:"overflow"`        // datagrams that found a full socket on its machine
	Ended    string `json:"ended,omitempty"` // why the run ended early; "": it did not
}

// writeMessage writes a message: its length in four bytes, big-endian, and JSON.
func writeMessage(w io.Writer, m *message) error {
	b, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("write a message: %w", err)
	}
	if len(b) > maxMessage {
		return fmt.Errorf("write a message of %d bytes: %w", len(b), errMessageLength)
	}
	_, err = w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...))
	return err
}

// readMessage reads a message. Its buffer grows with what arrives, not with the
// announced length.
func readMessage(r io.Reader) (*message, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n < 2 || n > maxMessage {
		return nil, errMessageLength
	}
	var b bytes.Buffer
	if got, err := io.Copy(&b, io.LimitReader(r, int64(n))); err != nil || got < int64(n) {
		return nil, errors.Join(io.ErrUnexpectedEOF, err)
	}
	return parseMessage(b.Bytes())
}

// parseMessage reads the JSON of a message and checks everything in it. Unknown
// members are refused: another version has another ALPN name.
func parseMessage(b []byte) (*message, error) {
	// The first look counts the members: a struct would keep the last of two kinds.
	if err := oneMember(b); err != nil {
		return nil, err
	}
	var m message
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		return nil, fmt.Errorf("read a message: %w", err)
	}
	if m == (message{}) {
		return nil, errMessageKind
	}
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("read a message: %w", err)
	}
	return &m, nil
}

// oneMember refuses everything but one object with one member.
func oneMember(b []byte) error {
	d := json.NewDecoder(bytes.NewReader(b))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return errMessageKind
	}
	var value json.RawMessage
	if _, err := d.Token(); err != nil || d.Decode(&value) != nil {
		return errMessageKind
	}
	if t, err := d.Token(); err != nil || t != json.Delim('}') {
		return errMessageKind
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errMessageKind
	}
	return nil
}

func (m *message) check() error {
	switch {
	case m.Hello != nil:
		return checkTexts(m.Hello.Program)
	case m.Welcome != nil:
		return m.Welcome.check()
	case m.Run != nil:
		return m.Run.check()
	case m.Granted != nil:
		return m.Granted.check()
	case m.Refused != nil:
		return checkTexts(m.Refused.Why)
	case m.Sample != nil:
		return m.Sample.Check()
	case m.Done != nil:
		if m.Done.Overflow > maxCount {
			return fmt.Errorf("a count of %d", m.Done.Overflow)
		}
		return checkTexts(m.Done.Ended)
	}
	return nil
}

func (w *welcome) check() error {
	if w.Machine.Cores < 0 || w.Machine.Cores > 1<<16 {
		return fmt.Errorf("%d cores", w.Machine.Cores)
	}
	return errors.Join(w.Limits.Check(),
		checkTexts(w.Program, w.Router, w.Without, w.Machine.Name, w.Machine.CPU, w.Machine.Kernel))
}

func (g *granted) check() error {
	if len(g.Cut) > 16 || g.Port == 0 {
		return fmt.Errorf("granted: port %d, %d cuts", g.Port, len(g.Cut))
	}
	return errors.Join(g.Run.check(), checkTexts(g.Cut...))
}

// maxCount is more than the packets of any run.
const maxCount = 1e15

func checkTexts(texts ...string) error {
	for _, t := range texts {
		if len(t) > maxText {
			return fmt.Errorf("a text of %d bytes", len(t))
		}
	}
	return nil
}
