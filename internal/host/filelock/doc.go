// Package filelock locks files and folders against other processes, by flock. The
// lock goes with the process, however it ends.
//
// Libraries lock a path. Here whoever holds a lock may remove what it is on, so a lock
// counts only if the path still names the open file.
package filelock
