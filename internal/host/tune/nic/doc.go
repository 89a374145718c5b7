// Package nic reads and sets a network card's ethtool settings, each as one text:
// "combined 4", "on", "sdfn". A text that was read can be set again.
//
// [Cards] is for callers that read many settings of many cards.
//
// The error for a setting that a card does not have is fs.ErrNotExist. Everything acts in
// the process's network namespace.
package nic
