package doctor

// manyLogged is how many packets must have been logged in the last hour (as far as the kernel's log, which is
// short, still has them) to count: firewalls log a few, and with a limit.
const manyLogged = 1000

// loggedPackets is about lines for single packets: what it finds is in the kernel's log.
func loggedPackets(v *view) (o outcome) {
	if v.Log == nil {
		o.absent = "the kernel's log was not read"
	}
	return o
}

// silentConsole reports whether the console does not show what the kernel says of packets, which has the level of a
// warning: then a line costs little.
func (v *view) silentConsole() bool {
	const warning = 4
	level, known := v.number("kernel.printk")
	return !known || level <= warning
}
