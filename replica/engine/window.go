package engine

// The log keeps the latest entries, so that a replica that was away for a while reads on. The first limit that is
// reached counts. A replica that was away for longer copies the database of another one.
const (
	keptEntries = 50_000
	keptBytes   = 128 << 20
)

// window is the latest entries of the log that this replica has read, by their sizes.
type window struct {
	sizes  []int  // of entries in bytes, the latest last
	bytes  int    // of all
	latest uint64 // sequence
}

// add adds the next entry.
func (w *window) add(sequence uint64, size int) {
	w.sizes = append(w.sizes, size)
	w.bytes += size
	w.latest = sequence
	for len(w.sizes) > keptEntries || w.bytes > keptBytes {
		w.bytes -= w.sizes[0]
		w.sizes = w.sizes[1:]
	}
}

// outdated returns the sequence of the latest entry that the log need not keep; 0 if it may need all.
func (w *window) outdated() uint64 {
	if len(w.sizes) < keptEntries && w.bytes < keptBytes/2 {
		return 0 // earlier entries, whose sizes are unknown, may be among the latest
	}
	return w.latest - uint64(len(w.sizes))
}
