// Package sim runs the pure packages, assign and aggregate, under a fleet in
// virtual time, and counts what they got wrong.
//
// Observers stand for checking Envoys: they probe what they are assigned, hold
// each host UNHEALTHY until its first probe, apply the thresholds, keep their
// state through a lost stream and lose it in a restart. All that they know is
// the outcome of their own probes in a truth.World; all that the coordinator
// knows is their reports. The judge alone compares verdicts with the truth.
//
// A Scenario is something that goes wrong, a Rule a way to come from votes to a
// verdict; another one of either is a line in Scenarios or Rules. All rules
// judge the same run. The tests hold a small fleet to bounds; the command
// judgement plays everything at large.
//
// A run is repeated by its seed, which every failure prints. The package
// starts no goroutine; it may import anything.
package sim
