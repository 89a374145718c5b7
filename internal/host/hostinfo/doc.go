// Package hostinfo describes the machine on which a figure was measured: CPU, kernel,
// mitigations, and network cards with their settings.
package hostinfo
