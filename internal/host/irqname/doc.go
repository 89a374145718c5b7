// Package irqname tells which interrupts are a network card's, and which of its queues
// receives by which, from the names that drivers give them in /proc/interrupts. It reads
// nothing and knows no system.
package irqname
