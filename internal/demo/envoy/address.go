package envoy

import (
	"math/rand/v2"
	"net"
	"strconv"
	"sync/atomic"
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
	turns atomic.Int64
)

// FreeAddress returns a loopback address on which nobody listened a moment ago, another one each
// time.
func FreeAddress() (address string, err error) {
	var l net.Listener
	for range 100 {
		port := firstPort + (begin+int(turns.Add(1)))%(lastPort-firstPort)
		address = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		if l, err = net.Listen("tcp", address); err == nil {
			return address, l.Close()
		}
	}
	return "", err
}
