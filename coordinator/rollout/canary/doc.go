// Package canary decides which checker is the first to be sent a new or
// changed cluster, and whether the others may have it.
//
// What no rule of hds/specifier foresaw may still end the process of a checker.
// So a version of a cluster goes to one checker first, its canary, and to the
// others when that one has taken it and lived through a first probe.
//
// # Terms
//
// A shape is what a checker is sent of an endpoint apart from its address; a
// version of a cluster is the set of its shapes. A build is a kind of checker:
// its version and abilities. What is proven is a shape for a build. A trial is
// a version at one checker; a cluster has at most one at a time, whatever the
// builds, so that what kills has one victim at a time.
//
// # What it guarantees
//
//   - A trial is asked for by the checker that could have the cluster (Try).
//     A checker may try many clusters at once. When it is lost, all of them are
//     suspect, and a suspect is tried alone: its checker tries nothing else. A
//     suspect whose checker is lost again is in quarantine: nobody tries it any
//     more. So what kills costs two checkers.
//   - A suspect is tried only while no checker comes or goes, or at a checker
//     that has come back since: a rolling restart does not meet it twice.
//     Checkers that are lost again and again try nothing, and count for nothing.
//   - A version that its canary does not take is tried elsewhere, later and
//     alone; that is never a reason for quarantine.
//   - Suspicion and quarantine last as long as the version has every shape that
//     was on trial. What is proven stays proven.
//   - The same calls in the same order give the same answers.
//
// It is pure: no goroutine, lock, clock or log. All calls come from one
// goroutine, its owner; time comes in as a value and never runs backwards. What
// became of trials is told by Events. An owner calls Tick when NextDeadline has
// come, and asks again with Try for what it was denied after that and after
// events.
//
// It imports health and the standard library only.
package canary
