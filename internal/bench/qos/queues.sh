#!/bin/sh
# Queues of the kernel for one line, as an administrator sets them up: what leaves by DEVICE,
# and on an intermediate device (IFB) what comes in by it. Packets count with what Ethernet
# adds to them.
#
#   htb       HTB, and in its class the best queue that this kernel has: fq_codel, sfq, pfifo
#   fq_codel  TBF, and fq_codel in it
#   cake      CAKE alone
#
# Usage: queues.sh start|stop DEVICE KBIT htb|fq_codel|cake
set -eu
device=$2
kbit=$3
kind=$4
ifb=qosifb0

# A tenth of a second of full packets, but not fewer than 20.
packets=$((kbit / 120))
[ "$packets" -ge 20 ] || packets=20

leaf() { # DEVICE PARENT
	tc qdisc add dev "$1" parent "$2" fq_codel 2>/dev/null ||
		tc qdisc add dev "$1" parent "$2" sfq perturb 10 2>/dev/null ||
		tc qdisc add dev "$1" parent "$2" pfifo limit "$packets"
}

tree() { # DEVICE
	case $kind in
	htb)
		tc qdisc add dev "$1" root handle 1: htb default 10
		tc class add dev "$1" parent 1: classid 1:1 htb rate "${kbit}kbit" overhead 24 mpu 84
		tc class add dev "$1" parent 1:1 classid 1:10 htb rate "${kbit}kbit" overhead 24 mpu 84
		leaf "$1" 1:10
		;;
	fq_codel)
		tc qdisc add dev "$1" root handle 1: tbf rate "${kbit}kbit" overhead 24 mpu 84 burst "$((kbit / 8 + 3000))" latency 300ms
		tc qdisc add dev "$1" parent 1: handle 2: fq_codel
		;;
	cake)
		tc qdisc add dev "$1" root cake bandwidth "${kbit}kbit" ethernet besteffort dual-srchost
		;;
	esac
}

case $1 in
start)
	tree "$device"
	ip link add name $ifb type ifb
	ip link set $ifb up
	tc qdisc add dev "$device" handle ffff: ingress
	tc filter add dev "$device" parent ffff: protocol all u32 match u32 0 0 \
		action mirred egress redirect dev $ifb
	tree $ifb
	;;
stop)
	tc qdisc del dev "$device" root 2>/dev/null || true
	tc qdisc del dev "$device" ingress 2>/dev/null || true
	ip link del $ifb 2>/dev/null || true
	;;
esac
