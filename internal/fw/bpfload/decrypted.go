package bpfload

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/features"
)

// SeesDecrypted reports whether programs at TCX ingress see that IPsec has decrypted a packet. They do if
// the kernel has IPsec.
func SeesDecrypted() (bool, error) {
	err := features.HaveProgramHelper(ebpf.SchedCLS, asm.FnSkbGetXfrmState)
	if errors.Is(err, ebpf.ErrNotSupported) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("try whether decrypted packets are seen: %w", err)
	}
	return true, nil
}
