package lab

import "testing"

func TestTableListens(t *testing.T) {
	const tcp = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000:1451 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1 0 100 0 0 10 0
   1: 0100007F:0050 0100007F:C350 01 00000000:00000000 00:00000000 00000000     0        0 2 1 0 100 0 0 10 0
`
	for _, test := range []struct {
		proto string
		port  uint16
		want  bool
	}{
		{"tcp", 5201, true},
		{"tcp", 80, false}, // a connection, not a listener
		{"tcp", 22, false},
		{"udp", 5201, false}, // UDP has no listening state
	} {
		if got := tableListens(tcp, test.proto, test.port); got != test.want {
			t.Errorf("tableListens(%s, %d) = %v, want %v", test.proto, test.port, got, test.want)
		}
	}
}
