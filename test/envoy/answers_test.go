package envoy

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	redisv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/health_checkers/redis/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
)

// answers are what an endpoint might say to whatever it is asked.
var answers = map[string][]byte{
	"nothing":               nil,
	"HTTP/1.1 200":          []byte("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"),
	"HTTP/1.1 400, closing": []byte("HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n"),
	"HTTP/1.1 101":          []byte("HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\nrubbish"),
	"HTTP/1.1 100, again":   bytes.Repeat([]byte("HTTP/1.1 100 Continue\r\n\r\n"), 1000),
	"HTTP/1.1 200, endless": append([]byte("HTTP/1.1 200 OK\r\n\r\n"), bytes.Repeat([]byte("x"), 4<<20)...),
	"HTTP/1.1, long header": []byte("HTTP/1.1 200 OK\r\nx: " + strings.Repeat("y", 1<<20) + "\r\n\r\n"),
	"status 0":              []byte("HTTP/1.1 000 OK\r\ncontent-length: 0\r\n\r\n"),
	"status 999":            []byte("HTTP/1.1 999 OK\r\ncontent-length: 0\r\n\r\n"),
	"two answers":           bytes.Repeat([]byte("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"), 2),
	"zeros":                 make([]byte, 4096),
	"ones":                  bytes.Repeat([]byte{0xff}, 4096),
	"text":                  []byte("rubbish\r\n"),
	"Redis error":           []byte("-ERR no\r\n"),
	"Redis, bad number":     []byte(":x\r\n"),
	"Redis, deep":           bytes.Repeat([]byte("*1\r\n"), 100_000),
	"Redis, huge bulk":      []byte("$9223372036854775807\r\nx"),
	"Redis, huge array":     []byte("*2147483647\r\n"),
	"Redis, two answers":    []byte("+PONG\r\n+PONG\r\n+PONG\r\n"),
	"Redis, wrong type":     []byte("*0\r\n"),
	"Thrift, huge frame":    {0x7f, 0xff, 0xff, 0xff, 0x80, 1, 0, 2},
	"Thrift, bad version":   {0, 0, 0, 8, 0x12, 0x34, 0, 2, 0, 0, 0, 0},
	"Thrift, a call":        thriftFrame(1),
	"Thrift, a reply":       thriftFrame(2),
	"Thrift, two replies":   bytes.Repeat(thriftFrame(2), 2),
	"Thrift, an exception":  thriftFrame(3),
	"Thrift, type 9":        thriftFrame(9),
	"HTTP/2 settings":       {0, 0, 0, 4, 0, 0, 0, 0, 0},
	"HTTP/2 goaway":         {0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
	"HTTP/2, bad frame":     {0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 1, 1, 4, 0, 0, 0, 1, 0xff},
	"TLS alert":             {0x15, 3, 3, 0, 2, 2, 40},
}

func thriftFrame(kind byte) []byte {
	body := []byte{0x80, 1, 0, kind, 0, 0, 0, 4, 'p', 'i', 'n', 'g', 0, 0, 0, 0, 0}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}

// answering starts a server that says answer to all who have said something,
// and then reads on or closes.
func answering(t testing.TB, answer []byte, closing bool) *endpointv3.Endpoint {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() { // ends by the listener's Close
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { // ends when the Envoy closes, which is killed before
				defer c.Close()
				if _, err := c.Read(make([]byte, 1)); err != nil {
					return
				}
				if _, err := c.Write(answer); err == nil && !closing {
					_, _ = io.Copy(io.Discard, c)
				}
			})
		}
	})
	t.Cleanup(func() { listener.Close(); wg.Wait() })
	return endpointOf(listener.Addr().String())
}

// kinds are one check of each kind.
func kinds() map[string]*corev3.HealthCheck {
	codec := func(c typev3.CodecClientType) *corev3.HealthCheck {
		return sane(&corev3.HealthCheck{HealthChecker: &corev3.HealthCheck_HttpHealthCheck_{HttpHealthCheck: &corev3.HealthCheck_HttpHealthCheck{
			Path: "/", CodecClientType: c, Receive: []*corev3.HealthCheck_Payload{saneMessages["envoy.config.core.v3.HealthCheck.Payload"].(*corev3.HealthCheck_Payload)},
		}}})
	}
	payload := &corev3.HealthCheck_Payload{Payload: &corev3.HealthCheck_Payload_Text{Text: "0d0a"}}
	return map[string]*corev3.HealthCheck{
		"HTTP/1": codec(typev3.CodecClientType_HTTP1),
		"HTTP/2": codec(typev3.CodecClientType_HTTP2),
		"TCP": sane(&corev3.HealthCheck{HealthChecker: &corev3.HealthCheck_TcpHealthCheck_{TcpHealthCheck: &corev3.HealthCheck_TcpHealthCheck{
			Send: payload, Receive: []*corev3.HealthCheck_Payload{payload, payload},
		}}}),
		"gRPC":         sane(&corev3.HealthCheck{HealthChecker: &corev3.HealthCheck_GrpcHealthCheck_{GrpcHealthCheck: &corev3.HealthCheck_GrpcHealthCheck{}}}),
		"Redis":        custom("envoy.health_checkers.redis", &redisv3.Redis{}),
		"Redis EXISTS": custom("envoy.health_checkers.redis", &redisv3.Redis{Key: "x"}),
		"Thrift":       custom("envoy.health_checkers.thrift", saneMessages["envoy.extensions.health_checkers.thrift.v3.Thrift"]),
	}
}

// answerTrials are harmless clusters with endpoints that answer whatever.
func (l *lab) answerTrials(t testing.TB) []*trial {
	t.Helper()
	var trials []*trial
	for _, answer := range slices.Sorted(maps.Keys(answers)) {
		for _, closing := range []bool{false, true} {
			endpoint := answering(t, answers[answer], closing)
			all := kinds()
			for _, kind := range slices.Sorted(maps.Keys(all)) {
				s := l.plain(fmt.Sprintf("answer-%d", len(trials)))
				s.checks = []*corev3.HealthCheck{all[kind]}
				s.assignment.Endpoints[0].LbEndpoints[0].HostIdentifier = &endpointv3.LbEndpoint_Endpoint{Endpoint: endpoint}
				value := answer
				if closing {
					value += ", then closing"
				}
				trials = append(trials, &trial{root: "answer to", field: kind, value: value, source: s})
			}
		}
	}
	return trials
}
