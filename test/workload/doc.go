// Package workload is a SPIFFE Workload API for tests, on a socket. It stands for an
// agent such as SPIRE's, which tests here cannot have.
package workload
