// Package fleet tests the whole of hdsd end to end. It runs the real binary, built
// with the race detector where HDSD_RACE is set, between real Envoys that check, real Envoys that route, and
// upstreams that fail on command.
//
// It owns the hdsd processes it starts (Start, Kill, Terminate) and ends them with
// the test. It uses only the interfaces of any program outside: REST, the commands,
// and the admin interfaces of its Envoys. It may import anything.
package fleet
