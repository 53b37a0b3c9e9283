// Command judgement plays every scenario of test/sim by every rule, prints the
// results, and rewrites docs/internals/judgement.md and its plots.
//
// One goroutine for each processor plays runs; main waits for all of them.
package main
