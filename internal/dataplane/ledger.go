package dataplane

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
	"unsafe"

	"weir/internal/bpfload"
)

// A ledger is what generations hand on to each other beside the tables. It is
// pinned as a map of one value; programs do not read it.
type ledger struct {
	HashSeed   uint64 // of the tuples' hash
	Loaded     int64  // of the live generation, nanoseconds since 1970
	Generation uint32 // counts up
	Layout     uint32 // stateLayout of the tables
	NextRule   uint32 // first global rule id that was never used
	RuleBase   uint32 // of the live generation
	Rules      uint32 // of the live generation
	Unloaded   uint32 // 1: the live generation is the built-in set
	Spare      [6]uint32
}

const ledgerName = "ledger"

// readLedger reads the ledger pinned in dir. The error wraps fs.ErrNotExist if
// there is none.
func readLedger(dir string) (ledger, error) {
	var l ledger
	m, err := openLedger(dir)
	if err != nil {
		return l, err
	}
	defer m.Close()
	if err := m.Lookup(uint32(0), &l); err != nil {
		return l, fmt.Errorf("read the ledger: %w", err)
	}
	return l, nil
}

// writeLedger writes the ledger pinned in dir, and pins one if there is none.
func writeLedger(dir string, l ledger) error {
	m, err := openLedger(dir)
	if errors.Is(err, ErrLayout) {
		err = os.Remove(filepath.Join(dir, ledgerName))
	}
	if m == nil && (err == nil || isMissing(err)) {
		m, err = newLedger(dir)
	}
	if err != nil {
		return err
	}
	defer m.Close()
	if err := m.Put(uint32(0), &l); err != nil {
		return fmt.Errorf("write the ledger: %w", err)
	}
	return nil
}

func openLedger(dir string) (*bpfload.Map, error) {
	m, err := bpfload.OpenMap(filepath.Join(dir, ledgerName))
	if err != nil {
		return nil, err
	}
	if uintptr(m.ValueSize()) != unsafe.Sizeof(ledger{}) {
		m.Close()
		return nil, fmt.Errorf("the ledger has %d bytes, not %d: %w", m.ValueSize(), unsafe.Sizeof(ledger{}), ErrLayout)
	}
	return m, nil
}

func newLedger(dir string) (*bpfload.Map, error) {
	m, err := bpfload.NewTable(ledgerName, uint32(unsafe.Sizeof(ledger{})))
	if err != nil {
		return nil, err
	}
	if err := bpfload.PinMap(m, filepath.Join(dir, ledgerName)); err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}

func (l *ledger) loaded() time.Time { return time.Unix(0, l.Loaded) }

// NextRuleBase returns the first global rule id that no ruleset in dir has had;
// 0 if nothing is pinned there. Ids are not used again, because states hold them.
func NextRuleBase(dir string) (uint32, error) {
	var base uint32
	err := bpfload.At("").Do(func() error {
		l, err := readLedger(dir)
		if isMissing(err) || errors.Is(err, ErrLayout) {
			return nil // no state that can be read holds an id
		}
		base = l.NextRule
		return err
	})
	return base, err
}
