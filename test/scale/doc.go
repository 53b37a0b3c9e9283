// Package scale measures hdsd at the size of a large fleet, and watches it as
// many do: the real binary in a process of its own, so that its memory and
// processor time are its own, and around it, in this process, simulated
// checkers and subscribers over loopback sockets.
//
// A simulated checker is an HDS client that reports every interval, in the
// bytes that Envoy would send, what a table says of each endpoint; nothing is
// probed. Its reports are encoded when a specifier comes and patched from then
// on, so that it costs far less than what it measures.
//
//	go test ./test/scale -run "^$" -bench . -benchtime 1x -timeout 20m
//
// prints the figures; the machine's load average stands beside them, since the
// simulation shares its processors. The processor's share is read from /proc,
// and so only on Linux.
//
// Tests with small crowds of watchers and askers run in make test. With the crowds of
// real attacks they measure detection, and hold it to that of an undisturbed hdsd:
//
//	HDSD_SCALE=full go test ./test/scale -run Many -v -timeout 20m
//
// HDSD_BINARY is the path of another hdsd to measure, that of an earlier commit for
// instance.
//
// TestSoak has everything go wrong at once that a seed draws, for 40 s in make test, and for
// longer by
//
//	make soak SOAK=10m
//
// export.go is what test/bench uses of it. Everything that is started ends with the test. It
// may import anything.
package scale
