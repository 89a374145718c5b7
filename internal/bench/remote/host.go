package remote

import (
	"fmt"
	"os"

	"weir/internal/host/hostinfo"
)

// thisHost is what this side says of its machine to the other.
func thisHost() (Host, error) {
	m, err := hostinfo.Describe()
	if err != nil {
		return Host{}, err
	}
	name, err := os.Hostname()
	if err != nil {
		return Host{}, fmt.Errorf("ask for the machine's name: %w", err)
	}
	return Host{Name: plain(name), CPU: plain(m.CPU), Cores: m.Cores, Kernel: plain(m.Kernel)}, nil
}
