// Package redact hides the secrets in Envoy's configurations before they are shown: what the protos
// mark as sensitive (udpa.annotations.sensitive), and the values of headers and gRPC metadata, the
// payloads and the query strings of health checks. What it cannot look into, it leaves out. It is
// pure, and imports Envoy's messages.
package redact
