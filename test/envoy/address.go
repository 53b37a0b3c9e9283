package envoy

import (
	"net"
	"syscall"
	"testing"

	"hdsd/internal/demo/envoy"
)

// FreeAddress gives a loopback address that nobody listens on, and that is kept
// until the test ends: as a connection of it stays open, the kernel gives its port
// to nobody who asks for any, and to whoever asks for this one. It is outside the ports
// that the kernel gives to connections, and no other process of tests has it.
func FreeAddress(t testing.TB) string {
	t.Helper()
	address, err := envoy.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	syscall.ForkLock.RLock() // no child has the listener
	defer syscall.ForkLock.RUnlock()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	there, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	here, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { there.Close(); here.Close() })
	return listener.Addr().String()
}
