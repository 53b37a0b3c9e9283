package envoy

import (
	"net"
	"os/exec"
	"sync"
	"syscall"
	"testing"
)

// TestAFreeAddressIsThereForWhoAsksForIt, time and again, and to nobody else.
func TestAFreeAddressIsThereForWhoAsksForIt(t *testing.T) {
	address := FreeAddress(t)
	// The kernel gives a port to who asks for any where nobody shares it.
	unshared := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
		return c.Control(func(fd uintptr) { err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 0) })
	}}
	if listener, err := unshared.Listen(t.Context(), "tcp", address); err == nil {
		listener.Close()
		t.Error("who asks for any port may get it")
	}
	if claim, err := net.ListenPacket("udp", address); err == nil {
		claim.Close()
		t.Error("another process may claim it")
	}
	for range 3 {
		listener, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		listener.Close()
	}
	if c, err := net.Dial("tcp", address); err == nil {
		c.Close()
		t.Error("somebody listens")
	}
}

// TestAFreeAddressIsFreeWhileProcessesStart, although a child has its parent's sockets until it
// becomes another program.
func TestAFreeAddressIsFreeWhileProcessesStart(t *testing.T) {
	var starting sync.WaitGroup
	finished := make(chan struct{})
	defer starting.Wait()
	defer close(finished)
	for range 4 {
		starting.Go(func() {
			for {
				select {
				case <-finished:
					return
				default:
				}
				if err := exec.Command("true").Run(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 500 {
		listener, err := net.Listen("tcp", FreeAddress(t))
		if err != nil {
			t.Fatal(err)
		}
		listener.Close()
	}
}
