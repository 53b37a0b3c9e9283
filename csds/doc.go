// Package csds is the client status discovery service: who is connected to
// hdsd, and which configuration each of them has, over gRPC and REST.
//
// It keeps nothing: with each request it asks its sources, which give every
// connected client that the request's node matchers select. A client is one
// stream, or a node that polls in one way, until some time after its last poll;
// its client_scope ("dp-1/ADS", "dp-1/REST") tells several of a node apart. A client
// that is not connected is not shown.
//
// # What is answered
//
// Each resource is in generic_xds_configs, with config_status (what a
// management server knows) and client_status (what the client would say, as far
// as that is known from here: some tools read only this one). Clusters and
// assignments are in the deprecated xds_config as well, one PerXdsConfig for
// each type; its status is that of the resource which is worst off, and its
// client_status stays unset, which is for xDS clients. An entry there has no
// name but that in the configuration, so one without configuration is left out.
// version_info of a whole dump stays empty: versions are those of resources.
//
// version_info and xds_config are what the client was sent last, also when it
// refused that (ERROR, with error_state) or has not answered yet (STALE).
// STALE and ACKED together mean that it accepted what is shown, but there is
// something newer. xds_config is left out where it is not kept any more.
//
// Where hdsd itself is the client, of the servers it takes clusters from, the
// rules are those for clients: no config_status, but in the deprecated form a
// client_status for each type; version_info and xds_config are what hdsd accepted
// last, whatever it refused since.
//
// exclude_resource_contents leaves out every configuration, refused ones
// included; it is never made then.
//
// Nodes are shown without their extensions. What the protos mark as sensitive,
// such as private keys, is replaced by "[redacted]"; a configuration with
// sensitive parts that cannot be read is left out.
//
// # Limits
//
// The protocol has one response for a request, with all clients in it. A
// response larger than Options.MaxBytes is refused with RESOURCE_EXHAUSTED,
// which names the ways to make it smaller. Clients of gRPC take 4 MiB unless
// they are told otherwise: about 5,000 assignments of ten endpoints, each being
// there in both forms. Only Options.Concurrent answers are made at a time,
// others wait. The matchers of a request are bounded in number, depth and, for
// regular expressions, program size (see match.go); what cannot be evaluated, a
// field that is not known here included, is INVALID_ARGUMENT and never a wider
// match.
//
// In REST, a message whose type this binary does not have is shown with its
// @type alone; a configuration that cannot be written as JSON is left out.
//
// # Goroutines
//
// A stream has the handler's goroutine and one that receives and answers, which
// ends when the handler returns; Close ends the handlers and waits for all. The
// REST handler has none of its own.
//
// It may import rest, the protos and grpc. Sources are adapted by who wires them.
package csds
