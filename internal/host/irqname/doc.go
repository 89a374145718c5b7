// Package irqname finds out which interrupts belong to a network card, and which of its
// queues each of them serves, from the drivers' names in /proc/interrupts. It reads no
// files and knows no system.
package irqname
