package control

import (
	"context"
	"io"
	"net/http"
)

// serveLog handles GET /log. The request ends when the reader disconnects.
func serveLog(w http.ResponseWriter, r *http.Request, c Control) {
	packets, err := c.Log()
	if err != nil {
		refuse(w, err)
		return
	}
	sendPackets(w, r, packets)
}

// Log requests the packets that rules log from now on. The stream (pktrecord.Stream)
// begins at once. It ends with ctx, with the daemon, or when it is closed. The error is
// ErrNoDaemon if no daemon runs.
func (c *Client) Log(ctx context.Context) (io.ReadCloser, error) {
	return c.stream(ctx, http.MethodGet, "/log", nil)
}
