// Package affinity plans which cores work for which queues, on the advice of
// internal/host/doctor or as the admin says. internal/host/tune makes the changes and
// takes them back.
package affinity
