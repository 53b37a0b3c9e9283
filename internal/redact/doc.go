// Package redact hides the secrets in Envoy's configurations before they are shown: fields that
// the protos mark as sensitive (udpa.annotations.sensitive), and the values of headers and gRPC
// metadata, the payloads and the query strings of health checks. It omits unreadable parts. It
// is pure, and imports Envoy's messages.
package redact
