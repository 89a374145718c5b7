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

// CaptureRequest is the body of POST /capture. The answer is a stream of records
// (pktrecord.Stream) that ends when the caller closes it, or the daemon ends.
type CaptureRequest struct {
	Interface string `json:"interface"` // where packets come or leave, or AnyInterface
	Filter    string `json:"filter"`    // the part of a rule that tells addresses and ports
	Replies   bool   `json:"replies"`   // packets that go the other way too
	Snap      int    `json:"snap"`      // bytes of a frame
}

// Packets are what is captured, or logged, for one reader.
type Packets interface {
	// Next waits for a part of the stream, good until the next call. The error is
	// io.EOF when there will be no more.
	Next(ctx context.Context) ([]byte, error)
	// Close ends it for this reader.
	Close() error
}

// serveCapture answers POST /capture. A reader that goes away ends the request.
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

// sendPackets answers with the stream until it ends or the reader goes away.
func sendPackets(w http.ResponseWriter, r *http.Request, packets Packets) {
	defer packets.Close() //nolint:errcheck // the peer is gone: nobody is left to be told
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

// Capture asks for packets. The stream (pktrecord.Stream) begins at once and ends
// with ctx, with the daemon, or when it is closed. ErrNoDaemon: nobody answers.
func (c *Client) Capture(ctx context.Context, q *CaptureRequest) (io.ReadCloser, error) {
	return c.stream(ctx, http.MethodPost, "/capture", q)
}

// stream asks and returns the answer's body.
func (c *Client) stream(ctx context.Context, method, path string, body any) (io.ReadCloser, error) {
	b, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("ask the daemon: %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, method, "http://weir"+path, bytes.NewReader(b))
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
