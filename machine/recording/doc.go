// Package recording writes down the events of a machine, and replays them.
//
// # The form
//
// A recording begins with a line that names its form. Frames follow: each has its length and a checksum,
// and holds a part of one compressed stream. What is before a damaged or missing frame can be read.
//
// The stream has a Header, the state that the machine was restored from, and the events in their order,
// each with its time and a digest of the effects so far. A last mark says why the recording ends. Without
// it, the process was killed.
//
// # What a replay needs
//
// Times keep both readings of the clock: rooms measure durations by the monotonic one. Endpoints have the
// ids that the machine gave them, and it gives the same again. Clusters are written as their source sent
// them, and prepared again. A specifier is named by its number.
//
// # Secrets
//
// What internal/redact calls a secret is replaced by a hash of it, with a key that is random in each
// recording and not written. So equal secrets stay equal. Shapes of endpoints are replaced likewise. A digest
// covers no texts and no messages.
//
// # Who does what
//
// An Encoder belongs to the goroutine of the machine. It is quick: of clusters, it hands on the pointers.
// A Writer, on a goroutine of its own, encodes those and compresses everything. The package starts no
// goroutine, and opens no file.
package recording
