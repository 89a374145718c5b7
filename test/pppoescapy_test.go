package test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/fw/control"
	"weir/internal/lab"
	"weir/internal/testenv"
	"weir/test/lib"
)

// scapyConcentrator is a concentrator that scapy makes, from its own descriptions of the protocols. Packets of the session go to
// the device isp0. It asks by PAP or by CHAP, which its argument says, and reads orders line by line.
const scapyConcentrator = `
import fcntl, hashlib, os, select, struct, sys
from scapy.all import *
from scapy.layers.ppp import *

method, mac, wire = sys.argv[1], get_if_hwaddr("eth0"), conf.L2socket(iface="eth0")
tun = os.open("/dev/net/tun", os.O_RDWR)
fcntl.ioctl(tun, 0x400454ca, struct.pack("16sH", b"isp0", 0x1001))
for line in ("link set isp0 mtu 1492 up", "addr add 192.0.2.1/32 dev isp0", "route add 198.51.100.0/24 dev isp0"):
    os.system("ip " + line)
session, client, address, magic, challenge, priority = 0x3000, None, "198.51.100.20", 0x5ca9, b"", 0
auth = {"pap": PPP_LCP_Auth_Protocol_Option(), "chap": PPP_LCP_Auth_Protocol_Option(auth_protocol=0xc223, algorithm=5)}[method]

def say(*words):
    print(*words, flush=True)

def frame(kind): # with a priority, and no VLAN, once it is told so
    if priority:
        return Ether(src=mac, dst=client, type=0x8100) / Dot1Q(prio=priority, vlan=0, type=kind)
    return Ether(src=mac, dst=client, type=kind)

def discover(code, id, tags):
    wire.send(frame(0x8863) / PPPoED(code=code, sessionid=id) / Raw(tags))

def send(proto, packet):
    wire.send(frame(0x8864) / PPPoE(sessionid=session) / Raw(struct.pack("!H", proto)) / packet)

def tag(kind, value):
    return struct.pack("!HH", kind, len(value)) + value

def option(packet, kind):
    return [o for o in packet.options if getattr(o, "type", None) == kind]

def discovery(code, tags):
    global session
    kept = b"".join(tag(k, v) for k, v in tags if k in (0x101, 0x103, 0x104))
    if code == 0x09:
        discover(0x07, 0, kept + tag(0x102, b"scapy") + tag(0x104, b"a cookie"))
    elif code == 0x19:
        session += 1
        discover(0x65, session, kept)
    elif code == 0xa7:
        say("PADT")

def tags(b):
    found = []
    while len(b) >= 4:
        kind, length = struct.unpack("!HH", b[:4])
        found.append((kind, b[4:4 + length]))
        b = b[4 + length:]
    return found

def ipcp():
    send(0x8021, PPP_IPCP(code=1, id=1, options=[PPP_IPCP_Option_IPAddress(data="192.0.2.1")]))

def control(proto, body):
    global challenge
    if proto == 0xc021:
        p = PPP_LCP(body)
        if p.code == 1:
            p.code = 2
            send(proto, p)
            send(proto, PPP_LCP_Configure(code=1, id=1, options=[PPP_LCP_MRU_Option(max_recv_unit=1492), auth, PPP_LCP_Magic_Number_Option(magic_number=magic)]))
        elif p.code == 2 and method == "chap":
            challenge = os.urandom(16)
            send(0xc223, PPP_CHAP_ChallengeResponse(code=1, id=9, value=challenge, optional_name=b"scapy"))
        elif p.code == 5:
            send(proto, PPP_LCP_Terminate(code=6, id=p.id))
        elif p.code == 9:
            send(proto, PPP_LCP_Echo(code=10, id=p.id, magic_number=magic, data=p.data))
    elif proto == 0xc023:
        p = PPP_PAP_Request(body)
        good = (p.username, p.password) == (b"me", sys.argv[2].encode())
        send(proto, PPP_PAP_Response(code=2 if good else 3, id=p.id, message=b""))
        say("PAP", good)
        ipcp()
    elif proto == 0xc223:
        p = PPP_CHAP_ChallengeResponse(body)
        good = p.value == hashlib.md5(bytes([9]) + sys.argv[2].encode() + challenge).digest()
        send(proto, PPP_CHAP(code=3 if good else 4, id=p.id, data=b""))
        say("CHAP", good)
        ipcp()
    elif proto == 0x8021:
        p = PPP_IPCP(body)
        if p.code == 1:
            del p.len # it is computed anew
            odd = [o for o in p.options if o.type != 3]
            if odd:
                p.code, p.options = 4, odd
            elif option(p, 3)[0].data != address:
                p.code, p.options = 3, [PPP_IPCP_Option_IPAddress(data=address)]
            else:
                p.code = 2
            send(proto, p)
    elif proto == 0x8057:
        send(0xc021, PPP_LCP_Protocol_Reject(code=8, id=3, rejected_protocol=proto, rejected_information=PPP_LCP(body)))

def order(words):
    global address, priority
    if words[0] == "address":
        address = words[1]
    elif words[0] == "priority":
        priority = int(words[1])
    elif words[0] == "end":
        discover(0xa7, session, b"")
    elif words[0] == "junk": # well-made packets with fields at random, and random ones
        for kind in (PPP_LCP, PPP_LCP_Configure, PPP_LCP_Echo, PPP_LCP_Code_Reject, PPP_LCP_Protocol_Reject):
            for i in range(40):
                p = fuzz(kind(code=random.choice([2, 3, 4, 7, 8, 10, 11, 99])))
                send(0xc021, Raw(bytes(p)))
        for proto in (0xc023, 0xc223, 0x8021, 0x8057, 0x80fd, 0xc025, 0x0000, 0xffff):
            for i in range(40):
                send(proto, Raw(os.urandom(random.randrange(60))))
        for code in (0x07, 0x65, 0x00, 0xd3):
            for i in range(40):
                discover(code, random.randrange(65536), os.urandom(random.randrange(100)))
    say("done", *words)

say("ready")
while True:
    for ready in select.select([wire, tun, 0], [], [])[0]:
        if ready == 0:
            words = os.read(0, 1000).decode().split()
            if not words:
                sys.exit()
            order(words)
        elif ready == tun:
            b = os.read(tun, 2000)
            if client and b[0] >> 4 == 4:
                send(0x21, Raw(b))
        else:
            b, place = wire.ins.recvfrom(2000)
            if place[2] == 4: # our own
                continue
            kind, length = struct.unpack("!H", b[12:14])[0], struct.unpack("!H", b[18:20])[0]
            if kind == 0x8863:
                client = ":".join("%02x" % c for c in b[6:12])
                discovery(b[15], tags(b[20:20 + length]))
            elif kind == 0x8864 and struct.unpack("!H", b[16:18])[0] == session:
                proto, body = struct.unpack("!H", b[20:22])[0], b[22:20 + length]
                if proto == 0x21:
                    os.write(tun, body)
                else:
                    control(proto, body)
`

// scapyPeer is that concentrator in the host wan.
type scapyPeer struct {
	*lib.Process
	orders *os.File
}

// order has the concentrator do something.
func (p *scapyPeer) order(b *lib.Box, words string) {
	b.Helper()
	if _, err := fmt.Fprintln(p.orders, words); err != nil {
		b.Fatal(err)
	}
	b.AwaitSaid(p.Process, "done "+words)
}

//	lan ── lan0 fw wan0 ══ ppp0 in a PPPoE session ══ wan, a concentrator of scapy
//
// Who has made the frames of the other end knows nothing of weir: sessions by PAP and by CHAP, traffic, junk, and another address.
func TestPPPoEScapy(t *testing.T) {
	testenv.NeedProgram(t, "scapy")
	for _, method := range []string{"pap", "chap"} {
		t.Run(method, func(t *testing.T) {
			hooks := map[string]func(*testing.T, func(*lib.Box)){"pap": weir.UnderTCX, "chap": weir.Both}[method]
			hooks(t, func(b *lib.Box) { scapySession(b, method) })
		})
	}
}

func scapySession(b *lib.Box, method string) {
	b.Helper()
	const secret = "thursday-42-ox"
	password, script := filepath.Join(b.TempDir(), "password"), filepath.Join(b.TempDir(), "concentrator.py")
	for file, text := range map[string]string{password: secret + "\n", script: scapyConcentrator} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	b.IP(lab.FW, "route del default", "-6 route del default", "address flush dev wan0")
	b.IP(lab.WAN, "address flush dev eth0")
	orders := filepath.Join(b.TempDir(), "orders")
	b.Run(lab.WAN, "mkfifo", orders)
	p := &scapyPeer{Process: b.Start(lab.WAN, "sh", "-c", fmt.Sprintf("exec /usr/bin/python3 %s %s %s <>%s", script, method, secret, orders))}
	b.AwaitSaid(p.Process, "ready")
	var err error
	if p.orders, err = os.OpenFile(orders, os.O_WRONLY, 0); err != nil {
		b.Fatal(err)
	}
	defer p.orders.Close()
	b.WeirRun(b.Rules(fmt.Sprintf(`pppoe ppp0 on wan0 user me password file "%s"
match out on ppp0 inet from (lan0:network) nat-to (ppp0)
block
pass in on lan0
pass out on ppp0
`, password)))
	awaits := func(address string) {
		b.Helper()
		b.Until(lib.Scaled(15*time.Second), "ppp0 has "+address, func() bool {
			s := pppoeStatus(b)
			return s.State == control.PPPoEUp && s.IPv4.String() == address
		})
		b.Ping(lab.LAN, lib.ProviderPeer, 3)
	}
	awaits("198.51.100.20")
	b.AwaitSaid(p.Process, strings.ToUpper(method)+" True")
	b.Listen(lab.WAN, 5201, "iperf3", "-s")
	for _, way := range []string{"-b0", "-R"} {
		b.Logf("%s:%s", way, lastOf(b.Run(lab.LAN, "iperf3", "-c", lib.ProviderPeer, "-n", "4M", way, "-f", "m")))
	}
	b.Tell("junk of the concentrator", func(b *lib.Box) {
		p.order(b, "junk")
		awaits("198.51.100.20")
	})
	b.Tell("another address under UDP that never rests", func(b *lib.Box) {
		echo := b.Start(lab.WAN, "/usr/bin/python3", "-u", "-c", `
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("192.0.2.1", 5060))
print("ready")
while True:
    print(s.recvfrom(100)[1][0])`)
		b.AwaitSaid(echo, "ready")
		phone := b.Start(lab.LAN, "/usr/bin/python3", "-c", `
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("", 5060))
while True:
    s.sendto(b"register", ("192.0.2.1", 5060))
    time.sleep(0.1)`)
		b.AwaitSaid(echo, "198.51.100.20")
		p.order(b, "address 198.51.100.30")
		p.order(b, "end")
		awaits("198.51.100.30")
		b.AwaitSaid(echo, "198.51.100.30")
		phone.Kill()
	})
	b.Tell("frames with a priority and no VLAN", func(b *lib.Box) {
		before := pppoeStatus(b).Session
		dump := b.Start(lab.FW, "tcpdump", "-n", "-l", "-e", "-i", "wan0")
		b.AwaitSaid(dump, "listening on")
		p.order(b, "priority 6")
		p.order(b, "end")
		b.Until(lib.Scaled(15*time.Second), "there is another session", func() bool { s := pppoeStatus(b); return s.State == control.PPPoEUp && s.Session != before })
		awaits("198.51.100.30")
		b.AwaitSaid(dump, "vlan 0, p 6")
		dump.Kill()
		b.Logf("from the provider:%s", lastOf(b.Run(lab.LAN, "iperf3", "-c", lib.ProviderPeer, "-n", "4M", "-R", "-f", "m")))
	})
}
