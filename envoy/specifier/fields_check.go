package specifier

import "google.golang.org/protobuf/reflect/protoreflect"

const (
	namespaces = "health checks cannot enter a network namespace of the checker; take it out"
	extension  = "hdsd does not know whether checkers have this extension; take it out"
	headerText = "hdsd cannot test raw bytes of a header; use value"
)

// checkFields are the fields of a HealthCheck and the messages in it.
var checkFields = merge(
	qualified("envoy.config.core.v3.HealthCheck", map[protoreflect.Name]treatment{
		"timeout":                          kept(positiveDuration),
		"interval":                         kept(positiveDuration),
		"initial_jitter":                   kept(anyDuration),
		"interval_jitter":                  kept(anyDuration),
		"interval_jitter_percent":          kept(atMost(1000, "a percentage of the interval")),
		"unhealthy_threshold":              sent, // 0 becomes 1
		"healthy_threshold":                sent,
		"reuse_connection":                 sent,
		"no_traffic_interval":              kept(positiveDuration),
		"no_traffic_healthy_interval":      kept(positiveDuration),
		"unhealthy_interval":               kept(positiveDuration),
		"unhealthy_edge_interval":          kept(positiveDuration),
		"healthy_edge_interval":            kept(positiveDuration),
		"tls_options":                      sent,
		"transport_socket_match_criteria":  sent, // replaced by the socket that it selects
		"http_health_check":                sent,
		"tcp_health_check":                 sent,
		"grpc_health_check":                sent,
		"custom_health_check":              sent,
		"name":                             leftOut, // for statistics; hdsd sets names itself
		"alt_port":                         leftOut, // no release of Envoy reads it
		"event_log_path":                   leftOut, // logging, on other machines
		"event_logger":                     leftOut,
		"event_service":                    leftOut,
		"always_log_health_check_failures": leftOut,
		"always_log_health_check_success":  leftOut,
	}),
	qualified("envoy.config.core.v3.HealthCheck.TlsOptions", map[protoreflect.Name]treatment{
		"alpn_protocols": kept(protocolName),
	}),
	qualified("envoy.config.core.v3.HealthCheck.Payload", map[protoreflect.Name]treatment{
		"text": kept(hexadecimal), "binary": kept(bytesAtMost(maxPayload)),
	}),
	qualified("envoy.config.core.v3.HealthCheck.HttpHealthCheck", map[protoreflect.Name]treatment{
		"host":                      kept(shortText),
		"path":                      kept(shortText),
		"send":                      sent,
		"receive":                   sent,
		"response_buffer_size":      kept(atMost(maxBuffer, "a number of bytes")),
		"request_headers_to_add":    sent,
		"request_headers_to_remove": kept(headerName),
		"expected_statuses":         sent,
		"retriable_statuses":        sent,
		"codec_client_type":         sent,
		"use_alpn_protocol":         refused("is outside of what checkers are sent; use codec_client_type and tls_options.alpn_protocols"),
		"service_name_matcher":      sent,
		"method":                    sent,
	}),
	qualified("envoy.config.core.v3.HealthCheck.TcpHealthCheck", map[protoreflect.Name]treatment{
		"send": sent, "receive": sent, "proxy_protocol_config": sent,
	}),
	qualified("envoy.config.core.v3.HealthCheck.GrpcHealthCheck", map[protoreflect.Name]treatment{
		"service_name": kept(shortText), "authority": kept(shortText), "initial_metadata": sent,
	}),
	qualified("envoy.config.core.v3.HealthCheck.CustomHealthCheck", map[protoreflect.Name]treatment{
		"name": sent, "typed_config": sent,
	}),
	qualified("envoy.extensions.health_checkers.redis.v3.Redis", map[protoreflect.Name]treatment{
		"key": kept(shortText), "aws_iam": refused("hdsd does not know whether the checkers have AWS credentials; take it out"),
	}),
	qualified("envoy.config.core.v3.HeaderValueOption", map[protoreflect.Name]treatment{
		"header": sent, "append": sent, "append_action": sent, "keep_empty_value": sent,
	}),
	qualified("envoy.config.core.v3.HeaderValue", map[protoreflect.Name]treatment{
		"key": kept(headerName), "value": kept(headerFormat), "raw_value": refused(headerText),
	}),
	qualified("envoy.type.v3.Int64Range", map[protoreflect.Name]treatment{"start": sent, "end": sent}),
	qualified("envoy.type.matcher.v3.StringMatcher", map[protoreflect.Name]treatment{
		"exact": kept(shortText), "prefix": kept(shortText), "suffix": kept(shortText), "contains": kept(shortText),
		"safe_regex": sent, "ignore_case": sent, "custom": refused(extension),
	}),
	qualified("envoy.type.matcher.v3.RegexMatcher", map[protoreflect.Name]treatment{
		"regex": kept(regularExpression), "google_re2": leftOut, // says only the default
	}),
	qualified("envoy.config.core.v3.ProxyProtocolConfig", map[protoreflect.Name]treatment{
		"version":           sent,
		"pass_through_tlvs": refused("a health check has no connection to pass TLVs through from; take it out"),
		"added_tlvs":        refused("hdsd does not pass TLVs on; take them out"),
	}),
)
