// Package xds is the source that takes clusters and endpoints from a management
// server. It is an xDS client that turns one envoy.config.core.v3.ConfigSource into
// source.Sets, for as long as it runs.
//
// It owns the way from a ConfigSource with an api_config_source to clusters:
//   - Validate says which ConfigSources work, and what is wrong with the others.
//   - It keeps the connections and their credentials.
//   - It speaks the protocol in its five forms: REST, and gRPC as state of the world
//     or delta, with a stream for each type or one for both.
//   - It decides which resources of a response are accepted and which are rejected.
//   - Status says what is known of each resource.
//
// It guarantees:
//   - Bad resources in a response never cost the good ones. Good resources are
//     accepted. A NACK names each of the others, whose last valid version stays.
//   - Resources stay as they came, unknown fields included. Over REST, which is JSON,
//     unknown fields are lost. A cluster keeps its pointer while its bytes and
//     endpoints do not change.
//   - A new cluster is in no set until its endpoints arrive or the wait for them is
//     over. A changed cluster keeps its last version until then.
//   - What the server said stays in use while the server is away. Only a TTL that the
//     server set ends it.
//   - A change is handed on at once. Of many changes, the latest is. A server that
//     sends faster has to wait.
//   - Files with certificates and tokens are read again with each connection.
//
// # How it is built
//
// A table holds what is known of one type. Source.mu guards all tables. A channel
// subscribes to one or both types with two goroutines: one connects, backs off and
// receives, the other sends while a stream lasts.
//
// Each request is built when it can be sent, out of the table and of what was sent on
// the stream so far (stateStream, deltaStream). So nothing queues but the ACKs and
// NACKs of responses, whose number is bounded. The content of a response is counted on
// the wire before it is decoded (codec, rules.Weigh). Its resources are decoded without the
// lock (read). The resources of both types are counted and bounded (stock).
//
// Run's own goroutine makes sets and hands them on. Each set comes from the one before
// and from what was touched since (latest). What time alone changes is in an agenda, the
// earliest first, so that nothing is looked at before it is due. With a snapshot, one more goroutine writes
// it (keeper). All of them end before Run returns.
//
// Of this module it may import source, envoy with its fields and rules,
// peer/limit, internal/heap and internal/yamlpb.
package xds
