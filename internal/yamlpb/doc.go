// Package yamlpb reads YAML and JSON into protobuf messages, strictly, by the
// proto3 JSON mapping.
//
// It owns the way from a file's bytes to a message. It promises that
//   - every problem is reported at once, each with its line and the path of
//     the field in proto names, as sources[0].config_source;
//   - nothing is taken silently: unknown and repeated fields, wrong types, two
//     members of a oneof, several documents and YAML's own spellings of
//     numbers and booleans are problems;
//   - a part of a document can be decoded on its own, so that one bad resource
//     does not spoil the others, and an alias counts as what it stands for;
//   - time and memory are bounded by MaxBytes, whatever the input: depth,
//     number of values and the expansion of aliases have limits.
//
// ParseAsEnvoy reads files that Envoy reads too, as loosely as Envoy does, and they
// mean what they mean to Envoy: testdata/envoy.txt is a table of that, and
// test/envoy holds it against the real Envoy. It is stricter than Envoy with a
// field in two spellings, with one that is given twice in JSON or outside of
// lists, with unknown fields, which Envoy ignores outside of its bootstrap, and
// with commas and quotes that are not JSON's.
//
// The types behind google.protobuf.Any are those of the program; this package
// links all that Envoy and its contrib extensions have (gen/envoy).
//
// It walks the YAML nodes along the message's descriptor, because the
// libraries at hand stop at the first error, know no field paths, or let
// repeated keys and numbers for texts pass.
//
// It starts no goroutine. Of this module it imports gen/envoy alone, which is
// a list of imports.
package yamlpb
