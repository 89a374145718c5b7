package keeper

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"weir/internal/fw/rundir"
	"weir/internal/vpn/tunnel"
)

// stamps is the latest time that the first message of a handshake had, of all tunnels. A peer takes none that is not later, and says
// nothing. So the next process goes on from there, though the clock may have gone back, as that of a box without a battery at each boot.
// What peers have sent is not kept: an old message of a peer that somebody sends again can end no session of a process that has none, and
// the peer's next one counts again (section 5.1 of the paper). If it were kept, a peer whose clock has gone back would be alone.
type stamps struct {
	folder string // where it is until the next boot
	state  string // where it stays; "": nowhere
	last   time.Time
	kept   time.Time // as it is in folder
	stayed time.Time // when it was written to state
	failed fault
}

// stampPause is the least time between two writes to what may be a flash memory.
const stampPause = time.Minute

// stampSlack is what may be missing of what a process has said that was killed: it is written each second.
const stampSlack = 2 * time.Second

type stampRecord struct {
	Sent time.Time `json:"sent"`
}

const stampFile = "stamps.json"

// errNoTime is returned for a record that has no time.
var errNoTime = errors.New("it has no time")

// read reads what earlier processes have sent. If the record of this boot is missing or damaged, the one that stays is taken: up to a
// minute may be missing there, and the same again is left out.
func (s *stamps) read(log *slog.Logger) {
	sent, err := readStamp(s.folder)
	if sent.IsZero() && s.state != "" {
		older, olderErr := readStamp(s.state)
		if !older.IsZero() {
			sent = older.Add(2 * stampPause)
		}
		err = errors.Join(err, olderErr)
	}
	switch {
	case err != nil && sent.IsZero():
		log.Warn("no record of the times of handshakes can be read: if the clock has gone back, peers do not answer until it has caught up", "error", err)
	case err != nil:
		log.Warn("the record of the times of handshakes cannot be read; the one that stays over a boot is used", "error", err)
	}
	s.last, s.kept = sent, sent
	if ahead := time.Until(sent).Round(time.Second); ahead > 2*stampPause { // docs/vpn.md, Clocks
		log.Warn("handshakes say a time that is yet to come, so that peers take them: the clock has gone back, or was ahead before", "by", ahead)
	}
}

// readStamp returns the zero time if there is no record in a folder. That is no error.
func readStamp(folder string) (time.Time, error) {
	path := filepath.Join(folder, stampFile)
	var r stampRecord
	err := rundir.ReadJSON(path, &r)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return time.Time{}, nil
	case err != nil:
		return time.Time{}, err
	case r.Sent.IsZero():
		return time.Time{}, fmt.Errorf("read %s: %w", path, errNoTime)
	}
	return r.Sent, nil
}

// begin tells a new engine. Where the clock is behind, that is written first: this process may be killed before it has written anything else.
func (s *stamps) begin(e tunnel.Engine, now time.Time, log *slog.Logger) {
	is, ok := e.(tunnel.Stamper)
	if !ok || s.last.IsZero() {
		return
	}
	after := s.last.Add(stampSlack)
	if after.After(now) {
		s.last = after
		s.write(now, false, log)
	}
	is.StampAfter(after)
}

// says returns what time an engine's handshakes say, if that is yet to come.
func (s *stamps) says(e tunnel.Engine, now time.Time) time.Time {
	if _, ok := e.(tunnel.Stamper); ok && s.last.Sub(now) > stampSlack {
		return s.last
	}
	return time.Time{}
}

// note notes what an engine has sent.
func (s *stamps) note(e tunnel.Engine) {
	if is, ok := e.(tunnel.Stamper); ok {
		if t := is.Stamped(); t.After(s.last) {
			s.last = t
		}
	}
}

// write writes it, if it has changed. At the end it stays, too.
func (s *stamps) write(now time.Time, end bool, log *slog.Logger) {
	if s.last.Equal(s.kept) && !end {
		return
	}
	err := rundir.WriteJSON(filepath.Join(s.folder, stampFile), stampRecord{s.last})
	if err == nil {
		s.kept = s.last
	}
	if s.state != "" && !s.last.IsZero() && (end || now.Sub(s.stayed) >= stampPause || now.Before(s.stayed)) {
		s.stayed = now
		err = errors.Join(err, os.MkdirAll(s.state, 0o700), rundir.WriteJSON(filepath.Join(s.state, stampFile), stampRecord{s.last}))
	}
	s.failed.tell(log, "the times of handshakes", err)
}
