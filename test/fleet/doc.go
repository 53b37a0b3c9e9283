// Package fleet tests the whole of hdsd end to end: the real binary, built
// with the race detector, between real Envoys that check, real Envoys that
// route, and upstreams that fail on command.
//
// It owns the hdsd processes it starts (Start, Kill, Terminate) and ends them
// with the test. It asks hdsd only what any program outside may: REST, the
// commands, and what its Envoys say. It may import anything.
package fleet
