package target

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"weir/internal/host/tune/arith"
	"weir/internal/host/tune/db"
)

// Inputs are what the lines are computed from. Zero means unknown.
type Inputs struct {
	Role   db.Role
	Link   uint64 // bit/s
	RTT    time.Duration
	Driver string // driver of the cards, such as igb or ix
	Cores  int    // without hyper-threads
	Ports  int    // number in use
	PPPoE  bool
	Burst  int
	Accept int
}

// advised is a setting that may be written for a role at a place, if wanted agrees. Its
// reasons are in the database under record.
type advised struct {
	record string // the database's key
	key    string // keys.yaml's; "" if it is record
	place  string // loader.conf, sysctl.conf or rc.conf
	role   db.Role
	wanted func(t Target, in *Inputs) bool
	iflib  bool                    // only for drivers based on iflib(9)
	value  func(in *Inputs) string // nil: the record's own value
	least  bool                    // a higher default stays
	needed bool                    // the role needs it, whatever its grade
	own    bool                    // it belongs in the user's own line, even if asked for by name
	// try returns why the setting is a comment, to be tried. It returns "", or is
	// nil, if it is not.
	try func(t Target, in *Inputs) string
}

func always(Target, *Inputs) bool           { return true }
func pppoe(_ Target, in *Inputs) bool       { return in.PPPoE }
func driven(_ Target, in *Inputs) bool      { return in.Driver != "" }
func queues(_ Target, in *Inputs) bool      { return in.Driver != "" && in.Cores > 0 && in.Ports > 0 }
func plainFreeBSD(t Target, _ *Inputs) bool { return t.Family() == "freebsd" }
func cards(t Target, in *Inputs) bool       { return plainFreeBSD(t, in) && in.Driver != "" }
func longPath(_ Target, in *Inputs) bool    { return in.Link > 0 && in.RTT > 0 }
func bursts(_ Target, in *Inputs) bool      { return in.Burst > 0 }

// igbLimits belong to the list for pfSense 2.4.5 only. From 2.5 on, the option does not
// exist.
func igbLimits(t Target, in *Inputs) bool {
	return t.Name == "pfsense-2.4.5" && (in.Driver == "igb" || in.Driver == "")
}

func fixed(value string) func(*Inputs) string { return func(*Inputs) string { return value } }

func queueCount(in *Inputs) string { return strconv.Itoa(arith.QueuesWanted(in.Cores, in.Ports)) }

// socketBuffer returns a connection's buffer in bytes.
func socketBuffer(in *Inputs) uint64 { return arith.SocketBuffer(in.Link, in.RTT) }

// socketLimit returns kern.ipc.maxsockbuf in bytes for such a buffer.
func socketLimit(in *Inputs) uint64 { return arith.SocketLimit(socketBuffer(in)) }

func buffer(in *Inputs) string { return strconv.FormatUint(socketBuffer(in), 10) }

func limit(in *Inputs) string { return strconv.FormatUint(socketLimit(in), 10) }

func backlog(in *Inputs) string { return strconv.Itoa(arith.Backlog(in.Burst, in.Accept)) }

// advice is everything that is ever written, in the order of the files.
var advice = []advised{
	{record: "net.pf.states_hashsize", place: "loader.conf", role: db.Forwarder, wanted: always, try: hashGrew},
	{record: "net.pf.source_nodes_hashsize", place: "loader.conf", role: db.Forwarder, wanted: always, value: fixed("1048576")},
	{record: "dev.igb.N.iflib.override_nrxqs", key: "dev.DRIVER.N.iflib.override_nrxqs", place: "loader.conf", role: db.Forwarder, wanted: queues, iflib: true, value: queueCount, try: driverDecides},
	{record: "dev.igb.N.iflib.override_ntxqs", key: "dev.DRIVER.N.iflib.override_ntxqs", place: "loader.conf", role: db.Forwarder, wanted: queues, iflib: true, value: queueCount, try: driverDecides},
	{record: "hw.igb.rx_process_limit", place: "loader.conf", role: db.Forwarder, wanted: igbLimits, value: fixed("-1")},
	{record: "hw.igb.tx_process_limit", place: "loader.conf", role: db.Forwarder, wanted: igbLimits, value: fixed("-1")},
	{record: "net.isr.maxthreads", place: "loader.conf", role: db.Forwarder, wanted: pppoe, value: fixed("-1"), try: withRSS},
	{record: "net.isr.bindthreads", place: "loader.conf", role: db.Forwarder, wanted: pppoe, value: fixed("1")},
	{record: "net.inet.ip.redirect", place: "sysctl.conf", role: db.Forwarder, wanted: always, value: fixed("0")},
	{record: "net.inet6.ip6.redirect", place: "sysctl.conf", role: db.Forwarder, wanted: always, value: fixed("0")},
	{record: "dev.DRIVER.N.iflib.tx_abdicate", place: "sysctl.conf", role: db.Forwarder, wanted: driven, iflib: true},
	{record: "net.isr.dispatch", place: "sysctl.conf", role: db.Forwarder, wanted: pppoe, value: fixed("deferred")},
	{record: "net.inet.ip.intr_queue_maxlen", place: "sysctl.conf", role: db.Forwarder, wanted: pppoe, value: fixed("3000")},
	{record: "gateway_enable", place: "rc.conf", role: db.Forwarder, wanted: plainFreeBSD, value: fixed("YES"), needed: true},
	{record: "pf_enable", place: "rc.conf", role: db.Forwarder, wanted: plainFreeBSD, value: fixed("YES"), try: needsRules},
	{record: "-lro", key: "ifconfig_DRIVERN", place: "rc.conf", role: db.Forwarder, wanted: cards, value: fixed("... -lro"), try: withAddresses, own: true},
	{record: "-tso -vlanhwtso", key: "ifconfig_DRIVERN", place: "rc.conf", role: db.Forwarder, wanted: cards, value: fixed("... -tso -vlanhwtso"), try: withAddresses, own: true},
	{record: "kern.ipc.maxsockbuf", place: "sysctl.conf", role: db.Endpoint, wanted: longPath, value: limit, least: true},
	{record: "net.inet.tcp.recvbuf_max", place: "sysctl.conf", role: db.Endpoint, wanted: longPath, value: buffer, least: true},
	{record: "net.inet.tcp.sendbuf_max", place: "sysctl.conf", role: db.Endpoint, wanted: longPath, value: buffer, least: true},
	{record: "kern.ipc.soacceptqueue", place: "sysctl.conf", role: db.Endpoint, wanted: bursts, value: backlog, least: true},
}

// withAddresses is about options of interfaces. The firewalls have them in a menu, and
// they are off by default.
func withAddresses(Target, *Inputs) string {
	return "An interface's line also has its addresses: add the options to your own line"
}

// hashGrew is about pf's states. The measurement began with the table size of older
// versions.
func hashGrew(t Target, _ *Inputs) string {
	if t.Major() >= 13 {
		return "Since FreeBSD 13 the default is four times as large as when this was measured"
	}
	return ""
}

func needsRules(Target, *Inputs) string { return "pf needs a rule set first, in /etc/pf.conf" }

// driverDecides is about queues. No measurement says that fewer than the driver's own
// number are better.
func driverDecides(Target, *Inputs) string {
	return "By default the driver uses as many queues as there are cores, and no measurement suggests fewer"
}

// withRSS is about the threads of netisr. What was measured is a kernel with option RSS, and
// not PPPoE.
func withRSS(Target, *Inputs) string {
	return "This was measured in a kernel with option RSS, and not with PPPoE"
}

// setTo returns the value to write.
func (a *advised) setTo(r *db.Record, in *Inputs) string {
	if a.value == nil {
		return r.Value
	}
	return a.value(in)
}

// suffices reports whether a target's default exceeds the value.
func (a *advised) suffices(standard, value string) bool {
	more, err := strconv.ParseUint(standard, 10, 64)
	if err != nil || !a.least {
		return false
	}
	wanted, err := strconv.ParseUint(value, 10, 64)
	return err == nil && more > wanted
}

// comment returns why a setting is only a comment, "" if it is not. Nothing of unproven
// effect is written to take effect.
func (a *advised) comment(r *db.Record, t Target, in *Inputs) string {
	if a.try != nil {
		if why := a.try(t, in); why != "" {
			return why
		}
	}
	switch grade := r.GradeFor(in.Driver); {
	case a.needed:
	case in.Driver != "" && grade == "":
		return notFor(r, in.Driver)
	case r.Grade() == db.Folklore || grade == db.Folklore:
		return "Only a guide recommends it"
	}
	return ""
}

// notFor says that no evidence shows a setting's effect for a driver's cards.
func notFor(r *db.Record, driver string) string {
	for i := range r.Evidence {
		if e := &r.Evidence[i]; len(e.Drivers) > 0 && e.Covers(driver) {
			return "For " + driver + ", a measurement found " + e.Says
		}
	}
	return "Nothing was measured for " + driver
}

// keyName returns the name of a setting in keys.yaml.
func (a *advised) keyName() string {
	return cmp.Or(a.key, a.record)
}

// reasons returns the record with a setting's reasons on a target. The target's own
// record comes before FreeBSD's, because it may differ.
func (a *advised) reasons(d *db.DB, t Target) (*db.Record, error) {
	records := d.ByKey(a.record)
	for _, system := range []string{t.Family(), "freebsd"} {
		for _, r := range records {
			if r.System == system {
				return r, nil
			}
		}
	}
	if len(records) == 0 {
		return nil, fmt.Errorf("the database has no %s", a.record)
	}
	return records[0], nil
}
