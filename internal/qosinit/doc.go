// Package qosinit writes a configuration of queues for a line to the internet: for what
// weir qos init is told, a text that weir check accepts and people can change.
package qosinit
