// Package check is the built-in checker: an HDS client that probes endpoints
// by HTTP/1.1 and TCP as Envoy would and reports what it finds.
//
// It owns the stream to the coordinator, the probes and their connections. It
// guarantees:
//   - The same specifier and the same upstreams give the reports that a real
//     Envoy gives, apart from what is listed below.
//   - A specifier that cannot be followed as a whole changes nothing: checking
//     and reporting go on by the one before.
//   - Checking goes on and results survive while the coordinator is away.
//   - No upstream can exhaust memory or hold a probe beyond its timeout.
//
// Departures from Envoy: what makes an Envoy crash is rejected; gRPC, Redis,
// Thrift, HTTP/2 and TLS to endpoints are not there; a body over 4 MiB counts
// as a network failure; a binary payload of a TCP check is sent, which Envoy
// 1.40 forgets (text is sent by both); the intervals that need traffic (interval,
// unhealthy_interval and the edge intervals) have no effect, as in Envoy,
// where a cluster that came by HDS never carries any: no_traffic_interval
// decides.
//
// Run starts one goroutine that reads the stream and one for each pair of
// endpoint and health check. All end with Run's context, and Run waits for
// them. What a probe means for an endpoint is decided in State and Policy,
// which are pure.
//
// It imports health, the protos, grpc and net/http, and no other part of hdsd.
package check
