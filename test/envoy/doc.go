// Package envoy runs real Envoys for tests.
//
// It puts what package internal/demo/envoy does at the service of tests: the binaries
// are fetched into the repository's .cache, once for all packages that are
// tested at the same time, and a process ends with its test. StartChecker
// starts an Envoy that takes its health checks from an HDS server,
// StartDataPlane one that takes endpoints (and clusters) over ADS and routes a
// listener to a cluster:
//
//	checker := envoy.StartChecker(t, envoy.Checker{ID: "checker-1", HDS: address})
//	plane := envoy.StartDataPlane(t, envoy.DataPlane{ID: "dp-1", ADS: address, Delta: true, Clusters: []string{"web"}})
//	envoy.Eventually(t, 10*time.Second, "web's endpoint to fail", func() bool {
//		return plane.Clusters(t)["web"]["127.0.0.1:8801"].Failed()
//	})
//
// Every process gets its own folder, admin port and node id, one worker
// thread and no shared memory, so that any number run side by side. A test
// that fails prints the logs of its Envoys. Each process has one goroutine
// that waits for its end; the test's cleanup kills the process and waits for
// that goroutine. A binary that cannot be had fails the test: these tests are
// never skipped.
//
// The package's own tests are the proof that what hdsd sends is safe: see
// sample_test.go and docs/internals/envoy-hds.md. It may import anything.
package envoy
