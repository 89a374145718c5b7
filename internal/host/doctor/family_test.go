package doctor

import "testing"

// TestFamilies checks that counters that no form names are judged by their words: names of drivers that no list here has.
func TestFamilies(t *testing.T) {
	for name, want := range map[string][2]bool{
		"rxq3_nobuf_drop": {true, false}, "mac_rx_missed_pkts": {true, false}, "RxFifoOvf": {true, false}, "rx_desc_unavail": {true, false},
		"in_discards_no_buffer": {true, false}, "rcv_pkt_overrun": {true, false}, "rx_out_of_rbd": {true, false}, "port_rx_fifo_full_discards": {true, false},
		"mac_rcv_crc_error": {false, true}, "Rx FCS Errors": {false, true}, "rx_align_errs": {false, true}, "rx_symbol_err_cnt": {false, true},
		"rx_cache_empty": {}, "rx_discard_vlan": {}, "rx_steer_missed_packets": {}, "tx_no_desc": {}, "rx_csum_bad": {}, "rx_crc_good": {}, "tx_crc_err": {},
		"rx_ptp_missed": {}, "rx_lro_no_desc": {}, "rx_filtered_discards": {}, "rx_xdp_fifo_full": {}, "rx_packets": {}, "out_discards": {}, "rx_fifo_almost_full": {},
	} {
		if got := [2]bool{lacksRoom(name), isDamage(name)}; got != want {
			t.Errorf("%s: no room %t, damage %t; want %v", name, got[0], got[1], want)
		}
	}
}
