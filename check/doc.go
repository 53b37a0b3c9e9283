// Package check is the built-in checker: an HDS client that probes endpoints
// by HTTP/1.1, HTTP/2, TCP, gRPC and Redis, in plaintext and through TLS, as
// Envoy 1.40 would, and reports what it finds.
//
// It owns the stream to the coordinator, the probes and their connections. It
// guarantees:
//   - The same specifier and the same upstreams give the reports that a real
//     Envoy gives, apart from what is listed below. The conformance tests hold
//     both against each other, differences included.
//   - A specifier that cannot be followed as a whole changes nothing: checking
//     and reporting go on by the one before, and the log says what is wrong.
//   - Checking goes on and results survive while the coordinator is away.
//   - No upstream can exhaust memory or hold a probe beyond its timeout.
//
// HTTP/2 is spoken frame by frame over golang.org/x/net/http2's Framer, one
// stream at a time, by the goroutine that probes. A client of net/http
// (Transport.NewClientConn) differs from Envoy where the upstream goes away with an
// error, answers with garbage, or answers a stream that is not there. It also costs
// a goroutine and some 24 kB more for each endpoint, and twice the processor time.
//
// What is worth knowing of Envoy, and done here as well: a gRPC check that
// times out keeps its connection, one by HTTP drops it. A Redis check goes to
// the endpoint's address whatever health_check_config says, through the socket
// that a transport_socket_match without labels gives; it follows no criteria
// and no tls_options. Its connections count as traffic, so that in its cluster
// interval, unhealthy_interval and the edge intervals decide; in any other,
// no_traffic_interval does, since a cluster that came by HDS never carries
// traffic. The scheme of HTTP/2 requests is that of the socket without labels,
// too. TLS is 1.2 unless told otherwise.
//
// Departures from Envoy:
//   - What makes an Envoy crash is rejected; Thrift, HTTP/3, secrets by SDS and
//     signature_algorithms are not there, which the node says, so that a
//     coordinator does not send them.
//   - A body over 4 MiB counts as a network failure, or as a failed answer of
//     gRPC.
//   - Of a Redis reply only the first line is read: an integer, PONG or an error
//     has no more. A reply of several lines fails, its end is not waited for.
//   - A binary payload of a TCP check is sent, which Envoy 1.40 forgets (text
//     is sent by both).
//   - Requests name hdsd as their user agent.
//   - A connection that is not made when a gRPC check times out is given up;
//     Envoy goes on making it.
//   - TLS sessions are not resumed: each connection verifies the certificate.
//     What Go refuses, as signatures by SHA-1, fails.
//
// Run starts one goroutine that reads the stream and one for each pair of
// endpoint and health check. All end with Run's context, and Run waits for
// them. What a probe means for an endpoint is decided in State and Policy,
// which are pure.
//
// It imports health, the protos, grpc, net/http and golang.org/x/net, and no
// other part of hdsd.
package check
