// Package hostinfo says what has to be known of a machine to judge a figure that
// was measured on it: CPU, kernel, mitigations, network cards and how they are
// set.
package hostinfo
