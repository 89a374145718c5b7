package testbed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"weir/internal/lab"
)

// besideFolder is the prefix of the folders of further labs, within the benchmark's.
const besideFolder = "beside-"

// Beside builds the same lab once more, number n, so that two things can be in place at
// the same time. Close it before this testbed, which keeps the lock.
func (b *Testbed) Beside(ctx context.Context, n int) (*Testbed, error) {
	other := b.numbered(strconv.Itoa(n))
	if err := os.MkdirAll(other.Folder, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of lab %d: %w", n, err)
	}
	other.unlock = func() error { return os.RemoveAll(other.Folder) }
	if err := other.build(ctx, b.options); err != nil {
		return nil, errors.Join(fmt.Errorf("build lab %d: %w", n, err), other.Close())
	}
	return other, nil
}

// numbered returns the testbed of a further lab, which need not exist.
func (b *Testbed) numbered(n string) *Testbed {
	other := *b
	other.name, other.Folder = b.name+"-"+n, filepath.Join(b.Folder, besideFolder+n)
	other.Lab, other.Indexes, other.offloads, other.beside = nil, map[Place]int{}, b.options.Offloads, true
	return &other
}

// cleanUpBeside removes the further labs of a killed benchmark.
func (b *Testbed) cleanUpBeside() error {
	folders, err := filepath.Glob(filepath.Join(b.Folder, besideFolder+"*"))
	if err != nil {
		return fmt.Errorf("find the labs of an earlier run: %w", err)
	}
	var errs []error
	for _, folder := range folders {
		other := b.numbered(strings.TrimPrefix(filepath.Base(folder), besideFolder))
		err := stopLeftover(other, other.Firewall())
		if err == nil {
			_, err = lab.Remove(other.name, everyHost())
		}
		if err == nil { // else the folder tells the next run
			err = os.RemoveAll(folder)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
