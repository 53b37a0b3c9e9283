package envoy

import (
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// The ports from which FreeAddress chooses. They are outside of Linux's ephemeral
// range. So no other process gets one by chance before a server listens on it, or while
// the server restarts.
const (
	firstPort = 12000
	lastPort  = 32000
)

// FreeAddress begins with any port, and looks at each once.
var (
	begin = rand.IntN(lastPort - firstPort) //nolint:gosec // so that processes differ

	mu     sync.Mutex
	turns  int
	claims []net.PacketConn
)

// FreeAddress returns a loopback address on which nobody listened a moment ago, another one each
// time. No other process gets it from here until this one ends: a UDP socket at the same port
// claims it, also while a server restarts.
func FreeAddress() (address string, err error) {
	mu.Lock()
	defer mu.Unlock()
	for range 1000 {
		turns++
		address = net.JoinHostPort("127.0.0.1", strconv.Itoa(firstPort+(begin+turns)%(lastPort-firstPort)))
		claim, claimed := net.ListenPacket("udp", address)
		if err = claimed; err != nil {
			continue
		}
		var l net.Listener
		if l, err = net.Listen("tcp", address); err == nil {
			claims = append(claims, claim)
			return address, l.Close()
		}
		claim.Close()
	}
	return "", err
}
