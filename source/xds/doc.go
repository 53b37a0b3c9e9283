// Package xds is the source that takes clusters and endpoints from a
// management server: an xDS client that turns one
// envoy.config.core.v3.ConfigSource into source.Sets, for as long as it runs.
//
// It owns the way from a ConfigSource with an api_config_source to clusters:
// which forms work and what is wrong with the others (Validate), connections
// and their credentials, the protocol in its five forms (REST, and gRPC as
// state of the world or delta, with a stream for each type or one for both),
// what is taken and what is refused of a response, and what is known of each
// resource (Status). It promises that
//   - what is bad in a response never costs what is good in it: good resources
//     are taken, and a NACK names each of the others, which stay what they were;
//   - resources stay as they came, fields that are not known included (over
//     REST, which is JSON, those are lost), and a cluster whose bytes and
//     endpoints did not change keeps its pointer;
//   - a cluster is in no set before its endpoints are there or were waited for
//     long enough, and a changed one stays what it was until then;
//   - when the server is away, what it said stays; only a time to live that it
//     gave ends;
//   - a change is handed on at once, of many changes the latest, and a server
//     that sends faster than that is made to wait;
//   - files with certificates and tokens are read again with each connection.
//
// # How it is made
//
// A table holds what is known of one type, all under Source.mu. A channel asks
// for one or both types: a goroutine that connects, backs off and receives, and
// a second one that sends while a stream lasts. What is to be sent is made up
// when it can be sent, out of the table and of what the stream was told so far
// (stateStream, deltaStream), so that nothing queues but answers to responses,
// which are bounded. What a response holds is counted on the wire before it is
// decoded (codec, weigh), and its resources are decoded without the lock (read).
// What there is of both types is counted, and bounded (stock). Run's own
// goroutine makes sets and hands them on: each out of the one before and of what
// was touched since (latest). With a snapshot, one more writes it (keeper). All of
// them end before Run returns.
//
// Of this module it may import source, internal/envoyrules and internal/yamlpb.
package xds
