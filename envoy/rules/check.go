package rules

import (
	"encoding/hex"
	"fmt"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	httpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"

	"hdsd/internal/yamlpb"
)

const (
	quicSocket   = typePrefix + "envoy.extensions.transport_sockets.quic.v3.QuicUpstreamTransport"
	httpProtocol = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
)

// Lowest and highest status codes of a range, whose end is exclusive.
const (
	leastStatus = 100
	mostStatus  = 600
)

// LacksHTTP2 reports whether a cluster has a gRPC health check and no HTTP/2, which an Envoy
// refuses. A checker does not: it speaks HTTP/2 for each gRPC check.
func LacksHTTP2(c *clusterv3.Cluster) bool {
	for _, h := range c.GetHealthChecks() {
		if h.GetGrpcHealthCheck() != nil {
			return !speaksHTTP2(c)
		}
	}
	return false
}

func speaksHTTP2(c *clusterv3.Cluster) bool {
	if value := c.GetTypedExtensionProtocolOptions()[httpProtocol]; value != nil {
		o := &httpv3.HttpProtocolOptions{}
		if value.UnmarshalTo(o) != nil {
			return true // only an Envoy can tell
		}
		return o.GetExplicitHttpConfig().GetHttp2ProtocolOptions() != nil || o.GetUseDownstreamProtocolConfig().GetHttp2ProtocolOptions() != nil || o.GetAutoConfig() != nil
	}
	return c.GetHttp2ProtocolOptions() != nil //nolint:staticcheck // many clusters still have it
}

// uncheckable returns the reasons why Envoy cannot build the health checks of a cluster.
func uncheckable(c *clusterv3.Cluster) []yamlpb.Violation {
	var violations []yamlpb.Violation
	for i, h := range c.GetHealthChecks() {
		path := fmt.Sprintf("health_checks[%d].", i)
		add := func(field, reason string) {
			if reason != "" {
				violations = append(violations, yamlpb.Violation{Field: path + field, Reason: reason})
			}
		}
		tcp, http := h.GetTcpHealthCheck(), h.GetHttpHealthCheck()
		payloads := append([]*corev3.HealthCheck_Payload{tcp.GetSend(), http.GetSend()}, append(tcp.GetReceive(), http.GetReceive()...)...)
		for _, p := range payloads {
			if _, err := hex.DecodeString(p.GetText()); err != nil {
				add("payload", fmt.Sprintf("%q is not hexadecimal: write two digits for each byte, such as 50494e47, or give binary", p.GetText()))
			}
		}
		add("http_health_check.expected_statuses", wrongRange(http.GetExpectedStatuses()))
		add("http_health_check.retriable_statuses", wrongRange(http.GetRetriableStatuses()))
		if http.GetSend() != nil && !hasBody[http.GetMethod()] {
			add("http_health_check.send", "is possible with the methods POST, PUT, PATCH and OPTIONS only: give one of them, or remove it")
		}
		for _, o := range http.GetRequestHeadersToAdd() {
			add("http_health_check.request_headers_to_add", wrongHeader(o.GetHeader().GetKey()))
		}
		for _, name := range http.GetRequestHeadersToRemove() {
			add("http_health_check.request_headers_to_remove", wrongHeader(name))
		}
		if http.GetCodecClientType() > typev3.CodecClientType_HTTP2 && c.GetTransportSocket().GetTypedConfig().GetTypeUrl() != quicSocket {
			add("http_health_check.codec_client_type", "is HTTP1 or HTTP2, unless the transport_socket is a QuicUpstreamTransport: write one of them")
		}
	}
	return violations
}

var hasBody = map[corev3.RequestMethod]bool{
	corev3.RequestMethod_POST: true, corev3.RequestMethod_PUT: true, corev3.RequestMethod_PATCH: true, corev3.RequestMethod_OPTIONS: true,
}

func wrongRange(ranges []*typev3.Int64Range) string {
	for _, r := range ranges {
		if r.GetStart() >= r.GetEnd() || r.GetStart() < leastStatus || r.GetEnd() > mostStatus {
			return fmt.Sprintf("from %d to below %d is no range of status codes: give a start of %d or more, and an end above it of %d or less",
				r.GetStart(), r.GetEnd(), leastStatus, mostStatus)
		}
	}
	return ""
}

func wrongHeader(name string) string {
	if strings.HasPrefix(name, ":") || strings.EqualFold(name, "host") {
		return fmt.Sprintf("cannot be %s: write http_health_check.host, path or method", name)
	}
	return ""
}
