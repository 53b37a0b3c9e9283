package check

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
)

const (
	userAgent            = "hdsd/HC"
	defaultReceiveBuffer = 1024
)

// statusRange is half-open.
type statusRange struct{ start, end int64 }

// httpCheck is an HTTP health check: what it sends and what it expects.
type httpCheck struct {
	method  string
	path    string
	host    string
	v2      bool    // HTTP/2
	fields  []field // in lower case, without the host
	payload []byte

	expected, retriable []statusRange
	receive             [][]byte
	receiveBuffer       int // bytes of the body in which to look for receive
	service             matcher
}

func newHTTPCheck(c *corev3.HealthCheck_HttpHealthCheck, cluster string) (*httpCheck, error) {
	if c.GetPath() == "" || strings.ContainsAny(c.GetPath()+c.GetHost(), "\r\n\x00") {
		return nil, fmt.Errorf("path must be set; path and host may not have line breaks")
	}
	if t := c.GetCodecClientType(); t != typev3.CodecClientType_HTTP1 && t != typev3.CodecClientType_HTTP2 || c.GetUseAlpnProtocol() {
		return nil, fmt.Errorf("codec_client_type %s with use_alpn_protocol %t is not supported; this checker speaks HTTP1 and HTTP2 as told", t, c.GetUseAlpnProtocol())
	}
	h := &httpCheck{path: c.GetPath(), host: cmp.Or(c.GetHost(), cluster), v2: c.GetCodecClientType() == typev3.CodecClientType_HTTP2}
	var err error
	if h.method, err = method(c.GetMethod()); err != nil {
		return nil, err
	}
	if h.payload, err = h.payloadOf(c); err != nil {
		return nil, fmt.Errorf("send: %w", err)
	}
	h.fields = []field{{"user-agent", userAgent}}
	if h.fields, err = editHeaders(h.fields, c.GetRequestHeadersToRemove(), c.GetRequestHeadersToAdd()); err != nil {
		return nil, err
	}
	if h.expected, err = statusRanges(c.GetExpectedStatuses()); err != nil {
		return nil, fmt.Errorf("expected_statuses: %w", err)
	}
	if len(h.expected) == 0 {
		h.expected = []statusRange{{http.StatusOK, http.StatusOK + 1}}
	}
	if h.retriable, err = statusRanges(c.GetRetriableStatuses()); err != nil {
		return nil, fmt.Errorf("retriable_statuses: %w", err)
	}
	if err := h.expectBody(c); err != nil {
		return nil, err
	}
	if m := c.GetServiceNameMatcher(); m != nil {
		if h.service, err = newMatcher(m); err != nil {
			return nil, fmt.Errorf("service_name_matcher: %w", err)
		}
	}
	return h, nil
}

func method(m corev3.RequestMethod) (string, error) {
	switch {
	case m == corev3.RequestMethod_METHOD_UNSPECIFIED:
		return http.MethodGet, nil
	case m == corev3.RequestMethod_CONNECT || corev3.RequestMethod_name[int32(m)] == "":
		return "", fmt.Errorf("method %s is not supported", m)
	}
	return m.String(), nil
}

func (h *httpCheck) payloadOf(c *corev3.HealthCheck_HttpHealthCheck) ([]byte, error) {
	if c.GetSend() == nil {
		return nil, nil
	}
	if !h.takesBody() {
		return nil, fmt.Errorf("%s takes no payload; use POST, PUT, PATCH or OPTIONS", h.method)
	}
	return payloadBytes(c.GetSend())
}

func (h *httpCheck) takesBody() bool {
	switch h.method {
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodOptions:
		return true
	}
	return false
}

func statusRanges(list []*typev3.Int64Range) ([]statusRange, error) {
	var ranges []statusRange
	for _, r := range list {
		if r.GetStart() < 100 || r.GetEnd() > 600 || r.GetStart() >= r.GetEnd() {
			return nil, fmt.Errorf("%d to %d is not a range within 100 to 600 (the end is not included)", r.GetStart(), r.GetEnd())
		}
		ranges = append(ranges, statusRange{r.GetStart(), r.GetEnd()})
	}
	return ranges, nil
}

func (h *httpCheck) expectBody(c *corev3.HealthCheck_HttpHealthCheck) error {
	var err error
	if h.receive, err = segments(c.GetReceive()); err != nil {
		return err
	}
	size := uint64(defaultReceiveBuffer)
	if c.GetResponseBufferSize() != nil {
		size = c.GetResponseBufferSize().GetValue()
	}
	if size == 0 || size > maxBody { // 0 is all of it
		size = maxBody
	}
	total := 0
	for _, segment := range h.receive {
		total += len(segment)
	}
	if total > int(size) {
		return fmt.Errorf("receive has %d bytes, more than the %d of response_buffer_size", total, size)
	}
	h.receiveBuffer = int(size)
	return nil
}

// request returns the bytes to send.
func (h *httpCheck) request(hostname string) []byte {
	var b []byte
	b = append(b, h.method...)
	b = append(b, ' ')
	b = append(b, h.path...)
	b = append(b, " HTTP/1.1\r\nhost: "...)
	b = append(b, cmp.Or(hostname, h.host)...)
	for _, f := range h.fields {
		b = append(b, "\r\n"...)
		b = append(b, f.name...)
		b = append(b, ": "...)
		b = append(b, f.value...)
	}
	if len(h.payload) > 0 || h.takesBody() && h.method != http.MethodOptions {
		b = append(b, "\r\ncontent-length: "...)
		b = strconv.AppendInt(b, int64(len(h.payload)), 10)
	}
	b = append(b, "\r\n\r\n"...)
	return append(b, h.payload...)
}

// judge returns the outcome of a complete response. body is the part that fits the
// buffer.
func (h *httpCheck) judge(status int, header http.Header, body []byte) Outcome {
	if !contains(body, h.receive) {
		return Failed
	}
	if !inRanges(h.expected, status) {
		if inRanges(h.retriable, status) {
			return Retriable
		}
		return Failed
	}
	if h.service != nil && !h.service(header.Get("X-Envoy-Upstream-Healthchecked-Cluster")) {
		return Failed
	}
	if len(header["X-Envoy-Degraded"]) > 0 {
		return Degraded
	}
	return Passed
}

func inRanges(ranges []statusRange, status int) bool {
	for _, r := range ranges {
		if int64(status) >= r.start && int64(status) < r.end {
			return true
		}
	}
	return false
}
