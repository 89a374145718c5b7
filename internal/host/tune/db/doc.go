// Package db is the database behind weir tune: settings of kernels, drivers, firmware and
// firewalls, with the effect of each, its cost, and how far that is proven.
//
// Its records are the YAML files in the folder records, embedded in the program, one file
// for each area. The settings of five public guides for FreeBSD, pfSense, OpenBSD, IPFire
// and Check Point form a table. Each row of it has exactly one record ([Record.Row]);
// weir's own additions have no row. places.yaml says once for each place (a file, a menu)
// how something is set there, for all records of that place.
package db
