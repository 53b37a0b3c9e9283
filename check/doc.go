// Package check is the built-in checker. It is an HDS client that probes endpoints
// by HTTP/1.1, HTTP/2, TCP, gRPC and Redis, in plaintext and over TLS, as Envoy 1.40
// does, and reports their health.
//
// It owns the stream to the coordinator, the probes and their connections. It
// guarantees:
//   - The same specifier and upstreams produce the same reports as with a real
//     Envoy, apart from the differences below. The conformance tests compare both,
//     and cover the differences too.
//   - A specifier that cannot be applied as a whole changes nothing. The previous
//     one stays in use, and the log says what is wrong.
//   - Checking continues and results survive while the coordinator is away.
//   - No upstream can exhaust memory or hold a probe beyond its timeout.
//
// HTTP/2 uses the Framer of golang.org/x/net/http2: one stream at a time, in the
// goroutine that probes. A client of net/http (Transport.NewClientConn) differs from
// Envoy in three cases: the upstream sends GOAWAY with an error, answers with
// garbage, or answers a stream that does not exist. It also needs one more goroutine
// and some 24 kB more for each endpoint, and twice the processor time.
//
// Envoy behaves like this, and so does this package:
//   - A gRPC check that times out keeps its connection. An HTTP check drops it.
//   - A Redis check goes to the endpoint's address, whatever health_check_config
//     says. It uses the socket of a transport_socket_match without labels, and
//     ignores match criteria and tls_options.
//   - The connections of Redis checks count as traffic. In their cluster, interval,
//     unhealthy_interval and the edge intervals apply. In all others,
//     no_traffic_interval applies, because a cluster from HDS carries no traffic.
//   - The scheme of HTTP/2 requests is that of the socket without labels, too.
//   - TLS is version 1.2 unless configured otherwise.
//
// Differences from Envoy:
//   - What no Envoy is sent is rejected. Thrift, HTTP/3, secrets by SDS and
//     signature_algorithms are not supported. The node says so, so that a coordinator
//     does not send them.
//   - A body over 4 MiB counts as a network failure, or as a failed gRPC response.
//   - Only the first line of a Redis reply is read: an integer, PONG or an error has
//     no more. A reply of several lines fails without waiting for its end.
//   - The binary payload of a TCP check is sent. Envoy 1.40 omits it, and sends only
//     text.
//   - The user agent of requests is hdsd.
//   - A connection that is not established when a gRPC check times out is closed.
//     Envoy keeps connecting.
//   - TLS sessions are not resumed: each connection verifies the certificate. What Go
//     refuses, such as SHA-1 signatures, fails.
//
// Run starts one goroutine that reads the stream, and one for each pair of endpoint
// and health check. All end with Run's context, and Run waits for them. State and
// Policy are pure: they decide what a probe means for an endpoint.
//
// It imports health, envoy, the protos, grpc, net/http and
// golang.org/x/net, and no other part of hdsd.
package check
