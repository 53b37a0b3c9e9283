package specifier

import (
	"fmt"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	redisv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/health_checkers/redis/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"

	"hdsd/health"
)

const redisName = "envoy.health_checkers.redis"

// messageRule checks a message whose fields were reviewed.
type messageRule func(r *review, path string, m protoreflect.ProtoMessage)

// rule makes a messageRule of a function on the message's own type.
func rule[M protoreflect.ProtoMessage](f func(r *review, path string, m M)) messageRule {
	return func(r *review, path string, m protoreflect.ProtoMessage) {
		if typed, ok := m.(M); ok {
			f(r, path, typed)
			return
		}
		r.problem(path, "is not the message that it should be")
	}
}

var checkMessages = map[protoreflect.FullName]messageRule{
	"envoy.config.core.v3.HealthCheck":                   rule(ruleCheck),
	"envoy.config.core.v3.HealthCheck.Payload":           rule(rulePayload),
	"envoy.config.core.v3.HealthCheck.HttpHealthCheck":   rule(ruleHTTP),
	"envoy.config.core.v3.HealthCheck.CustomHealthCheck": rule(ruleCustom),
	"envoy.config.core.v3.HeaderValueOption":             rule(ruleHeader),
	"envoy.type.matcher.v3.StringMatcher":                rule(ruleMatcher),
}

func ruleCheck(r *review, path string, c *corev3.HealthCheck) {
	for _, field := range []struct {
		name    protoreflect.Name
		present bool
	}{
		{"timeout", c.Timeout != nil}, {"interval", c.Interval != nil},
		{"unhealthy_threshold", c.UnhealthyThreshold != nil}, {"healthy_threshold", c.HealthyThreshold != nil},
	} {
		if !field.present {
			r.problem(join(path, string(field.name)), "is missing, and a checker rejects everything without it")
		}
	}
	switch c.HealthChecker.(type) {
	case *corev3.HealthCheck_HttpHealthCheck_:
		r.need(health.HTTP)
	case *corev3.HealthCheck_TcpHealthCheck_:
		r.need(health.TCP)
	case *corev3.HealthCheck_GrpcHealthCheck_:
		r.need(health.GRPC)
	case *corev3.HealthCheck_CustomHealthCheck_: // its own rule checks it
	default:
		r.problem(path, "does not say how to check; set http_health_check, tcp_health_check, grpc_health_check or custom_health_check")
	}
}

func rulePayload(r *review, path string, p *corev3.HealthCheck_Payload) {
	if len(p.GetText())+len(p.GetBinary()) == 0 {
		r.problem(path, "is empty; give text or binary, or take it out")
	}
}

func ruleHTTP(r *review, path string, h *corev3.HealthCheck_HttpHealthCheck) {
	if h.GetPath() == "" {
		r.problem(join(path, "path"), "is missing, and a checker rejects everything without it")
	}
	switch h.GetCodecClientType() {
	case typev3.CodecClientType_HTTP1, typev3.CodecClientType_HTTP2:
	default:
		r.problem(join(path, "codec_client_type"), "%v is outside of what checkers are sent; use HTTP1 or HTTP2", h.GetCodecClientType())
	}
	if h.GetMethod() == corev3.RequestMethod_CONNECT {
		r.problem(join(path, "method"), "CONNECT is rejected by checkers; use GET, HEAD, POST, PUT, DELETE, OPTIONS, TRACE or PATCH")
	}
	ruleBody(r, path, h)
	ruleStatuses(r, join(path, "expected_statuses"), h.GetExpectedStatuses())
	ruleStatuses(r, join(path, "retriable_statuses"), h.GetRetriableStatuses())
}

// defaultBuffer is the part of a response that Envoy examines by default.
const defaultBuffer = 1024

func ruleBody(r *review, path string, h *corev3.HealthCheck_HttpHealthCheck) {
	switch h.GetMethod() {
	case corev3.RequestMethod_POST, corev3.RequestMethod_PUT, corev3.RequestMethod_PATCH, corev3.RequestMethod_OPTIONS:
	default:
		if h.GetSend() != nil {
			r.problem(join(path, "send"), "checkers are sent a body only with POST, PUT, PATCH or OPTIONS; set method to one of them, or take send out")
		}
	}
	buffer := uint64(defaultBuffer)
	if h.GetResponseBufferSize() != nil {
		buffer = h.GetResponseBufferSize().GetValue() // 0 means no limit
	}
	var wanted uint64
	for _, p := range h.GetReceive() {
		wanted += uint64(len(p.GetBinary()) + len(p.GetText())/2)
	}
	if buffer > 0 && wanted > buffer {
		r.problem(join(path, "receive"), "has %d bytes, more than the %d of response_buffer_size; raise it", wanted, buffer)
	}
}

func ruleStatuses(r *review, path string, ranges []*typev3.Int64Range) {
	for i, s := range ranges {
		if s.GetStart() < 100 || s.GetEnd() > 600 || s.GetStart() >= s.GetEnd() {
			r.problem(fmt.Sprintf("%s[%d]", path, i), "%d to %d (not included) is outside of what checkers are sent; stay within 100 to 600, the start below the end", s.GetStart(), s.GetEnd())
		}
	}
}

// ruleCustom allows Redis, by type and name.
func ruleCustom(r *review, path string, c *corev3.HealthCheck_CustomHealthCheck) {
	switch c.GetName() {
	case redisName:
	case "envoy.health_checkers.thrift":
		r.problem(join(path, "name"), "Thrift is outside of what checkers are sent; use tcp_health_check")
		return
	default:
		r.problem(join(path, "name"), "%q is no check that hdsd knows; use %s, http_health_check, tcp_health_check or grpc_health_check", clip(c.GetName()), redisName)
		return
	}
	r.need(health.Redis)
	r.need(redisName)
	if packed := r.unpack(join(path, "typed_config"), c.GetTypedConfig(), &redisv3.Redis{}); packed != nil {
		c.ConfigType = &corev3.HealthCheck_CustomHealthCheck_TypedConfig{TypedConfig: packed}
	}
}

// validated is a message with Envoy's own validation rules.
type validated interface {
	proto.Message
	ValidateAll() error
}

// unpack reviews the content of an Any, which must be of into's type. It returns it
// packed again, or nil if that is impossible.
func (r *review) unpack(path string, packed *anypb.Any, m validated) *anypb.Any {
	want := m.ProtoReflect().Descriptor().FullName()
	if packed.MessageName() != want {
		r.problem(path, "is of type %q; only %s is sent here", clip(packed.GetTypeUrl()), want)
		return nil
	}
	if err := packed.UnmarshalTo(m); err != nil {
		r.problem(path, "cannot be decoded: %v", err)
		return nil
	}
	r.takeSDS(m)
	r.message(path, m.ProtoReflect())
	r.giveSDS()
	if wrong := validate(m); wrong != "" { // the rules for the outer message do not look inside
		r.problem(path, "%s", wrong)
	}
	return r.pack(path, m)
}

func (r *review) pack(path string, m proto.Message) *anypb.Any {
	packed := &anypb.Any{}
	if err := anypb.MarshalFrom(packed, m, proto.MarshalOptions{Deterministic: true}); err != nil {
		r.problem(path, "cannot be encoded: %v", err)
		return nil
	}
	return packed
}

func ruleHeader(r *review, path string, h *corev3.HeaderValueOption) {
	if h.GetHeader().GetKey() == "" {
		r.problem(join(path, "header"), "has no key")
	}
	if h.Append != nil && h.GetAppendAction() != corev3.HeaderValueOption_APPEND_IF_EXISTS_OR_ADD {
		r.problem(join(path, "append"), "excludes append_action; give one of the two")
	}
}

func ruleMatcher(r *review, path string, m *matcherv3.StringMatcher) {
	switch m.MatchPattern.(type) {
	case nil:
		r.problem(path, "matches nothing; give exact, prefix, suffix, contains or safe_regex")
	case *matcherv3.StringMatcher_SafeRegex:
		if m.GetIgnoreCase() {
			r.problem(join(path, "ignore_case"), "has no effect on safe_regex; begin the regular expression with (?i)")
		}
	}
}
