// Package union answers the questions of operators at any replica of several.
//
// # What it owns
//
// A Backend wraps the api.Backend of its replica. The leader answers questions about the present: only it
// has checkers, votes and what follows from them. Clients, Replicas and Status put together what all replicas
// have. The history, incidents and watches are the same on each replica, so its own Backend answers them.
//
// Answer is the other end: it answers the question of another replica from its own Backend alone, so no
// question goes around.
//
// Overrides asks the leader how many endpoints an override has, and PreviewOverride what one would do. AcceptElsewhere is
// the only order: it has the other replicas accept what their sources take away.
//
// # What it guarantees
//
// A question shows no more than its caller may see: the caller's clusters go with it, and the other
// replica hides the rest. Health checks travel without their secrets. An error about the question, such as an unknown
// cluster, reaches the caller as from its own replica.
//
// A leader that is gone, that does not answer in time, or that does not lead any more costs the caller the details, not
// the answer: its own replica answers, and Status says so. For a moment, further questions do not wait for that leader.
//
// # Releases side by side
//
// Questions and answers are JSON with the names of the fields of package api. A release ignores fields that it does not
// know, and fields that the other one lacks are zero. It refuses a question that it does not know, and the other one
// answers itself. A test holds each name and its form: they may be added, not changed.
//
// # Bounds
//
// A question has at most MaxQuestion bytes, an answer MaxAnswer. Lists that come in pages are cut to fit. Questions of
// other replicas take turns, as those of clients do, so that half of the processors are left for health.
//
// # Goroutines
//
// A question to several replicas has one for each; they end before its answer. A question that waits gives up its
// turn (api.Aside).
package union
