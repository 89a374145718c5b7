// Package qoscost measures what queues cost a router that forwards: weir's, and those of
// the kernel (HTB, and HTB on an IFB) as an administrator sets them up. It also tells the
// story of a line whose rate fell to a third when its queues were turned on, with today's
// kernel and with weir.
package qoscost
