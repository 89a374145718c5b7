// Package affinity changes which cores work for which queues, as internal/host/doctor
// plans it or as somebody says, so that all of it can be put back.
package affinity
