package test

import (
	"os"
	"path/filepath"
	"testing"

	"weir/internal/testenv"
	"weir/test/lib"
)

// weir is the binary under test.
var weir lib.Binary

func TestMain(m *testing.M) { os.Exit(lib.Main(m, &weir)) }

// gatewayConf returns the path of the example that the lab is made for.
func gatewayConf(t testing.TB) string {
	t.Helper()
	return filepath.Join(testenv.Root(t), "examples", "gateway.conf")
}

// Addresses of the lab (internal/lab, Gateway).
const (
	lanMAC   = "02:77:65:00:00:02"
	fwLANMAC = "02:77:65:00:00:01"
	lanHost  = "192.168.1.10"
	lanHost6 = "fd00:1::10"
	fwLAN6   = "fd00:1::1"
	fwLAN    = "192.168.1.1"
	fwWAN    = "203.0.113.2"
	fwWAN6   = "2001:db8:113::2"
	wanHost  = "203.0.113.1"
	wanHost6 = "2001:db8:113::1"
)
