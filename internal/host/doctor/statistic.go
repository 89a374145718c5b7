package doctor

import (
	"slices"
	"strconv"

	"weir/internal/pattern"
)

// rxPackets lists the drivers' names for the packets of one receive queue in ethtool -S.
// If a driver splits the count, the parts are added up.
var rxPackets = []*pattern.Pattern{
	pattern.New(`^rx_queue_(\d+)_packets$`),                         // igb igc ixgbe ice virtio_net hv_netvsc
	pattern.New(`^rx-(\d+)\.(?:rx_)?packets$`),                      // i40e iavf sfc
	pattern.New(`^rx_?q?(\d+)_(?:packets|pkts)$`),                   // mlx4 mlx5 ionic
	pattern.New(`^\[(\d+)\]: rx_(?:ucast|mcast|bcast)_packets$`),    // bnxt
	pattern.New(`^queue_(\d+)_rx_cnt$`),                             // ena
	pattern.New(`^rxq_?(\d+)(?:: rx_pkts|_packets|\.packets)$`),     // be2net
	pattern.New(`^rvec_(\d+)_rx_pkts$`),                             // nfp
	pattern.New(`^(\d+): rcv_pkts$`),                                // qede
	pattern.New(`^rx_packets\[(\d+)\]$`),                            // gve
	pattern.New(`^Queue\[(\d+)\] InPackets$`),                       // atlantic
	pattern.New(`^q(\d+)_rx_pkt_n$`),                                // stmmac
	pattern.New(`^\[rxq (\d+)\]: packets$|^rx_ring_(\d+)_packets$`), // others
}

// vethPackets is veth's name for them. Other drivers use this name for an additional
// count of what XDP saw.
var vethPackets = pattern.New(`^rx_queue_(\d+)_xdp_packets$`)

// rxQueue returns the queue whose packets a statistic of this device counts.
func (i *Interface) rxQueue(name string) (n int, ok bool) {
	if i.Kind != "veth" {
		return rxQueue(name)
	}
	found := vethPackets.FindStringSubmatch(name)
	if found == nil {
		return 0, false
	}
	n, err := strconv.Atoi(found[1])
	return n, err == nil
}

// rxQueue returns the queue whose packets a card's statistic counts.
func rxQueue(name string) (n int, ok bool) {
	for _, form := range rxPackets {
		for i, text := range form.FindStringSubmatch(name) {
			if i == 0 || text == "" {
				continue
			}
			n, err := strconv.Atoi(text)
			return n, err == nil
		}
	}
	return 0, false
}

// Driver statistics of packets that found no room: the ring had no free descriptor, or
// the card's own memory was full.
var noRoom = pattern.New(`(?i)^(?:(?:port[._])?rx[-_]?(?:missed(?:_errors|_cntr)?|no_buffer(?:_count)?|no_dma_resources|out_of_buffer|fifo_(?:errors|overflow)|over_errors|(?:fw_|ftq_)?discards?(?:_phy)?|buf_discard|` +
	`(?:queue_)?\d+_drops|queue_\d+_alloc_fail.*|no_buf.*|overruns?|overrun_(?:errors|err)|overflow(?:_cntr)?|nodesc_drops|nodesc_drop_cnt|drops(?:_no_\w+)?|resource_errors|fullq_dropped|bm_dropped|brb_discard|dropped_no_desc.*)|` +
	`rx_dropped\.nic|port\.rx_dropped|\[\d+\]: rx_discards|rx_queue_drop_cnt\[\d+\]|rxq\d+: rx_drops_no_\w+|` + // i40e, ice; bnxt; gve; be2net
	`\s*pkts rx OOB|no_buff_discards|mbuf_lwm_thresh_hit|InDroppedDma|RX Dropped Frames|mmc_rx_fifo_overflow|\[hw\] rx nobuffer discards|Rx ring\s+\d+ discarded frames)$`) // vmxnet3; qede; tg3; atlantic; lan78xx; stmmac; dpaa2; enetc

// Further statistics of some drivers: the packet waits in the card's own memory, or the
// driver asks for the buffer again. They indicate a loss only if nothing counts the lost
// packets themselves.
var (
	mayWait = pattern.New(`(?i)no_buf|alloc_fail`)
	missed  = pattern.New(`(?i)^(?:port\.)?rx[-_]?(?:missed(?:_errors)?|no_dma_resources|out_of_buffer)$`)
)

// queueDrops is virtio_net's name for a queue's drops, in older and newer kernels. It
// includes packets dropped by an XDP program, which a second counter gives (virtnet_poll,
// receive_buf).
var (
	queueDrops  = pattern.New(`^(rx(?:_queue_)?\d+_)drops$`)
	queueNumber = pattern.New(`\d+`)
)

// droppedForRoom returns the packets that the card had no room for. Several counters may count
// the same packet, so it takes the largest. Counters of queues are added up.
func (v *view) droppedForRoom(name string) (most uint64, counter string) {
	now, then := v.After.Statistics[name], v.Before.Statistics[name]
	exact := slices.ContainsFunc(sortedKeys(now), missed.MatchString)
	sums := map[string]uint64{}
	for _, key := range sortedKeys(now) {
		before, known := then[key]
		if !known || !lacksRoom(key) || exact && mayWait.MatchString(key) {
			continue
		}
		lost := Grown(now[key], before)
		if queue := queueDrops.FindStringSubmatch(key); queue != nil {
			byXDP := queue[1] + "xdp_drops"
			lost -= min(lost, Grown(now[byXDP], then[byXDP]))
		}
		sums[queueNumber.ReplaceAllString(key, "*")] += lost
	}
	for _, key := range sortedKeys(sums) {
		if sums[key] > most {
			most, counter = sums[key], key
		}
	}
	return most, counter
}

// lost returns the same, or the kernel's own counters of the link if they are higher.
func (v *view) lost(n *nic) (lost uint64, counter string) {
	lost, counter = v.droppedForRoom(n.Name)
	if n.link.RxMissed > lost {
		lost, counter = n.link.RxMissed, "rx_missed_errors"
	}
	if n.link.RxFIFO > lost {
		lost, counter = n.link.RxFIFO, "rx_fifo_errors"
	}
	return lost, counter
}

// Errors of XDP_REDIRECT and XDP_TX, by driver.
var xdpErrors = pattern.New(`(?i)xdp.*(?:redirect|tx|xmit).*(?:err|fail|drop|full)|(?:redirect|xdp).*err`)
