// Package yamlpb reads YAML and JSON into protobuf messages, strictly, by the proto3
// JSON mapping.
//
// It owns the way from a file's bytes to a message. It guarantees:
//   - Every problem is reported at once. Each has its line and the path of the field
//     in proto names, such as sources[0].config_source.
//   - Nothing is accepted silently. Unknown and repeated fields, wrong types, two
//     members of a oneof, several documents, and YAML's own spellings of numbers and
//     booleans are problems.
//   - A part of a document can be decoded on its own, so that one bad resource does
//     not spoil the others. An alias counts as a copy of its anchor.
//   - MaxBytes bounds time and memory, whatever the input. Depth, the number of
//     values and the expansion of aliases have limits.
//
// ParseAsEnvoy reads files that Envoy reads too. It is as lenient as Envoy, and files
// mean the same as to Envoy: testdata/envoy.txt is a table of examples, and
// test/envoy compares it with a real Envoy. It is stricter than Envoy about:
//   - a field in two spellings;
//   - a field that is given twice in JSON or outside of lists;
//   - unknown fields, which Envoy ignores outside of its bootstrap;
//   - commas and quotes that are not valid JSON.
//
// SplitAsEnvoy cuts a large file into the elements of its list. Each is then parsed alone: if
// it is in usual YAML, by a parser that is quicker than the library. That one also packs plain
// endpoints: they become bytes, without nodes and messages. What is packed has no lines, so
// whoever finds something wrong parses the element again. FuzzQuick compares the two parsers,
// FuzzPack what is packed with what is not, and FuzzParts in source/file the parts with the whole.
//
// ParseOwn reads files that only hdsd reads: durations may also be such as 30d and
// 1h30m, also within Envoy's messages. Files that Envoy may read as well take them as
// Envoy does, in seconds, so that no file works here and fails there.
//
// The types behind google.protobuf.Any are those that the program has registered: cmd/hdsd has
// all types of Envoy and its contrib extensions (internal/envoytypes).
//
// It walks the YAML nodes along the message's descriptor. The available libraries
// stop at the first error, do not know field paths, or accept repeated keys and
// numbers in place of strings.
//
// It starts no goroutine. Of this module it imports internal/suggest, internal/duration
// and envoy.
package yamlpb
