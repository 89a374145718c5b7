// Package db is the database behind weir tune: settings of kernels, drivers,
// firmware and firewalls, what each does, what it costs, and how far that is
// proven.
//
// Its records are the YAML files in the folder records, embedded in the program,
// one file for each area. Each row of the table that five public guides for
// FreeBSD, pfSense, OpenBSD, IPFire and Check Point gave rise to has exactly one
// record ([Record.Row]); what weir adds of its own has none. What a place (a
// file, a menu) asks of whoever sets something there stands once, in places.yaml,
// and holds for all records of that place.
package db
