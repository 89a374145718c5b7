package audit

import "weir/internal/pattern"

// toldForm is a line of FreeBSD's sysctl -a.
var toldForm = pattern.New(`^([A-Za-z_][\w.%-]*): (.*)$`)

// tells matches names in the output of sysctl -a that only tell something: the system, the machine, and
// counters.
var tells = pattern.New(`^(?:` +
	// FreeBSD
	`kern\.(?:ostype|osrelease|osrevision|osreldate|version|ident|boottime|bootfile|clockrate|cp_times?|openfiles|numvnodes|freevnodes|lastpid|features\..*|geom\.conf(?:txt|xml|dot)|ipc\.num\w+)|` +
	`hw\.(?:model|ncpu|physmem|usermem|realmem|availpages|machine|machine_arch|pagesize|byteorder|clockrate|floatingpoint|ibrs_active|mds_disable_state)|` +
	`vm\.(?:loadavg|vmtotal|stats\..*|uma\..*)|` +
	`net\.inet6?\.(?:ip6?|tcp|udp|icmp6?|igmp)\.(?:stats|intr_queue_drops|pcblist|pcbcount|states|fragpackets|frag6_nfrag\w*)|` +
	`net\.inet\.tcp\.(?:hostcache\.(?:count|list)|syncache\.count|functions_available|cc\.available)|` +
	`net\.inet\.ip\.dummynet\.(?:searches|search_steps|curr_time|tick_\w+|io_pkt\w*|queue_count|si_count|fsk_count|schk_count)|` +
	`net\.isr\.(?:work|proto|workstream)|net\.pf\.(?:states_count|request_count)|` +
	`dev\.[a-z0-9_]+\.(?:[0-9]+\.)?(?:%\w+|mac_stats\..*|iflib\.driver_version)|` +
	`dev\.[a-z0-9_]+\.[0-9]+\.queue_?(?:[rt]x_)?[0-9]+\.(?:[rt]xd_(?:head|tail)|[rt]x_(?:irq|packets|bytes|discarded|copies)|lro_\w+|irqs|no_desc_avail)|` +
	// Linux
	`kernel\.(?:ostype|osrelease|version|arch|core_modes|ns_last_pid|cap_last_cap|bootloader_\w+|pty\.nr|random\.(?:boot_id|uuid|entropy_avail|poolsize))|` +
	`fs\.(?:file-nr|inode-nr|inode-state|dentry-state|aio-nr|quota\..*)|` +
	`net\.netfilter\.nf_conntrack_count|net\.core\.netdev_rss_key|net\.ipv4\.(?:tcp_available_(?:congestion_control|ulp)|tcp_ehash_entries)|dev\.cdrom\.info` +
	`)$`)
