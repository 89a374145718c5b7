#!/bin/sh
# Queues of the kernel as an administrator sets them up, to compare with: HTB where packets
# leave for the internet, and HTB on an intermediate device (IFB) for what comes in.
#
# It rebuilds what IPFire makes for a line: one flat tree in each direction, with the classes
# 101 to 120 and 200 to 220, a tenth of the line guaranteed to each class up and a twentieth
# down, 1 kbit/s to what is in no other class, and all of the line as the ceiling of each; and
# an IFB that is called imq0, as before it there was a driver of this name. qos.conf has the same
# classes for weir. The script is new: none of IPFire's lines is in it.
#
# Where it differs:
#   filters  IPFire's packets get a mark in iptables, which conntrack keeps for what comes
#            back (connmark), and the mark chooses the class. Here u32 filters look at the
#            packet. They cost less and need no conntrack, and they see both directions alike:
#            what is compared is the queues, and conntrack is a path of its own in the benchmark.
#   leaves   IPFire's are CAKE, and were fq_codel until Core Update 163. Here they are fq_codel, with
#            pfifo where the kernel lacks it (as on the machine of docs/measuring.md): both cost
#            less than CAKE. Nothing is dropped in the measurement, so they only pass packets on.
#   classes  Those that have no packets in the benchmark (acknowledgements) are left out.
#   IPv4     IPFire's filters are for IPv4 alone, and so are these. The benchmark sends IPv4.
# All of these favour the kernel.
#
# Usage: htb.sh start|stop DEVICE KBIT
set -eu
device=$2
kbit=$3
ifb=imq0

# A class keeps its packets in the best queue that this kernel has.
leaf() { # DEVICE PARENT
	tc qdisc add dev "$1" parent "$2" fq_codel limit 10240 quantum 1514 2>/dev/null ||
		tc qdisc add dev "$1" parent "$2" pfifo limit 10240
}

# One flat tree: the line's rate, and below it a guarantee for each class. Each may have all.
tree() { # DEVICE HANDLE FIRST SHARE
	tc qdisc add dev "$1" root handle "$2:" htb default "$(($3 + 10))"
	tc class add dev "$1" parent "$2:" classid "$2:1" htb rate "${kbit}kbit"
	class "$1" "$2" "$(($3 + 2))" 1 "$((kbit / $4))"  # voice
	class "$1" "$2" "$(($3 + 3))" 2 "$((kbit / $4))"  # VPN
	class "$1" "$2" "$(($3 + 4))" 3 "$((kbit / $4))"  # web
	class "$1" "$2" "$(($3 + 10))" 6 1                # everything else
	class "$1" "$2" "$(($3 + 20))" 7 1                # peer to peer
}

class() { # DEVICE HANDLE CLASS PRIO GUARANTEE
	tc class add dev "$1" parent "$2:1" classid "$2:$3" htb rate "$5kbit" ceil "${kbit}kbit" prio "$4"
	leaf "$1" "$2:$3"
}

filter() { # DEVICE HANDLE CLASS MATCH...
	at="$1 parent $2:0 protocol ip prio 1"
	to="$2:$3"
	shift 3
	# shellcheck disable=SC2086
	tc filter add dev $at u32 "$@" flowid "$to"
}

# Which packets these are. side: of the far port.
filters() { # DEVICE HANDLE FIRST SIDE
	filter "$1" "$2" "$(($3 + 2))" match ip tos 0xb8 0xfc
	filter "$1" "$2" "$(($3 + 3))" match ip protocol 17 0xff match ip "$4" 1194 0xffff
	filter "$1" "$2" "$(($3 + 4))" match ip protocol 6 0xff match ip "$4" 80 0xffff
	filter "$1" "$2" "$(($3 + 4))" match ip protocol 6 0xff match ip "$4" 443 0xffff
	filter "$1" "$2" "$(($3 + 20))" match ip protocol 6 0xff match ip "$4" 6881 0xffff
}

case $1 in
start)
	tree "$device" 1 100 10
	filters "$device" 1 100 dport
	ip link add name $ifb type ifb
	ip link set $ifb up
	tc qdisc add dev "$device" handle ffff: ingress
	tc filter add dev "$device" parent ffff: protocol all u32 match u32 0 0 \
		action mirred egress redirect dev $ifb
	tree $ifb 2 200 20
	filters $ifb 2 200 sport
	;;
stop)
	tc qdisc del dev "$device" root 2>/dev/null || true
	tc qdisc del dev "$device" ingress 2>/dev/null || true
	ip link del $ifb 2>/dev/null || true
	;;
esac
