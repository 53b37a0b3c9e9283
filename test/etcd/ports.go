package etcd

import (
	"fmt"
	"net"
	"sync"
	"testing"
)

// Servers get ports below those that the system gives to connections: no connection takes the
// port of a server that is down, not even one that wants to reach the server. Each process has a
// block of ports of its own, so that servers of two tests never meet.
const (
	firstPort  = 12000
	blockPorts = 250
	blocks     = 80
)

// block listens on the first port of this process's block until the process ends.
var block = sync.OnceValues(func() (net.Listener, error) {
	for i := range blocks {
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", firstPort+i*blockPorts))
		if err == nil {
			return listener, nil
		}
	}
	return nil, fmt.Errorf("all blocks of ports from %d on are taken", firstPort)
})

var (
	portMu sync.Mutex
	taken  int // ports of the block that were given, over and over; guarded by portMu
)

// freeAddress returns an address that nothing listens on, and that no other server gets soon.
func freeAddress(t testing.TB) string {
	t.Helper()
	listener, err := block()
	if err != nil {
		t.Fatal(err)
	}
	base := listener.Addr().(*net.TCPAddr).Port
	portMu.Lock()
	defer portMu.Unlock()
	for range blockPorts {
		taken++
		address := fmt.Sprintf("127.0.0.1:%d", base+1+taken%(blockPorts-1))
		if listener, err := net.Listen("tcp", address); err == nil {
			listener.Close()
			return address
		}
	}
	t.Fatalf("no port from %d on is free", base)
	return ""
}
