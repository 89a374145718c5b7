package keeper

import (
	"errors"
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
}

// stampPause is the least time between two writes to what may be a flash memory.
const stampPause = time.Minute

// stampSlack is what may be missing of what a process has said that was killed: it is written each second.
const stampSlack = 2 * time.Second

type stampRecord struct {
	Sent time.Time `json:"sent"`
}

const stampFile = "stamps.json"

// read reads what earlier processes have sent. After a boot that was not waited for, up to a minute of it is missing: the same again is
// left out.
func (s *stamps) read(log *slog.Logger) {
	var r stampRecord
	err := rundir.ReadJSON(filepath.Join(s.folder, stampFile), &r)
	if errors.Is(err, fs.ErrNotExist) && s.state != "" {
		if err = rundir.ReadJSON(filepath.Join(s.state, stampFile), &r); err == nil {
			r.Sent = r.Sent.Add(2 * stampPause)
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.Warn("read which times handshakes had", "error", err)
	}
	s.last, s.kept = r.Sent, r.Sent
	if ahead := time.Until(r.Sent).Round(time.Second); ahead > 2*stampPause {
		log.Warn("the clock has gone back: handshakes say a later time, so that peers take them", "by", ahead)
	}
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
	if err != nil {
		log.Warn("write which times handshakes had", "error", err)
	}
}
