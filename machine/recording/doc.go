// Package recording records the events of a machine, and replays them.
//
// # Format
//
// A recording begins with a line that names the version of the format. Frames follow. A frame has a length
// and a checksum, and holds a part of one compressed stream. A Reader reads everything before a damaged or
// missing frame.
//
// The stream has a Header, the restored state of the machine, and the events in their order. Each event has
// its time, and a digest of all effects so far. A mark at the end gives the reason of the end. Without the
// mark, the process was killed.
//
// # Replay
//
// Times keep both readings of the clock, since rooms measure durations by the monotonic clock. Events refer
// to endpoints by the ids of the machine, which gives the same ids in a replay. The recording has clusters
// in the form of their source, and the Reader prepares them again. Events refer to specifiers by serial
// numbers.
//
// # Secrets
//
// The recording has a hash instead of each secret that internal/redact finds. The key of the hash is random
// for each recording, and not recorded. So equal secrets have equal hashes. Shapes of endpoints are hashed
// in the same way. Digests cover no texts and no messages.
//
// # Goroutines
//
// An Encoder belongs to the goroutine of the machine. It is quick: it passes pointers of clusters on. A
// Writer encodes the clusters and compresses the stream, on a goroutine of its owner. The package starts no
// goroutine, and opens no file.
package recording
