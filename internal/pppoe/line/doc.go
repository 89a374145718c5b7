// Package line makes the devices of PPPoE sessions, and the programs that put the packets of
// a device into its session and take them out. All of it outlives the process.
package line
