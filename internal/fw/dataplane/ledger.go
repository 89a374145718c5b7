package dataplane

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
	"unsafe"

	"weir/internal/fw/bpfload"
	"weir/internal/killpoint"
)

// A ledger is what one generation passes to the next besides the tables. It is a map with
// one value, pinned among the generation's maps. So it becomes the live ledger at the
// same moment as they become live. Programs do not read it.
type ledger struct {
	HashSeed   uint64 // of the tuple hash
	Loaded     int64  // of the live generation, nanoseconds since 1970
	Generation uint32 // increases with each generation
	Layout     uint32 // stateLayout of the tables
	NextRule   uint32 // first global rule id that was never used
	RuleBase   uint32 // of the live generation
	Rules      uint32 // of the live generation
	Unloaded   uint32 // 1: the live generation is the built-in set
	From       uint32 // layout of the pinned old tables
	Copied     uint32 // tick at which copying from there began; 0: there is nothing to copy from
	Replaced   uint32 // how often rules of the live generation were replaced under traffic
	Queues     uint32 // a number for what the queues of the live generation are; 0: it has none
	QueueShape uint32 // likewise, without their rates
	Spare      [1]uint32
}

const ledgerName = "ledger"

// readLedger reads the ledger of the live generation in dir. The error wraps
// fs.ErrNotExist if there is none.
func readLedger(dir string) (ledger, error) {
	m, err := openLedger(dir)
	if err != nil {
		return ledger{}, err
	}
	defer m.Close()
	return readLedgerMap(m)
}

func readLedgerMap(m *bpfload.Map) (l ledger, err error) {
	if err := m.Lookup(uint32(0), &l); err != nil {
		return l, fmt.Errorf("read the ledger: %w", err)
	}
	return l, nil
}

// writeLedger changes the ledger of the live generation in dir.
func writeLedger(dir string, l ledger) error {
	m, err := openLedger(dir)
	if err != nil {
		return err
	}
	defer m.Close()
	if err := m.Put(uint32(0), &l); err != nil {
		return fmt.Errorf("write the ledger: %w", err)
	}
	killpoint.Done("write the ledger")
	return nil
}

func openLedger(dir string) (*bpfload.Map, error) {
	m, err := bpfload.OpenMap(filepath.Join(liveGeneration(dir), ledgerName))
	if err != nil {
		return nil, err
	}
	if uintptr(m.ValueSize()) != unsafe.Sizeof(ledger{}) {
		m.Close()
		return nil, fmt.Errorf("the ledger has %d bytes, not %d: %w", m.ValueSize(), unsafe.Sizeof(ledger{}), ErrLayout)
	}
	return m, nil
}

// pinLedger pins a generation's ledger in the folder of its other pins.
func pinLedger(generation string, l ledger) error {
	m, err := bpfload.NewTable(ledgerName, uint32(unsafe.Sizeof(l)))
	if err != nil {
		return err
	}
	defer m.Close()
	if err := m.Put(uint32(0), &l); err != nil {
		return fmt.Errorf("write the ledger: %w", err)
	}
	return bpfload.PinMap(m, filepath.Join(generation, ledgerName))
}

func (l *ledger) loaded() time.Time { return time.Unix(0, l.Loaded) }

// NextRuleBase returns the first global rule id that no ruleset in dir has had, or 0 if
// nothing is pinned there. Ids are never reused, because states hold them.
func NextRuleBase(dir string) (uint32, error) {
	l, err := bpfload.From(bpfload.At(""), func() (ledger, error) { return readLedger(dir) })
	if isMissing(err) || errors.Is(err, ErrLayout) {
		return 0, nil // no readable state holds an id
	}
	return l.NextRule, err
}

// LiveGeneration returns the number of the generation in force, for any layout of the
// tables. The error wraps ErrNotLoaded if there is none.
func LiveGeneration(dir string) (uint32, error) {
	l, err := liveLedger(dir)
	return l.Generation, err
}

// RuleBase returns the global id of rule 0 of the ruleset in force, for any layout of the
// tables. The error wraps ErrNotLoaded if there is none.
func RuleBase(dir string) (uint32, error) {
	l, err := liveLedger(dir)
	return l.RuleBase, err
}

// liveLedger returns the ledger of what is in force, for any layout of the tables. The
// error wraps ErrNotLoaded if nothing is in force.
func liveLedger(dir string) (ledger, error) {
	return bpfload.From(bpfload.At(""), func() (l ledger, err error) {
		// Without tables nothing counts as loaded, whatever else a removal has
		// left.
		if _, none := os.Stat(liveTables(dir)); none == nil {
			if l, err = readLedger(dir); !isMissing(err) {
				return l, err
			}
		}
		return l, fmt.Errorf("%s: %w", dir, ErrNotLoaded)
	})
}
