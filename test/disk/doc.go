// Package disk stands between a process and its disk, for tests. It records what the
// process writes, and can make it fail or wait. From a record it makes what a loss of power
// may leave.
//
// The kernel tells it of each call that writes (seccomp user notification), before it
// happens. So the process is the real one, and needs no mount, no module and no other
// library. It is for Linux. A process is traced by Start; Main has to come first in the
// TestMain of the test binary, which starts itself once more to put the filter in place.
//
// # What a loss of power may leave
//
// Of each sector of 512 bytes, any version since the last sync of its file that ended; of
// its size and of each name in a folder, too. A sync that fails makes nothing durable, and
// the kernel forgets about the pages: a later sync makes durable only what was written
// again since.
package disk
