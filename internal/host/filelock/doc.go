// Package filelock locks files and directories against other processes, by flock. The
// lock ends with the process, however that ends.
//
// Libraries lock a path. Here the holder of a lock may remove the locked file, so a lock
// counts only if the path still names the open file.
package filelock
