package control

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"weir/internal/fw/rundir"
	"weir/internal/testenv"
	"weir/pf/resolve"
	"weir/pf/source"
)

// control is a daemon that refuses one file and records its requests.
type control struct {
	loaded  LoadRequest
	left    chan string
	packets *packets
	leaving int // so many loads meet a daemon that leaves
	table   []TableEntry
}

func (c *control) Status() Status                           { return Status{PID: 7, Version: "v1"} }
func (c *control) Open(context.Context, *OpenRequest) error { return ErrMayNotOpen }
func (c *control) ChangeAnchor(_ context.Context, r *AnchorChange) (*AnchorChanged, error) {
	if r.Load == nil {
		return nil, errors.New("no rules are given")
	}
	return &AnchorChanged{LoadResult: LoadResult{Rules: len(r.Load.Text)}}, nil
}
func (*control) PPPoE() []PPPoE { return []PPPoE{{Interface: "ppp0", State: PPPoEUp}} }

func (*control) PPPoEFrames() []PPPoEFrames {
	return []PPPoEFrames{{Interface: "ppp0", Frames: []PPPoEFrame{{Out: true, Data: []byte{1, 2}}}}}
}

func (*control) DialPPPoE(r *PPPoERequest) error {
	if r.Interface != "ppp0" {
		return errors.New("no such interface")
	}
	return nil
}

func (c *control) SetQueueRate(r *QueueRate) (*QueueRateSet, error) {
	if r.Interface != "wan0" {
		return nil, errors.New("no queues")
	}
	return &QueueRateSet{Rate: r.Rate, OfRules: 100}, nil
}

func (c *control) ChangeTable(r *TableChange) (*TableChanged, error) {
	if r.Table == "" {
		return nil, errors.New("no table is named")
	}
	c.table = r.Put
	return &TableChanged{len(r.Put) + len(r.Remove)}, nil
}

// Table marks each entry as added, and returns the entries of the request.
func (c *control) Table(r *TableRequest) (*TableResult, error) {
	if r.Table == "" {
		return nil, errors.New("no table is named")
	}
	result := &TableResult{Total: len(r.Entries), Marks: strings.Repeat("A", len(r.Entries))}
	for i, e := range r.Entries {
		result.Entries = append(result.Entries, DatedEntry{e, time.Unix(int64(i)*1000, 0)})
	}
	return result, nil
}

func (c *control) ReadTable(*TableRead) (*TableEntries, error) { return &TableEntries{c.table}, nil }

func (c *control) Confirm() (*ConfirmResult, error) {
	if c.loaded.Confirm == 0 {
		return nil, ErrNothingWaits
	}
	return &ConfirmResult{c.loaded.Path}, nil
}
func (c *control) End(why string) { c.left <- why }

// Capture refuses one interface, and ends after two parts.
func (c *control) Capture(q *CaptureRequest) (Packets, error) {
	if q.Interface == "nowhere" {
		return nil, errors.New("there is no interface nowhere")
	}
	c.packets = &packets{parts: []string{q.Interface + " ", q.Filter}}
	return c.packets, nil
}

func (*control) Gateways() []Gateway { return nil }

// Log ends after one part.
func (c *control) Log() (Packets, error) {
	c.packets = &packets{parts: []string{"logged"}}
	return c.packets, nil
}

type packets struct {
	parts  []string
	closed atomic.Bool
}

func (p *packets) Next(context.Context) ([]byte, error) {
	if len(p.parts) == 0 {
		return nil, io.EOF
	}
	part := p.parts[0]
	p.parts = p.parts[1:]
	return []byte(part), nil
}

func (p *packets) Close() error {
	p.closed.Store(true)
	return nil
}

func TestCapture(t *testing.T) {
	client, c, _ := serveControl(t)
	body, err := client.Capture(t.Context(), &CaptureRequest{Interface: "any", Filter: "proto tcp", Snap: 60})
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	got, err := io.ReadAll(body)
	if err != nil || string(got) != "any proto tcp" {
		t.Errorf("the stream is %q, %v", got, err)
	}
	for deadline := time.Now().Add(10 * time.Second); !c.packets.closed.Load() && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	if !c.packets.closed.Load() {
		t.Error("the capture goes on without a reader")
	}
	if _, err := client.Capture(t.Context(), &CaptureRequest{Interface: "nowhere"}); err == nil || err.Error() != "there is no interface nowhere" {
		t.Errorf("a refusal arrives as %v", err)
	}
}

func TestLog(t *testing.T) {
	client, _, _ := serveControl(t)
	body, err := client.Log(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	if got, err := io.ReadAll(body); err != nil || string(got) != "logged" {
		t.Errorf("the stream is %q, %v", got, err)
	}
}

func (c *control) Load(_ context.Context, r LoadRequest) (*LoadResult, error) {
	switch {
	case r.File == "bad.conf":
		_, list := resolve.Load(r.File, []byte("blok\n"), nil)
		return nil, list.Err()
	case r.File == "busy.conf":
		return nil, errors.New("build the dataplane: no memory")
	case c.leaving > 0:
		c.leaving--
		return nil, fmt.Errorf("wait: %w", ErrEnding)
	}
	c.loaded = r
	return &LoadResult{Rules: 3, Warnings: []string{"w"}}, nil
}

func serveControl(t *testing.T) (*Client, *control, rundir.Folder) {
	t.Helper()
	testenv.NeedRoot(t)
	f := rundir.Folder(filepath.Join(t.TempDir(), "1"))
	if err := os.Mkdir(string(f), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := Listen(f.Socket())
	if err != nil {
		t.Fatal(err)
	}
	c := &control{left: make(chan string, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- Serve(ctx, l, c) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return NewClient(f), c, f
}

func TestClientAndServer(t *testing.T) {
	client, c, _ := serveControl(t)
	ctx := t.Context()
	s, err := client.Status(ctx)
	if err != nil || s.PID != 7 {
		t.Errorf("Status = %+v, %v", s, err)
	}
	want := LoadRequest{File: "good.conf", Text: "include \"b\"\n", Beside: source.Beside{
		Files:  source.Files{"b": {Text: "pass\n"}, "c": {Error: "no such file"}},
		Macros: []source.Macro{{Name: "if", Value: "em0"}},
	}}
	a, err := client.Load(ctx, want)
	if err != nil || a.Rules != 3 || !reflect.DeepEqual(c.loaded, want) {
		t.Errorf("Load = %+v, %v; the daemon got %+v", a, err, c.loaded)
	}
	for file, want := range map[string]RefusedError{
		"bad.conf": {"bad.conf:1:1: no statement starts with \"blok\"; did you mean \"block\"?\n" +
			"    1 | blok\n      | ^^^^", true},
		"busy.conf": {"build the dataplane: no memory", false},
	} {
		var got *RefusedError
		if _, err := client.Load(ctx, LoadRequest{File: file}); !errors.As(err, &got) || *got != want {
			t.Errorf("Load of %s: %v, want the daemon's words:\n%v", file, err, want)
		}
	}
	c.leaving = 2
	if _, err := client.Load(ctx, want); err != nil || c.leaving != 0 {
		t.Errorf("Load from a daemon that leaves: %v; want that it is tried again", err)
	}
	if s, err := client.End(ctx, "because"); err != nil || s.PID != 7 || <-c.left != "because" {
		t.Errorf("Leave = %+v, %v", s, err)
	}
}

func TestNoDaemon(t *testing.T) {
	f := rundir.Folder(t.TempDir())
	if _, err := NewClient(f).Status(t.Context()); !errors.Is(err, ErrNoDaemon) {
		t.Errorf("without a socket: %v, want ErrNoDaemon", err)
	}
	// A daemon that was killed leaves its socket behind.
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: f.Socket(), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	if _, err := NewClient(f).Status(t.Context()); !errors.Is(err, ErrNoDaemon) {
		t.Errorf("with a dead socket: %v, want ErrNoDaemon", err)
	}
	again, err := Listen(f.Socket())
	if err != nil {
		t.Fatalf("Listen over a dead socket: %v", err)
	}
	again.Close()
}

// A daemon that ends while it is asked is none any more. If it is closed with a request in
// it, the connection is reset.
func TestDaemonEndsWhileAsked(t *testing.T) {
	for name, read := range map[string]bool{"it has read the request": true, "it has not": false} {
		f := rundir.Folder(t.TempDir())
		l, err := net.Listen("unix", f.Socket())
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if read {
				_, _ = c.Read(make([]byte, 4096))
			} else {
				time.Sleep(50 * time.Millisecond) // the request is there
			}
			c.Close()
		}()
		if _, err := NewClient(f).Status(t.Context()); !errors.Is(err, ErrNoDaemon) {
			t.Errorf("%s: %v, want ErrNoDaemon", name, err)
		}
		l.Close()
	}
}

// A daemon that hangs is an error, not a reason to hang.
func TestSilentDaemon(t *testing.T) {
	f := rundir.Folder(t.TempDir())
	l, err := net.Listen("unix", f.Socket()) // nobody accepts
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	const patience = 50 * time.Millisecond
	err = NewClient(f).ask(t.Context(), patience, http.MethodGet, "/status", nil, new(Status))
	if !errors.Is(err, ErrSilent) || !strings.Contains(err.Error(), patience.String()) {
		t.Errorf("Status: %v, want ErrSilent", err)
	}
}

func TestSocketIsForRootOnly(t *testing.T) {
	_, _, f := serveControl(t)
	i, err := os.Stat(f.Socket())
	if err != nil {
		t.Fatal(err)
	}
	if got := i.Mode().Perm(); got != 0o600 {
		t.Errorf("mode of the socket is %o, want 600", got)
	}
}

// A request and its entries arrive as they were sent, and so does the result.
func TestTableCommand(t *testing.T) {
	client, _, _ := serveControl(t)
	var entries []TableEntry
	for _, text := range []string{"192.0.2.0/24", "192.0.2.1/32", "2001:db8::/32"} {
		entries = append(entries, TableEntry{Prefix: netip.MustParsePrefix(text), Not: text == "192.0.2.1/32"})
	}
	got, err := client.Table(t.Context(), &TableRequest{Table: "t", Command: TableAdd, Marks: true, Entries: entries})
	if err != nil || got.Total != 3 || got.Marks != "AAA" || len(got.Entries) != 3 {
		t.Fatalf("Table = %+v, %v", got, err)
	}
	for i, e := range got.Entries {
		if e.TableEntry != entries[i] || e.Since.Unix() != int64(i)*1000 {
			t.Errorf("entry %d arrives as %+v", i, e)
		}
	}
	var refused *RefusedError
	if _, err := client.Table(t.Context(), &TableRequest{Command: TableFlush}); !errors.As(err, &refused) || refused.Text != "no table is named" {
		t.Errorf("a refusal arrives as %v", err)
	}
}

// testFolder returns a run folder that no other weir uses.
func testFolder(t *testing.T) rundir.Folder {
	t.Helper()
	return rundir.Folder(filepath.Join(t.TempDir(), "1"))
}

func TestPPPoE(t *testing.T) {
	client, _, _ := serveControl(t)
	all, err := client.PPPoE(t.Context())
	if err != nil || len(all) != 1 || all[0].Interface != "ppp0" || all[0].State != PPPoEUp {
		t.Errorf("PPPoE = %+v, %v", all, err)
	}
	frames, err := client.PPPoEFrames(t.Context())
	if err != nil || len(frames) != 1 || len(frames[0].Frames) != 1 || !frames[0].Frames[0].Out || len(frames[0].Frames[0].Data) != 2 {
		t.Errorf("PPPoEFrames = %+v, %v", frames, err)
	}
	if err := client.DialPPPoE(t.Context(), &PPPoERequest{Interface: "ppp0"}); err != nil {
		t.Error(err)
	}
	var refused *RefusedError
	if err := client.DialPPPoE(t.Context(), &PPPoERequest{Interface: "ppp1", Down: true}); !errors.As(err, &refused) {
		t.Errorf("a refusal arrives as %v", err)
	}
}

func TestSetQueueRate(t *testing.T) {
	client, _, _ := serveControl(t)
	got, err := client.SetQueueRate(t.Context(), &QueueRate{Interface: "wan0", In: true, Rate: 70, Autorate: true})
	if err != nil || *got != (QueueRateSet{Rate: 70, OfRules: 100}) {
		t.Errorf("SetQueueRate = %+v, %v", got, err)
	}
	var refused *RefusedError
	if _, err := client.SetQueueRate(t.Context(), &QueueRate{Interface: "lan0"}); !errors.As(err, &refused) || refused.Text != "no queues" {
		t.Errorf("a refusal arrives as %v", err)
	}
}
