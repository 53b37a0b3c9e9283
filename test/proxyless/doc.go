// Package proxyless has gRPC clients that take their configuration by xDS themselves,
// without a proxy, and the servers that they call, for tests.
package proxyless
