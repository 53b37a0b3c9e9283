// Package decision holds the machine's decisions, for publishing and recording.
//
// A Decision is complete, so its observers look nothing up. Health, Update, Withdrawn and Zones
// refer to endpoints by ids that are valid in one process only. The other parts mean the same
// everywhere.
//
// The package is pure. It imports health, publish and store.
package decision
