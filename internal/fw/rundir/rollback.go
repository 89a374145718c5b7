package rundir

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"weir/internal/killpoint"
)

// Rollback is the record of a load that waits for confirmation. It is written before the
// load. A start that finds it, while the daemon that wrote it is dead, loads the earlier
// rules.
type Rollback struct {
	Until  time.Time `json:"until"`
	File   string    `json:"file"`             // what was loaded, absolute
	Before Source    `json:"before"`           // what comes back
	Failed string    `json:"failed,omitempty"` // why it has not, though its time is up
}

// Rollback returns the file of a load that waits for confirmation: a Rollback.
func (f Folder) Rollback() string { return f.path("rollback.json") }

// ReadRollback reads the record of a waiting load. It returns nil if there is none.
func (f Folder) ReadRollback() (*Rollback, error) {
	var r Rollback
	err := ReadJSON(f.Rollback(), &r)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the record of a waiting load: %w", err)
	}
	return &r, nil
}

// rollbackTables is the folder with a TableRecord for each table of the rules to go back to
// that was changed at run time.
func (f Folder) rollbackTables() string { return f.path("rollback-tables") }

// WriteRollbackTables records what tables held before a load that waits for confirmation. It
// comes before the Rollback.
func (f Folder) WriteRollbackTables(tables map[string]*Table) error {
	if err := f.removeRollbackTables(); err != nil || len(tables) == 0 {
		return err
	}
	if err := killpoint.MkdirAll(f.rollbackTables()); err != nil {
		return fmt.Errorf("record the tables before a load: %w", err)
	}
	for name, t := range tables {
		if _, err := WriteTable(f.rollbackTables(), name, t); err != nil {
			return err
		}
	}
	return nil
}

// ReadRollbackTables reads what WriteRollbackTables has written; damaged is as in
// ReadTables.
func (f Folder) ReadRollbackTables(damaged func(path string, err error) error) (map[string]*Table, error) {
	return ReadTables(f.rollbackTables(), damaged)
}

func (f Folder) removeRollbackTables() error {
	if err := killpoint.RemoveAll(f.rollbackTables()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the record of the tables before a load: %w", err)
	}
	return nil
}

// RemoveRollback removes the record, if there is one.
func (f Folder) RemoveRollback() error {
	if err := killpoint.Remove(f.Rollback()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the record of a waiting load: %w", err)
	}
	return f.removeRollbackTables()
}
