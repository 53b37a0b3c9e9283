// Package file is the source that reads files: those of Envoy's filesystem xDS,
// whole bootstraps, and folders of both.
//
// It owns the way from a path to a source.Set, and knows when to read again. It
// guarantees:
//   - A bad resource in a good file is rejected alone. Its last valid version, if
//     there is one, stays in use. So no typo makes published endpoints disappear.
//   - Files that cannot be read as a whole change nothing: Load fails, and Run hands
//     on the last valid clusters together with the problem.
//   - Empty files and folders count as unreadable, because they are what a mishap
//     leaves. So do files whose resources are all unreadable: of another type, without
//     a name, or with unknown fields. One such file in a folder of good ones is
//     enough: without it, its clusters would seem to be gone. To have no clusters,
//     write "resources: []".
//   - Reads run one after the other, and Latest returns the last that succeeded.
//   - The order of files, and of resources in them, does not matter.
//   - An unchanged cluster keeps its pointer.
//   - Each read renews the leases of EDS assignments (policy.endpoint_stale_after). Those that
//     are over have no endpoints.
//   - Only an atomic move makes Run read files again, as in Envoy. Writing a file in
//     place does not.
//
// The resources of a file are read on all processors; Load waits for those goroutines. Run
// works on its caller's goroutine, and returns when its context ends. The
// watcher's goroutine has ended by then. Of this module it may import source,
// envoy, envoy/rules, peer/limit and internal/yamlpb.
package file
