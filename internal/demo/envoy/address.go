package envoy

import (
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"sync"
	"syscall"
)

// The ports from which FreeAddress chooses. They are outside of Linux's ephemeral
// range. So no other process gets one by chance before a server listens on it, or while
// the server restarts.
const (
	firstPort = 12000
	lastPort  = 32000
)

// FreeAddress begins with a random port, and tries each port once.
var (
	begin = rand.IntN(lastPort - firstPort) //nolint:gosec // so that processes differ

	mu     sync.Mutex
	turns  int
	claims []net.PacketConn
)

// FreeAddress returns a loopback address without a listener a moment ago, a new one for each
// call. A UDP socket at the same port claims it, also while a server restarts: FreeAddress gives
// it to no other process until this one ends.
func FreeAddress() (address string, err error) {
	mu.Lock()
	defer mu.Unlock()
	for range 1000 {
		turns++
		address = net.JoinHostPort("127.0.0.1", strconv.Itoa(firstPort+(begin+turns)%(lastPort-firstPort)))
		claim, claimError := net.ListenPacket("udp", address)
		if err = claimError; err != nil {
			continue
		}
		if err = probe(address); err == nil {
			claims = append(claims, claim)
			return address, nil
		}
		claim.Close()
	}
	return "", err
}

// probe fails if an address has a listener. No process starts meanwhile: a child has the
// listener until it becomes another program. The first use of package os for processes starts
// one without the lock, to try the kernel: that is over here.
func probe(address string) error {
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		self.Release() //nolint:errcheck,gosec // it is this process
	}
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	return l.Close()
}
