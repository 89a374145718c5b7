// Package killpoint marks the moments after weir has changed something that outlives it:
// a pin, a link, a sysctl, a file, or something that running programs read. A test can
// kill the process at any of them with SIGKILL, so no error path runs. A real death at
// any time falls between two of these moments.
package killpoint
