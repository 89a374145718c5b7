package resolve

// namesOfPorts has the printed name of each port with several names. With UDP, udpNames
// takes precedence.
var (
	namesOfPorts = map[uint16]string{
		21: "ftp", 25: "smtp", 37: "time", 43: "whois", 67: "bootps", 68: "bootpc", 80: "http", 88: "kerberos", 110: "pop3", 111: "sunrpc", 113: "auth",
		119: "nntp", 135: "epmap", 143: "imap", 162: "snmptrap", 210: "z3950", 464: "kpasswd", 465: "submissions",
		500: "isakmp", 512: "exec", 513: "login", 514: "shell", 515: "printer", 520: "router", 540: "uucp", 563: "nntps",
		587: "submission", 631: "ipp", 750: "kerberos-iv", 751: "kerberos-master", 752: "passwd-server", 754: "krb-prop",
		760: "krbupdate", 853: "domain-s", 1701: "l2tp", 1813: "radius-acct", 2049: "nfs", 3389: "ms-wbt-server",
		3478: "stun", 4500: "ipsec-nat-t", 5061: "sip-tls", 5222: "xmpp-client", 5269: "xmpp-server", 5353: "mdns", 5355: "llmnr", 5900: "vnc", 6667: "ircd", 7100: "font-service",
		8025: "spamd", 8080: "http-alt", 22273: "wnn6",
	}
	udpNames = map[uint16]string{21: "fsp", 512: "biff", 513: "who", 514: "syslog"}
)

// serviceName returns the built-in printed name of a port, or "".
func serviceName(port uint16, udp bool) string {
	if name := udpNames[port]; udp && name != "" {
		return name
	}
	if name := namesOfPorts[port]; name != "" {
		return name
	}
	for name, n := range services {
		if n == port {
			return name
		}
	}
	return ""
}

// services are the ports with names, from IANA's register and the names that BSD and
// Linux systems have used.
var services = map[string]uint16{
	"tcpmux": 1, "echo": 7, "discard": 9, "systat": 11, "daytime": 13, "netstat": 15, "qotd": 17, "chargen": 19,
	"ftp-data": 20, "fsp": 21, "ftp": 21, "ssh": 22, "telnet": 23, "mail": 25, "smtp": 25, "time": 37,
	"timserver": 37, "nameserver": 42, "nicname": 43, "whois": 43, "tacacs": 49, "domain": 53, "bootps": 67,
	"bootpc": 68, "tftp": 69, "gopher": 70, "finger": 79, "http": 80, "www": 80, "www-http": 80,
	"kerberos": 88, "kerberos-sec": 88, "krb5": 88, "hostnames": 101, "iso-tsap": 102, "acr-nema": 104,
	"csnet-ns": 105, "poppassd": 106, "rtelnet": 107, "pop2": 109, "pop-3": 110, "pop3": 110, "portmap": 111,
	"portmapper": 111, "rpcbind": 111, "sunrpc": 111, "auth": 113, "authentication": 113, "ident": 113, "tap": 113,
	"sftp": 115, "uucp-path": 117, "nntp": 119, "usenet": 119, "ntp": 123, "epmap": 135, "loc-srv": 135,
	"netbios-ns": 137, "netbios-dgm": 138, "netbios-ssn": 139, "imap": 143, "imap2": 143, "imap4": 143,
	"snmp": 161, "snmp-trap": 162, "snmptrap": 162, "cmip-man": 163, "cmip-agent": 164, "mailq": 174, "xdmcp": 177,
	"nextstep": 178, "bgp": 179, "irc": 194, "smux": 199, "at-rtmp": 201, "at-nbp": 202, "at-echo": 204,
	"at-zis": 206, "qmtp": 209, "wais": 210, "z3950": 210, "ipx": 213, "imap3": 220, "link": 245, "bgmp": 264,
	"ptp-event": 319, "ptp-general": 320, "rpki-rtr": 323, "rpki-rtr-tls": 324, "rpc2portmap": 369,
	"codaauth2": 370, "clearcase": 371, "ulistserv": 372, "ldap": 389, "svrloc": 427, "https": 443, "snpp": 444,
	"microsoft-ds": 445, "kpasswd": 464, "kpasswd5": 464, "smtps": 465, "ssmtp": 465, "submissions": 465,
	"urd": 465, "photuris": 468, "saft": 487, "ike": 500, "isakmp": 500, "biff": 512, "comsat": 512, "exec": 512,
	"login": 513, "who": 513, "whod": 513, "cmd": 514, "shell": 514, "syslog": 514, "printer": 515, "spooler": 515,
	"talk": 517, "ntalk": 518, "route": 520, "routed": 520, "router": 520, "ripng": 521, "timed": 525,
	"tempo": 526, "courier": 530, "conference": 531, "netnews": 532, "netwall": 533, "gdomap": 538, "uucp": 540,
	"uucpd": 540, "klogin": 543, "kshell": 544, "dhcpv6-client": 546, "dhcpv6-server": 547, "afpovertcp": 548,
	"rtsp": 554, "remotefs": 556, "rmonitor": 560, "nntps": 563, "snntp": 563, "imap4-ssl": 585, "msa": 587,
	"submission": 587, "syslog-conn": 601, "nqs": 607, "asf-rmcp": 623, "qmqp": 628, "cups": 631, "ipp": 631,
	"ldaps": 636, "ldp": 646, "tinc": 655, "iris-beep": 702, "silc": 706, "kerberos-adm": 749, "kerberos-iv": 750,
	"kerberos4": 750, "kerberos-master": 751, "kerberos_master": 751, "passwd-server": 752, "passwd_server": 752,
	"krb-prop": 754, "krb_prop": 754, "krbupdate": 760, "kreg": 760, "moira-db": 775, "moira-update": 777,
	"moira-ureg": 779, "dns-over-tls": 853, "domain-s": 853, "supfilesrv": 871, "rsync": 873, "ftps-data": 989,
	"ftps": 990, "telnets": 992, "imaps": 993, "pop3s": 995, "socks": 1080, "proofd": 1093, "rootd": 1094,
	"rmiregistry": 1099, "supfiledbg": 1127, "skkserv": 1178, "openvpn": 1194, "predict": 1210, "rmtcfg": 1236,
	"lotusnote": 1352, "ms-sql-s": 1433, "ms-sql-m": 1434, "ingreslock": 1524, "datametrics": 1645,
	"cert-responder": 1640, "sa-msg-port": 1646, "kermit": 1649, "groupwise": 1677, "l2f": 1701, "l2tp": 1701, "h323hostcall": 1720,
	"pptp": 1723, "radius": 1812, "radacct": 1813, "radius-acct": 1813, "ssdp": 1900, "hsrp": 1985,
	"cisco-sccp": 2000, "nfs": 2049, "nfsd": 2049, "gnunet": 2086, "rtcm-sc104": 2101, "zephyr-srv": 2102,
	"zephyr-clt": 2103, "zephyr-hm": 2104, "iprop": 2121, "gtp-control": 2123, "gtp-user": 2152, "eyetv": 2170,
	"cvspserver": 2401, "venus": 2430, "venus-se": 2431, "codasrv": 2432, "codasrv-se": 2433, "mon": 2583,
	"zebrasrv": 2600, "zebra": 2601, "ripd": 2602, "ripngd": 2603, "ospfd": 2604, "bgpd": 2605, "ospf6d": 2606,
	"ospfapi": 2607, "isisd": 2608, "dict": 2628, "gsiftp": 2811, "gpsd": 2947, "gds-db": 3050, "icpv2": 3130,
	"isns": 3205, "iscsi-target": 3260, "net-assistant": 3283, "mysql": 3306, "ms-wbt-server": 3389, "rdp": 3389,
	"stun": 3478, "turn": 3478, "nut": 3493, "teredo": 3544, "distcc": 3632, "daap": 3689, "svn": 3690,
	"bfd-control": 3784, "bfd-echo": 3785, "sieve": 4190, "rwhois": 4321, "epmd": 4369, "remctl": 4373,
	"ntske": 4460, "ipsec-msft": 4500, "ipsec-nat-t": 4500, "fax": 4557, "hylafax": 4559, "iax": 4569,
	"bfd-multi-ctl": 4784, "vxlan": 4789, "radmin-port": 4899, "munin": 4949, "sip": 5060, "sip-tls": 5061,
	"sips": 5061, "xmpp-client": 5222, "xmpp-server": 5269, "cfengine": 5308, "nat-pmp": 5351, "mdns": 5353,
	"multicastdns": 5353, "llmnr": 5355, "hostmon": 5355, "postgresql": 5432, "matter": 5540, "rplay": 5555, "freeciv": 5556,
	"nrpe": 5666, "nsca": 5667, "amqps": 5671, "amqp": 5672, "vnc": 5900, "rfb": 5900, "vnc-server": 5900,
	"cvsup": 5999, "x11": 6000, "x11-1": 6001, "x11-2": 6002, "x11-3": 6003, "x11-4": 6004, "x11-5": 6005,
	"x11-6": 6006, "x11-7": 6007, "gnutella-svc": 6346, "gnutella-rtr": 6347, "redis": 6379, "syslog-tls": 6514,
	"sane-port": 6566, "ircd": 6667, "ircu": 6667, "babel": 6696, "ircs-u": 6697, "afs3-fileserver": 7000,
	"afs3-callback": 7001, "afs3-prserver": 7002, "afs3-vlserver": 7003, "afs3-kaserver": 7004,
	"afs3-volser": 7005, "afs3-errors": 7006, "afs3-bos": 7007, "afs3-update": 7008, "afs3-rmtsys": 7009,
	"font-service": 7100, "xfs": 7100, "spamd": 8025, "spamd-sync": 8025, "spamd-cfg": 8026, "http-alt": 8080,
	"webcache": 8080, "tproxy": 8081, "omniorb": 8088, "privoxy": 8118, "puppet": 8140, "jetdirect": 9100,
	"bacula-dir": 9101, "bacula-fd": 9102, "bacula-sd": 9103, "git": 9418, "webmin": 10000, "zabbix-agent": 10050,
	"zabbix-trapper": 10051, "amanda": 10080, "kamanda": 10081, "amandaidx": 10082, "amidxtape": 10083,
	"nbd": 10809, "hkp": 11371, "wnn4": 22273, "wnn6": 22273, "binkp": 24554, "csync2": 30865, "wireguard": 51820,
	"fido": 60179,
	// OpenBSD's, FreeBSD's and macOS'
	"dhcps": 67, "dhcpc": 68, "asip-webadmin": 311, "vslmp": 312, "whoami": 565, "ipcserver": 600, "netinfo-local": 1033,
	"webobjects": 1085, "msnp": 1863, "knetd": 2053, "radsec": 2083, "eklogin": 2105, "ekshell": 2106, "rkinit": 2108, "kx": 2111,
	"kip": 2112, "kauth": 2120, "eppc": 3031, "ndl-aas": 3128, "apple-sasl": 3659, "xgrid": 4111, "ipfix": 4739,
	"airport-admin": 5009, "jabber-client": 5222, "jabber-server": 5269, "presence": 5298, "mdnsresponder": 5354,
	"pcanywheredata": 5631, "pcanywherestat": 5632, "canna": 5680, "couchdb": 5984, "wbem-http": 5988, "wbem-https": 5989,
	"sflow": 6343, "icb": 7326, "dhcpd-sync": 8067, "memcache": 11211, "hunt": 26740, "mongodb": 27017,
}
