// Package crash kills processes with signal 9 at random moments and looks at
// what is left.
//
// Others lose power instead: test/disk records what a process writes, and makes what the
// disk may have of it.
//
// Its tests start the test binary again as the process to kill; each test
// waits for the ones that it started. It may import anything.
package crash
