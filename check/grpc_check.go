package check

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/proto"
)

// grpcCheck asks grpc.health.v1.Health/Check.
type grpcCheck struct {
	authority string
	fields    []field
	payload   []byte // the request's message in its frame
}

func newGRPCCheck(c *corev3.HealthCheck_GrpcHealthCheck, cluster string, timeout time.Duration) (*grpcCheck, error) {
	if strings.ContainsAny(c.GetAuthority(), "\r\n\x00") {
		return nil, fmt.Errorf("authority may not have line breaks")
	}
	g := &grpcCheck{authority: cmp.Or(c.GetAuthority(), cluster), fields: []field{
		{"te", "trailers"}, {"content-type", "application/grpc"}, {"user-agent", userAgent},
	}}
	var err error
	if g.fields, err = editHeaders(g.fields, nil, c.GetInitialMetadata()); err != nil {
		return nil, fmt.Errorf("initial_metadata: %w", err)
	}
	g.fields = append(g.fields, field{"grpc-timeout", strconv.FormatInt(min(timeout.Milliseconds(), 99_999_999), 10) + "m"})
	message, err := proto.Marshal(&grpc_health_v1.HealthCheckRequest{Service: c.GetServiceName()})
	if err != nil {
		return nil, fmt.Errorf("service_name: %w", err)
	}
	g.payload = append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)
	return g, nil
}

// request returns the header fields to send.
func (g *grpcCheck) request(hostname string, secure bool) []byte {
	fields := pseudo(http.MethodPost, "/grpc.health.v1.Health/Check", cmp.Or(hostname, g.authority), secure)
	return encodeFields(append(fields, g.fields...))
}

// grpcAnswer is the received part of a response.
type grpcAnswer struct {
	rest     []byte // of an incomplete message
	received bool   // a message has arrived
	serving  bool   // and it says SERVING
}

// add adds an event, and reports whether the outcome is certain. As in Envoy, a wrong response
// fails as soon as it shows.
func (a *grpcAnswer) add(e event) (o Outcome, certain bool) {
	switch {
	case e.kind == trailer:
		code, err := strconv.ParseUint(strings.TrimSpace(e.header.Get("Grpc-Status")), 10, 64)
		if err == nil && code == 0 && a.serving {
			return Passed, true
		}
		return Failed, true
	case e.ends: // without a message, or without a status
		return Failed, true
	case e.kind == header:
		return Failed, e.status != http.StatusOK || !isGRPC(e.header.Get("Content-Type"))
	default:
		return Failed, !a.read(e.data)
	}
}

func isGRPC(contentType string) bool {
	rest, ok := strings.CutPrefix(contentType, "application/grpc")
	return ok && (rest == "" || rest[0] == '+')
}

// maxGRPCAnswer is the size limit of the one message in a response.
const maxGRPCAnswer = maxBody

// read reads a part of the body, and reports whether it is valid so far. As in Envoy, an empty
// message is no message.
func (a *grpcAnswer) read(part []byte) bool {
	const prefix = 5
	a.rest = append(a.rest, part...)
	for len(a.rest) > 0 {
		if flags := a.rest[0]; flags > 1 {
			return false
		}
		if len(a.rest) < prefix {
			return true
		}
		length := binary.BigEndian.Uint32(a.rest[1:prefix])
		if length > maxGRPCAnswer {
			return false
		}
		if len(a.rest)-prefix < int(length) {
			return true
		}
		if length > 0 && !a.message(a.rest[0], a.rest[prefix:prefix+length]) {
			return false
		}
		a.rest = a.rest[prefix+length:]
	}
	return true
}

func (a *grpcAnswer) message(flags byte, b []byte) bool {
	var m grpc_health_v1.HealthCheckResponse
	if a.received || flags != 0 || proto.Unmarshal(b, &m) != nil {
		return false
	}
	a.received, a.serving = true, m.GetStatus() == grpc_health_v1.HealthCheckResponse_SERVING
	return true
}
