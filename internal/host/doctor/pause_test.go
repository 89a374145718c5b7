package doctor

import (
	"strings"
	"testing"
)

// TestPauseDirection reads the names that drivers give to their counts of pause frames, and
// names that only look like them.
func TestPauseDirection(t *testing.T) {
	for name, want := range map[string]direction{
		"rx_flow_control_xoff": pauseIn, "tx_flow_control_xoff": pauseOut, "rx_flow_control_xon": noPause, // igb, ixgbe
		"port.link_xoff_rx": pauseIn, "link_xoff_tx.nic": pauseOut, "port.rx_priority_0_xon": noPause, // i40e, ice
		"rx_pause_ctrl_phy": pauseIn, "tx_prio3_pause": pauseOut, "rx_prio3_pause_duration": noPause, // mlx5
		"rx_prio3_pause_transition": noPause, "tx_pause_storm_warning_events": noPause,
		"rx_flow_control_packets": pauseIn, "p06_RxPause": pauseIn, "p06_TxPause": pauseOut, // mtk_soc_eth, mt7530
		"mmc_rx_pause_frames": pauseIn, "mmc_tx_pause_frame": pauseOut, // stmmac
		"[mac] rx valid pause frames": pauseIn, "MAC tx valid pause frames": pauseOut, // dpaa2, enetc
		"IEEE_rx_fdxfc": pauseIn, "IEEE_tx_fdxfc": pauseOut, "IEEE_rx_octets_ok": noPause, // fec
		"mac_tx_mac_pause_num": pauseOut, "rx_pfc_frames": pauseIn, "in_pause": pauseIn, // hns3, bnxt, mv88e6xxx
		"Tx Pause Frames Honored": pauseIn, "RxPausePkts": pauseIn, "fc_sent": pauseOut, // ag71xx, b53, mvpp2
		"tx_xoff_sent": pauseOut, "rx_xoff_pause_rcvd": pauseIn, // tg3
		"admin_q_pause": noPause, "rx_fcs_errors": noPause, "rx_packets": noPause, "fcoe_last_error": noPause, "rx_flow_steering": noPause,
		"tx_queue_stopped": noPause, "rx_constant_pause_events": noPause, "pauseON": noPause,
	} {
		if got := pauseDirection(name); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
}

// TestPausedCard checks that a card which the other end stopped until it was reset is told
// first to do without pause frames.
func TestPausedCard(t *testing.T) {
	b := forwarding(4, 20)
	b.counted("eth0", "rx_flow_control_packets", 26000).errors("eth0", Link{TxTimeouts: 1})
	r, err := Examine(b.s, nil)
	if err != nil {
		t.Fatal(err)
	}
	f, hang := findingOf(r, "FC-1"), findingOf(r, "HANG-1")
	if r.Verdict.Check != "FC-1" || f == nil || !strings.HasPrefix(f.Remedies[0].Command, "ethtool -A eth0") || hang == nil || hang.Because != "FC-1" {
		t.Errorf("%+v\n%+v\n%+v", r.Verdict, f, hang)
	}
}

// TestIsolated checks that a queue on a core that was isolated for programs is named where
// programs run there, and only there.
func TestIsolated(t *testing.T) {
	for _, c := range []struct {
		user  float64
		apart int // first isolated core
		want  string
	}{{40, 2, "ethtool -L eth0 combined 2"}, {2, 2, ""}, {40, 4, ""}} {
		b := newBox(4)
		b.card("eth0", "ice", 25000, 4, 16)
		b.traffic("eth0", 600, 4000, 4000, 4000, 4000)
		for id := range 4 {
			b.s.After.CPUs[id] = b.s.Before.CPUs[id]
			b.core(id, 7, 5, c.user)
			b.s.CPUs[id].Isolated = id >= c.apart
		}
		r, err := Examine(b.s, nil)
		if err != nil {
			t.Fatal(err)
		}
		f := findingOf(r, "IRQ-6")
		if (f != nil) != (c.want != "") || f != nil && (r.Verdict.Check != "IRQ-6" || f.Remedies[0].Command != c.want || !strings.Contains(f.Remedies[1].Command, "echo 0-1 >")) {
			t.Errorf("%+v: %+v", c, f)
		}
	}
}

// TestFullInFront checks that a card's own memory is told from its ring: which of them lost a
// packet decides whether a larger ring helps.
func TestFullInFront(t *testing.T) {
	for counter, want := range map[string]string{"mmc_rx_fifo_overflow": "ethtool -A eth0", "rx_missed_errors": "ethtool -G eth0"} {
		b := newBox(4)
		b.card("eth0", "st_gmac", 2500, 1, 1)
		b.traffic("eth0", 1400, 2000).counted("eth0", counter, 3600)
		r, err := Examine(b.s, nil)
		if err != nil {
			t.Fatal(err)
		}
		f := findingOf(r, "RING-1")
		if f == nil || !strings.HasPrefix(f.Remedies[0].Command, want) {
			t.Errorf("%s: %+v", counter, f)
		}
	}
}
