package control

import (
	"context"
	"io"
	"net/http"
)

// serveLog answers GET /log. A reader that goes away ends the request.
func serveLog(w http.ResponseWriter, r *http.Request, c Control) {
	packets, err := c.Log()
	if err != nil {
		refuse(w, err)
		return
	}
	sendPackets(w, r, packets)
}

// Log asks for the packets that rules log, from now on. The stream (pktrecord.Stream)
// begins at once and ends with ctx, with the daemon, or when it is closed.
// ErrNoDaemon: nobody answers.
func (c *Client) Log(ctx context.Context) (io.ReadCloser, error) {
	return c.stream(ctx, http.MethodGet, "/log", nil)
}
