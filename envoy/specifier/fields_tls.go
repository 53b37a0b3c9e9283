package specifier

import "google.golang.org/protobuf/reflect/protoreflect"

const (
	provider    = "hdsd does not know whether checkers have this certificate provider; use files, inline material or SDS"
	watched     = "hdsd does not know whether checkers have this folder; take it out"
	localSecret = "a checker may not have this file; set checkers.sds_config, or use api_config_source with a cluster of the checkers' bootstrap"
	localOnly   = "sources cannot name what is on a checker's machine; use inline material or a file named in the configuration's checkers.files"
)

// tlsFields are the fields of an UpstreamTlsContext and the messages in it.
var tlsFields = merge(
	qualified("envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext", map[protoreflect.Name]treatment{
		"common_tls_context":      sent,
		"sni":                     kept(serverName),
		"allow_renegotiation":     sent,
		"max_session_keys":        kept(atMost(1<<16, "a number of sessions")),
		"enforce_rsa_key_usage":   sent,
		"auto_host_sni":           refused("a health check does not know the endpoint's host name; set sni"),
		"auto_sni_san_validation": refused("a health check does not know the request's host name; set sni and match_typed_subject_alt_names"),
	}),
	qualified("envoy.extensions.transport_sockets.tls.v3.CommonTlsContext", map[protoreflect.Name]treatment{
		"tls_params":                                       sent,
		"tls_certificates":                                 sent,
		"tls_certificate_sds_secret_configs":               sent,
		"validation_context":                               sent,
		"validation_context_sds_secret_config":             sent,
		"combined_validation_context":                      sent,
		"alpn_protocols":                                   kept(protocolName),
		"key_log":                                          leftOut, // writes secrets to a file; no check depends on it
		"tls_certificate_provider_instance":                refused(provider),
		"tls_certificate_certificate_provider":             refused(provider),
		"tls_certificate_certificate_provider_instance":    refused(provider),
		"validation_context_certificate_provider":          refused(provider),
		"validation_context_certificate_provider_instance": refused(provider),
		"custom_tls_certificate_selector":                  refused(extension),
		"custom_handshaker":                                refused(extension),
	}),
	qualified("envoy.extensions.transport_sockets.tls.v3.CommonTlsContext.CombinedCertificateValidationContext", map[protoreflect.Name]treatment{
		"default_validation_context": sent, "validation_context_sds_secret_config": sent,
		"validation_context_certificate_provider":          refused(provider),
		"validation_context_certificate_provider_instance": refused(provider),
	}),
	qualified("envoy.extensions.transport_sockets.tls.v3.TlsParameters", map[protoreflect.Name]treatment{
		"tls_minimum_protocol_version": sent, "tls_maximum_protocol_version": sent,
		"cipher_suites":        kept(cipherSuite),
		"ecdh_curves":          kept(curve),
		"signature_algorithms": kept(signatureAlgorithm),
		"compliance_policies":  refused("hdsd does not know whether the checkers' releases have it; name versions, cipher_suites and ecdh_curves"),
	}),
	qualified("envoy.extensions.transport_sockets.tls.v3.TlsCertificate", map[protoreflect.Name]treatment{
		"certificate_chain": sent, "private_key": sent, "password": sent,
		"tls_params":                   refused("hdsd does not pass on parameters of one certificate; use those of common_tls_context"),
		"pkcs12":                       refused("hdsd cannot test PKCS #12; use certificate_chain and private_key"),
		"watched_directory":            refused(watched),
		"private_key_provider":         refused(extension),
		"ocsp_staple":                  leftOut, // a checker's rate of requests; the default is fine
		"signed_certificate_timestamp": leftOut,
	}),
	qualified("envoy.extensions.transport_sockets.tls.v3.CertificateValidationContext", map[protoreflect.Name]treatment{
		"trusted_ca": sent, "crl": sent,
		"system_root_certs":                    refused("hdsd does not know whether checkers have root certificates, and what they hold; use trusted_ca"),
		"verify_certificate_spki":              kept(spki),
		"verify_certificate_hash":              kept(fingerprint),
		"match_typed_subject_alt_names":        sent,
		"match_subject_alt_names":              sent,
		"allow_expired_certificate":            sent,
		"trust_chain_verification":             sent,
		"only_verify_leaf_cert_crl":            sent,
		"max_verify_depth":                     kept(atMost(100, "a depth")),
		"suppress_client_ca_list":              leftOut, // for servers
		"watched_directory":                    refused(watched),
		"ca_certificate_provider_instance":     refused(provider),
		"require_signed_certificate_timestamp": refused("Envoy does not implement it; take it out"),
		"custom_validator_config":              refused(extension),
	}),
	qualified("envoy.extensions.transport_sockets.tls.v3.SubjectAltNameMatcher", map[protoreflect.Name]treatment{
		"san_type": sent, "matcher": sent, "oid": kept(objectIdentifier),
	}),
	qualified("envoy.config.core.v3.DataSource", map[protoreflect.Name]treatment{
		"filename": sent, "inline_bytes": kept(bytesAtMost(maxMaterial)), "inline_string": sent,
		"environment_variable": refused(localOnly), "watched_directory": refused(watched),
	}),
	qualified("envoy.extensions.transport_sockets.tls.v3.SdsSecretConfig", map[protoreflect.Name]treatment{
		"name": kept(shortText), "sds_config": sent,
	}),
	qualified("envoy.config.core.v3.ConfigSource", map[protoreflect.Name]treatment{
		"api_config_source": sent, "resource_api_version": sent, "initial_fetch_timeout": kept(anyDuration),
		"ads":                refused("a checker may have no ADS; set checkers.sds_config, or use api_config_source with a cluster of the checkers' bootstrap"),
		"self":               refused("a secret does not come from where the checks come from; use api_config_source with a cluster of the checkers' bootstrap"),
		"path":               refused(localSecret),
		"path_config_source": refused(localSecret),
		"authorities":        refused(extension),
	}),
	qualified("envoy.config.core.v3.ApiConfigSource", map[protoreflect.Name]treatment{
		"api_type": sent, "transport_api_version": sent, "grpc_services": sent, "set_node_on_first_message_only": sent,
		"cluster_names":       refused("of secrets only gRPC services are supported; use grpc_services"),
		"refresh_delay":       leftOut, // for REST
		"request_timeout":     leftOut,
		"rate_limit_settings": leftOut, // how often a checker may ask; the default is fine
		"config_validators":   refused(extension),
	}),
	qualified("envoy.config.core.v3.GrpcService", map[protoreflect.Name]treatment{
		"envoy_grpc": sent, "google_grpc": refused("name a cluster of the checkers' bootstrap by envoy_grpc"),
		"timeout": kept(anyDuration), "initial_metadata": refused("hdsd does not pass metadata on; take it out"), "retry_policy": leftOut,
	}),
	qualified("envoy.config.core.v3.GrpcService.EnvoyGrpc", map[protoreflect.Name]treatment{
		"cluster_name": kept(shortText), "authority": kept(shortText),
		"retry_policy": leftOut, "max_receive_message_length": leftOut, "skip_envoy_headers": leftOut,
	}),
)
