package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/fw/rundir"
	"weir/internal/killpoint"
	"weir/pf/diag"
	"weir/pf/source"
)

// maxBody is the largest request in bytes. A ruleset with a million table entries has 20
// MB.
const maxBody = 256 << 20

// Control is what a daemon can do on request.
type Control interface {
	// Status identifies the daemon.
	Status() Status
	// Load replaces the ruleset. After an error nothing has changed. ErrEnding means
	// that another daemon takes over; ask that one.
	Load(ctx context.Context, r LoadRequest) (*LoadResult, error)
	// Confirm keeps the rules that would be rolled back. The error is ErrNothingWaits
	// if there are none.
	Confirm() (*ConfirmResult, error)
	// ChangeAnchor loads the rules of an anchor, or flushes anchors. After an error
	// nothing has changed.
	ChangeAnchor(ctx context.Context, r *AnchorChange) (*AnchorChanged, error)
	// Open does what pfctl -d, -e and -F ask for. After an error nothing has changed.
	Open(ctx context.Context, r *OpenRequest) error
	// ChangeTable changes a table under traffic.
	ChangeTable(r *TableChange) (*TableChanged, error)
	// ReadTable returns the entries of a table.
	ReadTable(r *TableRead) (*TableEntries, error)
	// Table does a command with a table, under traffic.
	Table(r *TableRequest) (*TableResult, error)
	// SetQueueRate gives the queues of an interface and direction another rate, under traffic.
	SetQueueRate(r *QueueRate) (*QueueRateSet, error)
	// Gateways returns the gateways that are watched.
	Gateways() []Gateway
	// PPPoE returns the PPPoE interfaces.
	PPPoE() []PPPoE
	// PPPoEFrames returns their last frames.
	PPPoEFrames() []PPPoEFrames
	// DialPPPoE makes a session anew, or ends it.
	DialPPPoE(r *PPPoERequest) error
	// Log starts to deliver logged packets to one reader.
	Log() (Packets, error)
	// Capture starts to capture packets for one reader.
	Capture(q *CaptureRequest) (Packets, error)
	// End ends the daemon and changes nothing else.
	End(why string)
}

// Status is the response to GET /status.
type Status struct {
	PID     int           `json:"pid"`
	Version string        `json:"version"`
	Started time.Time     `json:"started"`
	Loaded  rundir.Loaded `json:"loaded"`
}

// LoadRequest is the body of POST /load.
type LoadRequest struct {
	File string `json:"file"` // name for diagnostics
	Path string `json:"path"` // absolute, for records
	Text string `json:"text"`
	source.Beside
	NoDNS   bool          `json:"no_dns,omitempty"`     // hosts are looked up on this machine only
	Confirm time.Duration `json:"confirm_ns,omitempty"` // the rules before come back unless confirmed in time
}

// LoadResult is the response to a successful load.
type LoadResult struct {
	Rules    int      `json:"rules"`
	Warnings []string `json:"warnings,omitempty"`
	Before   string   `json:"before,omitempty"` // file of the rules that come back unless confirmed
}

// EndRequest is the body of POST /leave.
type EndRequest struct {
	Why string `json:"why"`
}

// ErrEnding means that the daemon is ending and loads nothing any more.
var ErrEnding = errors.New("the daemon is ending")

// failure is the body of every response that is not a success.
type failure struct {
	Error  string `json:"error"`
	Faults bool   `json:"faults,omitempty"` // diagnostics of the rules, with their places
}

// refuse responds to a load that failed.
func refuse(w http.ResponseWriter, err error) {
	code := http.StatusUnprocessableEntity
	if errors.Is(err, ErrEnding) {
		code = http.StatusServiceUnavailable
	}
	var faults *diag.Failure
	respond(w, code, failure{err.Error(), errors.As(err, &faults)})
}

// Listen opens the control socket at path, for root only. It replaces a socket that a
// dead daemon left. The caller holds the folder's lock.
func Listen(path string) (net.Listener, error) {
	if err := killpoint.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("remove the old control socket: %w", err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("open the control socket: %w", err)
	}
	killpoint.Done("open the control socket")
	// Only root can open the folder, so nobody can connect before this.
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, fmt.Errorf("close the control socket to others: %w", err)
	}
	return rootListener{l}, nil
}

// rootListener lets only root connect, even through a descriptor or a mount that
// bypasses the folder.
type rootListener struct{ net.Listener }

func (l rootListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if peerIsRoot(c) {
			return c, nil
		}
		c.Close()
	}
}

func peerIsRoot(c net.Conn) bool {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return false
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return false
	}
	root := false
	err = raw.Control(func(fd uintptr) {
		cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		root = err == nil && cred.Uid == 0
	})
	return err == nil && root
}

// Serve serves l until ctx ends. Earlier requests are still answered.
func Serve(ctx context.Context, l net.Listener, c Control) error {
	s := &http.Server{Handler: Handler(c), ReadHeaderTimeout: 5 * time.Second}
	done := make(chan struct{})
	stopped := context.AfterFunc(ctx, func() {
		defer close(done)
		last, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		s.Shutdown(last) //nolint:errcheck // the process is ending
	})
	defer stopped()
	err := s.Serve(l)
	if errors.Is(err, http.ErrServerClosed) {
		<-done
		return nil
	}
	return fmt.Errorf("serve the control socket: %w", err)
}

// Handler routes requests to c.
func Handler(c Control) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		respond(w, http.StatusOK, c.Status())
	})
	answer(mux, "/load", func(r *http.Request, body *LoadRequest) (*LoadResult, error) { return c.Load(r.Context(), *body) })
	mux.HandleFunc("POST /confirm", func(w http.ResponseWriter, _ *http.Request) {
		done, err := c.Confirm()
		reply(w, done, err)
	})
	answer(mux, "/anchor", func(r *http.Request, body *AnchorChange) (*AnchorChanged, error) {
		return c.ChangeAnchor(r.Context(), body)
	})
	answer(mux, "/open", func(r *http.Request, body *OpenRequest) (*struct{}, error) {
		return &struct{}{}, c.Open(r.Context(), body)
	})
	answer(mux, "/table/change", func(_ *http.Request, body *TableChange) (*TableChanged, error) { return c.ChangeTable(body) })
	answer(mux, "/table/read", func(_ *http.Request, body *TableRead) (*TableEntries, error) { return c.ReadTable(body) })
	mux.HandleFunc("POST /table", func(w http.ResponseWriter, r *http.Request) { serveTable(w, r, c) })
	answer(mux, "/queue/rate", func(_ *http.Request, body *QueueRate) (*QueueRateSet, error) { return c.SetQueueRate(body) })
	mux.HandleFunc("GET /gateways", func(w http.ResponseWriter, _ *http.Request) { respond(w, http.StatusOK, c.Gateways()) })
	mux.HandleFunc("GET /pppoe", func(w http.ResponseWriter, _ *http.Request) { respond(w, http.StatusOK, c.PPPoE()) })
	mux.HandleFunc("GET /pppoe/frames", func(w http.ResponseWriter, _ *http.Request) { respond(w, http.StatusOK, c.PPPoEFrames()) })
	answer(mux, "/pppoe", func(_ *http.Request, body *PPPoERequest) (*struct{}, error) { return &struct{}{}, c.DialPPPoE(body) })
	mux.HandleFunc("GET /log", func(w http.ResponseWriter, r *http.Request) { serveLog(w, r, c) })
	mux.HandleFunc("POST /capture", func(w http.ResponseWriter, r *http.Request) { serveCapture(w, r, c) })
	mux.HandleFunc("POST /leave", func(w http.ResponseWriter, r *http.Request) {
		var body EndRequest
		if !read(w, r, &body) {
			return
		}
		respond(w, http.StatusOK, c.Status())
		c.End(body.Why)
	})
	return mux
}

// answer passes the body of a request to do, and replies with what it returns.
func answer[Body, Done any](mux *http.ServeMux, path string, do func(*http.Request, *Body) (Done, error)) {
	mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
		var body Body
		if read(w, r, &body) {
			done, err := do(r, &body)
			reply(w, done, err)
		}
	})
}

// reply responds with what was done, or refuses.
func reply(w http.ResponseWriter, done any, err error) {
	if err != nil {
		refuse(w, err)
		return
	}
	respond(w, http.StatusOK, done)
}

func read(w http.ResponseWriter, r *http.Request, body any) bool {
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	d.DisallowUnknownFields()
	if err := d.Decode(body); err != nil {
		respond(w, http.StatusBadRequest, failure{Error: "read the request: " + err.Error()})
		return false
	}
	return true
}

func respond(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	json.NewEncoder(w).Encode(body) //nolint:errcheck // the peer has disconnected
}
