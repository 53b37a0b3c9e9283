// Package etcd runs real etcd servers for tests: one, or a cluster of them, on ports of this
// machine, which tests kill, pause, restart, wipe and set back.
//
// The server is a tool of its own module, tools/etcd, and never part of hdsd. The first test
// that needs it builds it into .cache. Each server has a goroutine that waits for its end, and
// ends with its test.
package etcd
