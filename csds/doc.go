// Package csds is the client status discovery service: which clients are connected to
// hdsd, and which configuration each of them has, over gRPC and REST.
//
// It keeps nothing. With each request it asks its sources for the connected clients,
// and shows those that the request's node matchers select. A client is one stream, or a
// node that polls in one way, until some time after its last poll. Its client_scope
// ("dp-1/ADS", "dp-1/REST") tells several clients of a node apart. A client that is not
// connected is not shown.
//
// # Answers
//
// Each resource is in generic_xds_configs. It has a config_status (what a management
// server knows) and a client_status (what the client would say, as far as hdsd knows;
// some tools read only this one). version_info and xds_config are what the client was
// last sent, even if it refused that (ERROR, with error_state) or has not answered
// (STALE). STALE with ACKED means that the client accepted what is shown, but there is
// something newer. xds_config is absent where it is no longer kept.
//
// Clusters and assignments are in the deprecated xds_config as well, one PerXdsConfig
// for each type. Its status is that of the worst resource. Its client_status stays
// unset, because it is for xDS clients. An entry has no name outside its configuration,
// so a resource without configuration is left out. version_info of a whole dump stays
// empty: only resources have versions.
//
// Where hdsd itself is the client, of the servers that it takes clusters from, the rules
// for clients apply: no config_status, but a client_status for each type in the
// deprecated form. version_info and xds_config are what hdsd last accepted, whatever it
// refused since.
//
// With exclude_resource_contents, every configuration is left out, refused ones
// included, and none is made.
//
// Nodes are shown without their extensions. Secrets are replaced by "[redacted]" (internal/redact).
// A configuration is left out if it cannot be read.
//
// # Limits
//
// The protocol has one response for a request, with all clients in it. A response
// larger than Options.MaxBytes is refused with RESOURCE_EXHAUSTED and the ways to make
// it smaller. Clients of gRPC take 4 MiB by default: about 5,000 assignments of ten
// endpoints, each in both forms. Options.Concurrent answers are made at a time; others
// wait.
//
// The matchers of a request are bounded in number, depth and, for regular expressions,
// program size (see match.go). A matcher that cannot be evaluated, for example because
// it has an unknown field, is INVALID_ARGUMENT. It never matches more than asked.
//
// In REST, a message of a type that this binary does not know is shown with its @type
// alone. A configuration that cannot be written as JSON is left out.
//
// # Goroutines
//
// A stream has the handler's goroutine, and one that receives and answers and ends
// when the handler returns. Close ends the handlers and waits for all. The REST handler
// starts none.
//
// The package imports gate, rest, the protos and grpc. Whoever wires it adapts the
// sources.
package csds
