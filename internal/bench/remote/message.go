package remote

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"weir/internal/bench/sample"
)

// maxMessage is the longest message in bytes, without the four of its length.
const maxMessage = 64 << 10

// What is wrong with a message.
var (
	errMessageLength = fmt.Errorf("a message has 2 to %d bytes", maxMessage)
	errMessageKind   = errors.New("a message says one thing, and one that is known")
)

// message is one of either side. Exactly one field is set.
type message struct {
	Hello   *hello        `json:"hello,omitempty"`   // client: the first
	Welcome *welcome      `json:"welcome,omitempty"` // server: its answer
	Run     *Run          `json:"run,omitempty"`     // client: asks for a run
	Granted *granted      `json:"granted,omitempty"` // server: gives it
	Refused *refused      `json:"refused,omitempty"` // server: no; with Session the end
	Proof   *proof        `json:"proof,omitempty"`   // client: the cookie that came to its UDP address
	Proven  *struct{}     `json:"proven,omitempty"`  // server: it was right
	Go      *struct{}     `json:"go,omitempty"`      // client: everything is connected
	Started *struct{}     `json:"started,omitempty"` // server: and sends, from now
	Alive   *struct{}     `json:"alive,omitempty"`   // client: several times a second while a run lasts
	Sample  *sample.Point `json:"sample,omitempty"`  // server: what it and its router do
	Sent    *sent         `json:"sent,omitempty"`    // client: what it has sent, when it has ended
	Done    *outcome      `json:"done,omitempty"`    // server: what it has counted
	Bye     *struct{}     `json:"bye,omitempty"`     // client: that was all
}

// hello opens a session.
type hello struct {
	Program string `json:"program"` // and its version, for the other's log
}

// welcome tells the client with whom it speaks and what it may do.
type welcome struct {
	Program string `json:"program"`
	Limits  Limits `json:"limits"`
	Machine Host   `json:"machine"`
	Router  string `json:"router,omitempty"`  // the namespace it samples; "": none
	Without string `json:"without,omitempty"` // why weir is not sampled
	Probe   string `json:"probe"`             // ticket of the UDP flow for round-trip times
}

// Host is what a side says of its machine.
type Host struct {
	Name   string `json:"name"`
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"`
	Kernel string `json:"kernel"`
}

// granted is a run as the server gives it.
type granted struct {
	Run     Run      `json:"run"`
	Cut     []string `json:"cut,omitempty"`
	Tickets []string `json:"tickets"` // for TCP one per connection, those of the way up first; for UDP one
}

// refused says why something is not given.
type refused struct {
	Why     string `json:"why"`
	Session bool   `json:"session"` // the session is over
}

// proof shows that a challenge arrived.
type proof struct {
	Ticket string `json:"ticket"`
	Cookie string `json:"cookie"`
}

// sent is what a side has sent in a run.
type sent struct {
	Packets     uint64 `json:"packets"`     // UDP
	Bytes       uint64 `json:"bytes"`       // of payload
	Retransmits uint64 `json:"retransmits"` // TCP segments
	Held        bool   `json:"held"`        // the sender did not keep up with the rate
}

// received is what a side has received in a run. Rates are of payload, but for
// UDP of whole frames.
type received struct {
	Bytes     uint64        `json:"bytes"`  // counted
	Window    time.Duration `json:"window"` // in which they were counted
	Whole     bool          `json:"whole"`  // data came until the window's end
	Series    []float64     `json:"series"` // bit/s of each interval
	Packets   uint64        `json:"packets"`
	Reordered uint64        `json:"reordered"`
	Overflow  uint64        `json:"overflow"`  // lost in the receiver's own socket
	Jitter    time.Duration `json:"jitter_ns"` // RFC 3550, section 6.4.1
}

// outcome is what the server has to say of a run.
type outcome struct {
	Sent     *sent     `json:"sent,omitempty"`     // where it sent
	Received *received `json:"received,omitempty"` // where it received
	Process  float64   `json:"process"`            // seconds of cores that its process took
	Ended    string    `json:"ended,omitempty"`    // why before its time; "": it was whole
}

// maxSeries is how many intervals a receiver reports.
const maxSeries = 2048

// writeMessage writes a message: its length in four bytes, the highest first,
// and JSON.
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

// readMessage reads a message of anybody's. It takes no more memory than the
// longest message has.
func readMessage(r io.Reader) (*message, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n < 2 || n > maxMessage {
		return nil, errMessageLength
	}
	var b bytes.Buffer // grows with what comes, not with what was announced
	if got, err := io.Copy(&b, io.LimitReader(r, int64(n))); err != nil || got < int64(n) {
		return nil, errors.Join(io.ErrUnexpectedEOF, err)
	}
	return parseMessage(b.Bytes())
}

// parseMessage reads the JSON of a message and checks everything in it. What is
// not known is refused: the version is in the name of the protocol.
func parseMessage(b []byte) (*message, error) {
	if err := oneMember(b); err != nil {
		return nil, err
	}
	var m message
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		return nil, fmt.Errorf("read a message: %w", err)
	}
	if m.said() != 1 {
		return nil, errMessageKind
	}
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("read a message: %w", err)
	}
	return &m, nil
}

// oneMember refuses all but an object with one member, and what follows it. The
// decoder would take the last of several of one name.
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

func (t ticket) String() string { return hex.EncodeToString(t[:]) }

func parseTicket(text string) (t ticket, err error) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != len(t) {
		return t, errors.New("this is no ticket")
	}
	return ticket(b), nil
}
