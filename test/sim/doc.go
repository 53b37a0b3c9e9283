// Package sim runs the pure packages assign and aggregate with a fleet in virtual
// time, and counts their mistakes.
//
// Observers stand for Envoys that check. They probe their assigned endpoints, hold
// each host UNHEALTHY until its first probe, and apply the thresholds. They keep their
// state when a stream ends and lose it in a restart. An observer knows only the
// results of its own probes in a truth.World. The coordinator knows only the reports.
// The judge alone compares verdicts with the truth.
//
// A Scenario is something that goes wrong. A Rule is a way from votes to a verdict. To
// add one, add a line to Scenarios or Rules. All rules judge the same run. The tests
// hold a small fleet to bounds; the command judgement plays everything on a large one.
//
// A run is repeated by its seed, which every failure prints. The package starts no
// goroutine; it may import anything.
package sim
