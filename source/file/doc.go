// Package file is the source that reads files: what Envoy's filesystem xDS
// reads, whole bootstraps, and folders of both.
//
// It owns the way from a path to a source.Set, and knowing when to go it
// again. It promises that
//   - a bad resource in a good file is set aside alone, with its last good
//     content, if there was one, so that nothing published disappears over a
//     slip of the keyboard;
//   - files that cannot be read as a whole change nothing: Load fails, and Run
//     hands on the last good clusters with the problem beside them. Empty
//     files and folders count as such, since they are what a mishap leaves;
//   - the order of files and of resources in them does not matter;
//   - a cluster that did not change keeps its pointer;
//   - files are read again on an atomic move only, as Envoy does, not when
//     they are written in place.
//
// Run works on its caller's goroutine, and returns when its context ends; the
// watcher's goroutine has ended by then. Of this module it may import source,
// health and config/yamlpb.
package file
