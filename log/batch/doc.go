// Package batch has batches of log entries as bytes, and the frames in which they are stored.
//
// # Format
//
// A batch begins with the version of the format. The rest is compressed by Zstandard: a table of
// texts, the base of all times in Unix seconds, and the entries. An entry is a list of sections, one
// for each part of log.Entry that has content. A section has a tag, a size and its content, so
// a reader finds the end of a section that a later release has added. Such a section is an error
// unless its tag says that readers may skip it: a replica must not follow a log that it understands
// in part.
//
// Endpoints of transitions have their whole names, although other parts have their hashes only:
// each replica writes the same history, also of endpoints that its own sources do not have yet, or
// not any more. Texts that recur are in the table, so a transition with three observations takes
// about 50 bytes before compression. Events have numbers of kinds that a reader may not know.
//
// A time has the wall clock only. A verdict in Voted has its status and time, as the store keeps no more.
//
// A reader counts the memory of items before it takes it, by their announced number: a batch of a
// kilobyte may stand for a gigabyte. The writer counts the same, so that it writes nothing that
// readers refuse.
//
// # Frames
//
// A frame is a part of a batch that fits into one value of a log. Readers join the frames of a batch
// again. A first frame ends an unfinished batch, whose writer was replaced before it could finish.
//
// The package is pure.
package batch
