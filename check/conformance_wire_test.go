package check

import (
	"encoding/binary"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	redisv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/health_checkers/redis/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"golang.org/x/net/http2"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// wireCase is what an upstream does, and what is then reported of it: by a
// check as it is, one that does not reuse connections, and one whose
// threshold is never reached, which tells failures of the network from others.
type wireCase struct {
	name   string
	script script
	want   string
	envoy  string // what Envoy reports instead, where it differs
	why    string
}

// answer2 answers a request by HTTP/2.
type answer2 = func(p *peer2, stream uint32)

func ok2(p *peer2, stream uint32) { p.headers(stream, true, ":status", "200") }

var http2Cases = []wireCase{
	{name: "200", script: over2(ok2), want: "H200 H200 H200"},
	{name: "503", script: over2(func(p *peer2, s uint32) { p.headers(s, true, ":status", "503") }), want: "U503 U503 U503"},
	{name: "hangs", script: over2(func(*peer2, uint32) {}), want: "T0 T0 H0"},
	{name: "never says anything", script: writes(""), want: "T0 T0 H0"},
	{name: "resets the stream", script: over2(func(p *peer2, s uint32) { p.WriteRSTStream(s, http2.ErrCodeInternal) }), want: "U0 U0 H0"},
	{name: "refuses the stream", script: over2(func(p *peer2, s uint32) { p.WriteRSTStream(s, http2.ErrCodeRefusedStream) }), want: "U0 U0 H0"},
	{name: "resets amid the answer", script: over2(func(p *peer2, s uint32) {
		p.headers(s, false, ":status", "200")
		p.WriteRSTStream(s, http2.ErrCodeNo)
	}), want: "U0 U0 H0"},
	{name: "goes away before it answers", script: over2(func(p *peer2, s uint32) {
		p.WriteGoAway(s, http2.ErrCodeNo, nil)
		ok2(p, s)
	}), want: "H200 H200 H200"},
	{name: "goes away in grace", script: over2(func(p *peer2, s uint32) {
		p.WriteGoAway(1<<31-1, http2.ErrCodeNo, nil)
		ok2(p, s)
	}), want: "H200 H200 H200"},
	{name: "goes away after it answers", script: over2(func(p *peer2, s uint32) {
		ok2(p, s)
		p.WriteGoAway(s, http2.ErrCodeNo, nil)
	}), want: "H200 H200 H200"},
	{name: "goes away after it answers, in anger", script: over2(func(p *peer2, s uint32) {
		ok2(p, s)
		p.WriteGoAway(s, http2.ErrCodeInternal, nil)
	}), want: "H200 H200 H200"},
	{name: "goes away without answering", script: over2(func(p *peer2, s uint32) { p.WriteGoAway(0, http2.ErrCodeNo, nil) }), want: "U0 U0 H0"},
	{name: "goes away in anger", script: over2(func(p *peer2, s uint32) {
		p.WriteGoAway(s, http2.ErrCodeEnhanceYourCalm, nil)
		ok2(p, s)
	}), want: "U0 U0 H0"},
	{name: "goes away and closes", script: over2(func(p *peer2, s uint32) {
		p.WriteGoAway(s, http2.ErrCodeNo, nil)
		p.conn.Close()
	}), want: "U0 U0 H0"},
	{name: "closes after each answer", script: over2(func(p *peer2, s uint32) { ok2(p, s); p.conn.Close() }), want: "H200 H200 H200"},
	{name: "closes", script: closesAfterSome, want: "U0 U0 H0"},
	{name: "resets", script: resetsAfterSome, want: "U0 U0 H0"},
	{name: "half an answer", script: over2(func(p *peer2, s uint32) { p.headers(s, false, ":status", "200") }), want: "T0 T0 H0"},
	{name: "half a frame", script: over2(func(p *peer2, s uint32) { io.WriteString(p.conn, "\x00\x00\x0a\x01\x05") }), want: "T0 T0 H0"},
	{name: "body", script: over2(func(p *peer2, s uint32) {
		p.headers(s, false, ":status", "200", "content-length", "5")
		p.WriteData(s, false, []byte("he"))
		p.WriteDataPadded(s, true, []byte("llo"), make([]byte, 100))
	}), want: "H200 H200 H200"},
	{name: "body too short", script: over2(func(p *peer2, s uint32) {
		p.headers(s, false, ":status", "200", "content-length", "5")
		p.WriteData(s, true, []byte("he"))
	}), want: "U0 U0 H0"},
	{name: "large body", script: over2(func(p *peer2, s uint32) {
		p.headers(s, false, ":status", "200")
		for range 3 {
			p.WriteData(s, false, make([]byte, 16<<10))
		}
		p.WriteData(s, true, nil)
	}), want: "H200 H200 H200"},
	{name: "trailers", script: over2(func(p *peer2, s uint32) {
		p.headers(s, false, ":status", "200")
		p.headers(s, true, "x", "y")
	}), want: "H200 H200 H200"},
	{name: "interim first", script: over2(func(p *peer2, s uint32) {
		p.headers(s, false, ":status", "103", "x", "y")
		ok2(p, s)
	}), want: "H200 H200 H200"},
	{name: "fields in parts", script: over2(func(p *peer2, s uint32) {
		b := p.encode(":status", "200", "x", "y")
		p.WriteHeaders(http2.HeadersFrameParam{StreamID: s, BlockFragment: b[:2], EndStream: true})
		p.WriteContinuation(s, true, b[2:])
	}), want: "H200 H200 H200"},
	{name: "unknown frame first", script: over2(func(p *peer2, s uint32) {
		p.WriteRawFrame(0xbe, 0, s, []byte("x"))
		p.WritePing(false, [8]byte{})
		ok2(p, s)
	}), want: "H200 H200 H200"},
	{name: "degraded", script: over2(func(p *peer2, s uint32) {
		p.headers(s, true, ":status", "200", "x-envoy-degraded", "1")
	}), want: "U200 U200 U200"},
	{name: "no status", script: over2(func(p *peer2, s uint32) { p.headers(s, true, "x", "y") }), want: "U0 U0 H0"},
	{name: "field in capitals", script: over2(func(p *peer2, s uint32) { p.headers(s, true, ":status", "200", "X", "y") }), want: "U0 U0 H0"},
	{name: "too many fields", script: over2(func(p *peer2, s uint32) {
		p.headers(s, true, append(strings.Split(strings.Repeat("x,y,", 150), ",")[:300:300], ":status", "200")...)
	}), want: "U0 U0 H0"},
	{name: "body without fields", script: over2(func(p *peer2, s uint32) { p.WriteData(s, true, []byte("x")) }), want: "U0 U0 H0"},
	{name: "push", script: over2(func(p *peer2, s uint32) {
		p.WritePushPromise(http2.PushPromiseParam{StreamID: s, PromiseID: 2, BlockFragment: p.encode(":status", "200"), EndHeaders: true})
		ok2(p, s)
	}), want: "U0 U0 H0"},
	{name: "answers a stream that is not there", script: over2(func(p *peer2, s uint32) { ok2(p, s+2) }), want: "U0 U0 H0"},
	{name: "no settings", script: func(c net.Conn) {
		p := &peer2{Framer: http2.NewFramer(c, c), conn: c}
		io.ReadFull(c, make([]byte, len(http2.ClientPreface)))
		p.WritePing(false, [8]byte{})
		io.Copy(io.Discard, c)
	}, want: "U0 U0 H0"},
	{name: "HTTP/1", script: afterSome("HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n"), want: "U0 U0 H0"},
	{name: "garbage", script: afterSome("\x00\x01garbage\r\n\xff\xfe\r\n\r\n"), want: "U0 U0 H0"},
	{name: "garbage after the settings", script: over2(func(p *peer2, s uint32) { io.WriteString(p.conn, "\xff\xff\xffgarbage\r\n\r\n") }), want: "U0 U0 H0"},
	{name: "bad compression", script: over2(func(p *peer2, s uint32) {
		p.WriteHeaders(http2.HeadersFrameParam{StreamID: s, BlockFragment: []byte{0xff, 0xff, 0xff, 0x0f}, EndHeaders: true, EndStream: true})
	}), want: "U0 U0 H0"},
	{
		name: "knows Envoy's user agent only", want: "U400 U400 U400", envoy: "H200 H200 H200",
		why: "requests say who sends them", script: asks("", ok2, "user-agent", "Envoy/HC"),
	},
	{name: "slow", script: over2(func(p *peer2, s uint32) { time.Sleep(3 * time.Second); ok2(p, s) }), want: "T0 T0 H0"},
}

// asks answers well only what has these fields, given as name and value in
// turn, and this payload.
func asks(payload string, answer answer2, pairs ...string) script {
	return over2(func(p *peer2, s uint32) {
		for i := 0; i < len(pairs); i += 2 {
			if p.asked[pairs[i]] != pairs[i+1] {
				p.headers(s, true, ":status", "400")
				return
			}
		}
		if p.payload != payload {
			p.headers(s, true, ":status", "400")
			return
		}
		answer(p, s)
	})
}

// largeCases are for now and then: both read all of it.
var largeCases = []wireCase{{
	name: "a body of more than 4 MiB", want: "U0 U0 H0", envoy: "H200 H200 H200",
	why: "no upstream may make it read without bounds", script: over2(func(p *peer2, s uint32) {
		p.headers(s, false, ":status", "200")
		for range maxBody/maxFrame + 1 {
			if p.WriteData(s, false, make([]byte, maxFrame)) != nil {
				return
			}
		}
		p.WriteData(s, true, nil)
	}),
}}

func over2Check(c *base) {
	c.HealthChecker = &corev3.HealthCheck_HttpHealthCheck_{HttpHealthCheck: &httpProbe{
		Path: "/healthy", CodecClientType: typev3.CodecClientType_HTTP2,
	}}
}

func grpcCheckOf(c *base) {
	c.HealthChecker = &corev3.HealthCheck_GrpcHealthCheck_{GrpcHealthCheck: &corev3.HealthCheck_GrpcHealthCheck{}}
}

func namedGRPCCheck(c *base) {
	c.HealthChecker = &corev3.HealthCheck_GrpcHealthCheck_{GrpcHealthCheck: &corev3.HealthCheck_GrpcHealthCheck{
		ServiceName: "shop", Authority: "shop.example", InitialMetadata: []*corev3.HeaderValueOption{
			{Header: &corev3.HeaderValue{Key: "X-From", Value: "100%% hdsd"}},
			{Header: &corev3.HeaderValue{Key: "user-agent", Value: "probe"}, AppendAction: corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD},
		},
	}}
}

func posting(c *base) {
	over2Check(c)
	h := c.GetHttpHealthCheck()
	h.Method, h.Send, h.Host, h.Path = corev3.RequestMethod_POST, text("70696e67"), "shop.example", "/check?full=1"
	h.RequestHeadersToAdd = []*corev3.HeaderValueOption{{Header: &corev3.HeaderValue{Key: "X-From", Value: "hdsd"}}}
}

// sayServing answers that all is well.
func sayServing(p *peer2, s uint32) { sayStatus(p, s, grpc_health_v1.HealthCheckResponse_SERVING) }

func sayStatus(p *peer2, s uint32, status grpc_health_v1.HealthCheckResponse_ServingStatus) {
	p.headers(s, false, ":status", "200", "content-type", "application/grpc")
	p.WriteData(s, false, messageOf(status))
	p.headers(s, true, "grpc-status", "0")
}

// both answers checks of HTTP and gRPC.
func both(code int, status grpc_health_v1.HealthCheckResponse_ServingStatus) script {
	return over2(func(p *peer2, s uint32) {
		if p.asked["content-type"] == "application/grpc" {
			sayStatus(p, s, status)
			return
		}
		p.headers(s, true, ":status", strconv.Itoa(code))
	})
}

func redisCheckOf(key string) func(*base) {
	return func(c *base) {
		packed, _ := anypb.New(&redisv3.Redis{Key: key})
		c.HealthChecker = &corev3.HealthCheck_CustomHealthCheck_{CustomHealthCheck: &corev3.HealthCheck_CustomHealthCheck{
			Name: redisName, ConfigType: &corev3.HealthCheck_CustomHealthCheck_TypedConfig{TypedConfig: packed},
		}}
	}
}

// messageOf returns a message of a gRPC answer in its frame.
func messageOf(status grpc_health_v1.HealthCheckResponse_ServingStatus) []byte {
	m, _ := proto.Marshal(&grpc_health_v1.HealthCheckResponse{Status: status})
	return framed(0, m)
}

func framed(flags byte, m []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{flags}, uint32(len(m))), m...)
}

// overGRPC answers with these bytes and this status; trailers of none.
func overGRPC(body []byte, trailers ...string) script {
	return over2(func(p *peer2, s uint32) {
		p.headers(s, false, ":status", "200", "content-type", "application/grpc")
		p.WriteData(s, len(trailers) == 0, body)
		if len(trailers) > 0 {
			p.headers(s, true, trailers...)
		}
	})
}

// alone answers with fields only.
func alone(pairs ...string) script {
	return over2(func(p *peer2, s uint32) { p.headers(s, true, pairs...) })
}

var serving = messageOf(grpc_health_v1.HealthCheckResponse_SERVING)

// serves2 answers well after doing something else.
func serves2(first answer2) script {
	return over2(func(p *peer2, s uint32) {
		first(p, s)
		p.headers(s, false, ":status", "200", "content-type", "application/grpc+proto")
		p.WriteData(s, false, serving)
		p.headers(s, true, "grpc-status", "0")
	})
}

var grpcCases = []wireCase{
	{name: "SERVING", script: overGRPC(serving, "grpc-status", "0"), want: "H0 H0 H0"},
	{name: "NOT_SERVING", script: overGRPC(messageOf(grpc_health_v1.HealthCheckResponse_NOT_SERVING), "grpc-status", "0"), want: "U0 U0 U0"},
	{name: "SERVICE_UNKNOWN", script: overGRPC(messageOf(grpc_health_v1.HealthCheckResponse_SERVICE_UNKNOWN), "grpc-status", "0"), want: "U0 U0 U0"},
	{name: "UNKNOWN", script: overGRPC(messageOf(grpc_health_v1.HealthCheckResponse_UNKNOWN), "grpc-status", "0"), want: "U0 U0 U0"},
	{name: "a status of the future", script: overGRPC(messageOf(99), "grpc-status", "0"), want: "U0 U0 U0"},
	{name: "NOT_FOUND", script: alone(":status", "200", "content-type", "application/grpc", "grpc-status", "5"), want: "U0 U0 U0"},
	{name: "UNIMPLEMENTED", script: alone(":status", "200", "content-type", "application/grpc", "grpc-status", "12"), want: "U0 U0 U0"},
	{name: "OK without a message", script: alone(":status", "200", "content-type", "application/grpc", "grpc-status", "0"), want: "U0 U0 U0"},
	{name: "SERVING, but UNAVAILABLE", script: overGRPC(serving, "grpc-status", "14"), want: "U0 U0 U0"},
	{name: "HTTP 503", script: alone(":status", "503"), want: "U0 U0 U0"},
	{name: "HTTP 503 with a body", script: over2(func(p *peer2, s uint32) { p.headers(s, false, ":status", "503") }), want: "U0 U0 U0"},
	{name: "HTTP 404, gRPC OK", script: alone(":status", "404", "grpc-status", "0"), want: "U0 U0 U0"},
	{name: "wrong content type", script: over2(func(p *peer2, s uint32) {
		p.headers(s, false, ":status", "200", "content-type", "text/html")
		p.WriteData(s, false, serving)
		p.headers(s, true, "grpc-status", "0")
	}), want: "U0 U0 U0"},
	{name: "nearly the content type", script: over2(func(p *peer2, s uint32) {
		p.headers(s, false, ":status", "200", "content-type", "application/grpc-web")
		p.WriteData(s, false, serving)
		p.headers(s, true, "grpc-status", "0")
	}), want: "U0 U0 U0"},
	{name: "kind of content", script: serves2(func(*peer2, uint32) {}), want: "H0 H0 H0"},
	{name: "no trailers", script: overGRPC(serving), want: "U0 U0 U0"},
	{name: "trailers without a status", script: overGRPC(serving, "x", "y"), want: "U0 U0 U0"},
	{name: "a status that is none", script: overGRPC(serving, "grpc-status", "zero"), want: "U0 U0 U0"},
	{name: "two messages", script: overGRPC(append(serving[:7:7], serving...), "grpc-status", "0"), want: "U0 U0 U0"},
	{name: "an empty message first", script: overGRPC(append(framed(0, nil), serving...), "grpc-status", "0"), want: "H0 H0 H0"},
	{name: "a compressed message", script: overGRPC(framed(1, serving[5:]), "grpc-status", "0"), want: "U0 U0 U0"},
	{name: "flags of the future", script: overGRPC(framed(2, serving[5:]), "grpc-status", "0"), want: "U0 U0 U0"},
	{name: "a message that is none", script: overGRPC(framed(0, []byte("\xff\xff")), "grpc-status", "0"), want: "U0 U0 U0"},
	{name: "half a message", script: overGRPC(serving[:6], "grpc-status", "0"), want: "U0 U0 U0"},
	{name: "half a message, and hangs", script: over2(func(p *peer2, s uint32) {
		p.headers(s, false, ":status", "200", "content-type", "application/grpc")
		p.WriteData(s, false, serving[:6])
	}), want: "T0 T0 H0"},
	{name: "message byte by byte", script: over2(func(p *peer2, s uint32) {
		p.headers(s, false, ":status", "200", "content-type", "application/grpc")
		for i := range serving {
			p.WriteData(s, false, serving[i:i+1])
		}
		p.headers(s, true, "grpc-status", "0")
	}), want: "H0 H0 H0"},
	{name: "hangs", script: over2(func(*peer2, uint32) {}), want: "T0 T0 H0"},
	{name: "never says anything", script: writes(""), want: "T0 T0 H0"},
	{name: "resets the stream", script: over2(func(p *peer2, s uint32) { p.WriteRSTStream(s, http2.ErrCodeInternal) }), want: "U0 U0 H0"},
	{name: "goes away before it answers", script: serves2(func(p *peer2, s uint32) { p.WriteGoAway(s, http2.ErrCodeNo, nil) }), want: "H0 H0 H0"},
	{name: "goes away without answering", script: over2(func(p *peer2, s uint32) { p.WriteGoAway(0, http2.ErrCodeNo, nil) }), want: "U0 U0 H0"},
	{name: "goes away and hangs", script: over2(func(p *peer2, s uint32) { p.WriteGoAway(s, http2.ErrCodeNo, nil) }), want: "T0 T0 H0"},
	{name: "goes away in anger", script: serves2(func(p *peer2, s uint32) { p.WriteGoAway(s, http2.ErrCodeProtocol, nil) }), want: "U0 U0 H0"},
	{name: "closes", script: closesAfterSome, want: "U0 U0 H0"},
	{name: "resets", script: resetsAfterSome, want: "U0 U0 H0"},
	{name: "HTTP/1", script: afterSome("HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n"), want: "U0 U0 H0"},
	{name: "garbage", script: afterSome("\x00\x01garbage\r\n\xff\xfe\r\n\r\n"), want: "U0 U0 H0"},
}

// replies answers whatever comes with these bytes, as often as it comes.
func replies(b string) script {
	return func(c net.Conn) {
		request := make([]byte, 512)
		for {
			if _, err := c.Read(request); err != nil {
				return
			}
			if _, err := io.WriteString(c, b); err != nil {
				return
			}
		}
	}
}

// redisCases are replies to PING and to EXISTS. What Envoy makes of them is given
// where it differs.
var redisCases = []struct{ name, reply, ping, exists, envoyPing, envoyExists string }{
	{"PONG", "+PONG\r\n", "H0 H0 H0", "U0 U0 U0", "", ""},
	{"pong", "+pong\r\n", "U0 U0 U0", "U0 U0 U0", "", ""},
	{"PONG in bulk", "$4\r\nPONG\r\n", "U0 U0 U0", "U0 U0 U0", "", ""},
	{"an error", "-ERR unknown command\r\n", "U0 U0 U0", "U0 U0 U0", "", ""},
	{"no authority", "-NOAUTH Authentication required.\r\n", "U0 U0 U0", "U0 U0 U0", "", ""},
	{"an empty error", "-\r\n", "U0 U0 U0", "U0 U0 U0", "", ""},
	{"moved", "-MOVED 3999 127.0.0.1:6381\r\n", "H0 H0 H0", "H0 H0 H0", "", ""},
	{"ask", "-ASK 3999 127.0.0.1:6381\r\n", "H0 H0 H0", "H0 H0 H0", "", ""},
	{"moved nowhere", "-MOVED 3999\r\n", "U0 U0 U0", "U0 U0 U0", "", ""},
	{"cluster down", "-CLUSTERDOWN The cluster is down\r\n", "U0 U0 H0", "U0 U0 H0", "", ""},
	{"cluster down, in three words", "-CLUSTERDOWN is down\r\n", "U0 U0 H0", "U0 U0 H0", "", ""},
	{"no such key", ":0\r\n", "U0 U0 U0", "H0 H0 H0", "", ""},
	{"key exists", ":1\r\n", "U0 U0 U0", "U0 U0 U0", "", ""},
	{"minus one", ":-1\r\n", "U0 U0 U0", "U0 U0 U0", "", ""},
	{"minus zero", ":-0\r\n", "U0 U0 U0", "H0 H0 H0", "", ""},
	{"no digits", ":\r\n", "U0 U0 H0", "U0 U0 H0", "", ""},
	{"wrong type", "*2\r\n+PONG\r\n:0\r\n", "U0 U0 U0", "U0 U0 U0", "", ""},
	{"array of nothing", "*0\r\n", "U0 U0 U0", "U0 U0 U0", "", ""},
	{"null array", "*-1\r\n", "U0 U0 U0", "U0 U0 U0", "", ""},
	{"null", "$-1\r\n", "U0 U0 U0", "U0 U0 U0", "", ""},
	{"null of RESP3", "_\r\n", "U0 U0 U0", "U0 U0 U0", "", ""},
	{"boolean", "#f\r\n", "U0 U0 U0", "U0 U0 U0", "", ""},
	{"big number", "(0\r\n", "U0 U0 U0", "U0 U0 U0", "", ""},
	{"double", ",0\r\n", "U0 U0 U0", "U0 U0 U0", "", ""},
	{"map", "%1\r\n+a\r\n:1\r\n", "U0 U0 U0", "U0 U0 U0", "", ""},
	{"set", "~1\r\n+a\r\n", "U0 U0 U0", "U0 U0 U0", "", ""},
	{"blob error", "!3\r\nERR\r\n", "U0 U0 U0", "U0 U0 U0", "", ""},
	{"verbatim", "=8\r\ntxt:PONG\r\n", "U0 U0 U0", "U0 U0 U0", "", ""},
	{"attribute", "|1\r\n+a\r\n:1\r\n+PONG\r\n", "U0 U0 U0", "U0 U0 U0", "H0 H0 H0", "U0 U0 U0"},
	{"push first", ">1\r\n+a\r\n+PONG\r\n", "U0 U0 U0", "U0 U0 U0", "H0 H0 H0", "U0 U0 U0"},
	{"not a number", ":x\r\n", "U0 U0 H0", "U0 U0 H0", "", ""},
	{"plus a number", ":+0\r\n", "U0 U0 H0", "U0 U0 H0", "", ""},
	{"bulk too long", "$2\r\nPONG\r\n", "U0 U0 U0", "U0 U0 U0", "U0 U0 H0", "U0 U0 H0"},
	{"PONG without a line feed", "+PONG\rx", "U0 U0 H0", "U0 U0 H0", "", ""},
	{"garbage", "\x00\x01garbage\r\n\xff\xfe\r\n\r\n", "U0 U0 H0", "U0 U0 H0", "", ""},
	{"HTTP", "HTTP/1.1 400 Bad Request\r\n\r\n", "U0 U0 U0", "U0 U0 U0", "", ""},
	{"half an answer", "+PON", "T0 T0 H0", "T0 T0 H0", "", ""},
	{"half a bulk", "$10\r\nPONG", "U0 U0 U0", "U0 U0 U0", "T0 T0 H0", "T0 T0 H0"},
	{"half an array", "*2\r\n+PONG\r\n", "U0 U0 U0", "U0 U0 U0", "T0 T0 H0", "T0 T0 H0"},
	{"twice", "+PONG\r\n+PONG\r\n", "H0 H0 H0", "U0 U0 U0", "", ""},
	{"and garbage", "+PONG\r\nx", "U0 H0 U0", "U0 U0 U0", "", ""},
}
