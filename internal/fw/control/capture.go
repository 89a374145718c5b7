package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"

	"golang.org/x/sys/unix"
)

// AnyInterface stands for all interfaces in a CaptureRequest.
const AnyInterface = "any"

// CaptureRequest is the body of POST /capture. The response is a stream of records
// (pktrecord.Stream). It ends when the caller closes it or the daemon ends.
type CaptureRequest struct {
	Interface string `json:"interface"` // where packets come or leave, or AnyInterface
	Filter    string `json:"filter"`    // the part of a rule that tells addresses and ports
	Replies   bool   `json:"replies"`   // packets that go the other way too
	Snap      int    `json:"snap"`      // bytes of a frame
}

// Packets are the captured or logged packets for one reader.
type Packets interface {
	// Next waits for the next part of the stream. The part is valid until the next
	// call. At the end the error is io.EOF.
	Next(ctx context.Context) ([]byte, error)
	// Close ends the stream for this reader.
	Close() error
}

// serveCapture handles POST /capture. The request ends when the reader disconnects.
func serveCapture(w http.ResponseWriter, r *http.Request, c Control) {
	var body CaptureRequest
	if !read(w, r, &body) {
		return
	}
	packets, err := c.Capture(&body)
	if err != nil {
		refuse(w, err)
		return
	}
	sendPackets(w, r, packets)
}

// sendPackets sends the stream until it ends or the reader disconnects.
func sendPackets(w http.ResponseWriter, r *http.Request, packets Packets) {
	defer packets.Close() //nolint:errcheck // the peer has disconnected
	flusher := http.NewResponseController(w)
	w.Header().Set("Content-Type", "application/octet-stream")
	w.WriteHeader(http.StatusOK)
	for {
		if flusher.Flush() != nil {
			return
		}
		part, err := packets.Next(r.Context())
		if err != nil {
			return
		}
		if _, err := w.Write(part); err != nil {
			return
		}
	}
}

// Capture requests packets. The stream (pktrecord.Stream) begins at once. It ends with
// ctx, with the daemon, or when it is closed. The error is ErrNoDaemon if no daemon
// runs.
func (c *Client) Capture(ctx context.Context, q *CaptureRequest) (io.ReadCloser, error) {
	return c.stream(ctx, http.MethodPost, "/capture", q)
}

// stream sends a request and returns the body of the response.
func (c *Client) stream(ctx context.Context, method, path string, body any) (io.ReadCloser, error) {
	b, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("ask the daemon: %w", err)
	}
	return c.send(ctx, method, path, bytes.NewReader(b))
}

// send is stream for a body that is no JSON.
func (c *Client) send(ctx context.Context, method, path string, body io.Reader) (io.ReadCloser, error) {
	r, err := http.NewRequestWithContext(ctx, method, "http://weir"+path, body)
	if err != nil {
		return nil, fmt.Errorf("ask the daemon: %w", err)
	}
	response, err := c.http.Do(r)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ECONNREFUSED) {
		return nil, ErrNoDaemon
	}
	if err != nil {
		return nil, fmt.Errorf("ask the daemon: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		defer response.Body.Close()
		return nil, refusal(response)
	}
	return response.Body, nil
}
