// Package affinity plans which cores work for which queues, as internal/host/doctor
// advises or as somebody says. internal/host/tune makes the changes and takes them back.
package affinity
