// Package proxyless has gRPC clients that take their configuration by xDS themselves,
// without a proxy, and the servers that they call, for tests. One client runs in the test
// itself; there are programs with the clients for Go, Python (C-core), Java and Node.js, fetched into
// the repository's .cache, once for all packages that are tested at the same time.
package proxyless
