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
//     files and folders count as such, since they are what a mishap leaves,
//     and so do files with resources of which none can be read: of another
//     type, without a name, or with fields that there are not. In a folder,
//     one such file among good ones is enough: without it, its clusters would
//     seem to be gone. "resources: []" is how to have no clusters;
//   - reads come one after the other, and Latest is of the last of them that
//     could be made;
//   - the order of files and of resources in them does not matter;
//   - a cluster that did not change keeps its pointer;
//   - files are read again on an atomic move only, as Envoy does, not when
//     they are written in place.
//
// Run works on its caller's goroutine, and returns when its context ends; the
// watcher's goroutine has ended by then. Of this module it may import source,
// health and internal/yamlpb.
package file
