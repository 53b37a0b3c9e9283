// Command judgement plays every scenario of test/sim by every rule, prints
// what came of it, and writes docs/internals/judgement.md and its plots anew.
//
// One goroutine for each processor plays runs; main waits for all of them.
package main
